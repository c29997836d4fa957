"""How fast is HiddenUnitCRF: its kernels, its sweeps, and how much memory do many features take?

Kernels are measured in matrix products of the same shapes, sweeps against the same model written
in PyTorch; a corpus as large as that of the paper (van der Maaten, Welling and Saul 2011) shows the
memory. OCR letters come from $CRFX_DATA.

    python benchmarks/hidden_units.py                 # all parts, one after the other
    python benchmarks/hidden_units.py --only kernel   # one part; the others stay as measured
    python benchmarks/hidden_units.py --render        # only write the page anew

Parts: kernel, sweep (needs PyTorch: `make bench` installs it), size (needs 6 GB of memory). Each
runs in processes of its own, on one thread, and records its machine and date. Writes
reports/results/hidden_units.json and from it reports/hidden-units-speed.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from hidden_units_page import PAGE, page
from measuring import (
    RESULTS,
    command_line,
    fastest,
    held_memory,
    machine,
    peak_memory,
    write_json,
    write_whole,
)
from scipy import sparse

from crfx import HiddenUnitCRF
from crfx.batch import Batch
from crfx.datasets import load_ocr
from crfx.estimators.hidden_steps import HiddenSteps
from crfx.estimators.hidden_unit import FIRST_WEIGHTS
from crfx.estimators.mini_batches import Dropout
from crfx.estimators.model_parameters import (
    get_weights,
    new_model,
    parameter_arrays,
    set_weights,
)
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.truth import Truth
from crfx.potentials.blas import one_blas_thread
from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction
from crfx.structures import Chain
from crfx.trainers.sgd import Steps

TARGET = RESULTS / "hidden_units.json"
SEED = 0
UNITS = 100
REPEATS = 9
SWEEP_REPEATS = 3
BATCH_SIZES = (1, 8, 32, 100)
STEP = 0.02  # of mini-batches of one word; of larger ones it falls with the root of the size
SWEEPS_TO_HALF = 50
MOST_LOSS_DIFFERENCE = 1e-4


def say(text: str) -> None:
    """Tell whoever waits; results have standard output to themselves."""
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True, eq=False)
class Letters:
    """OCR letters, pixels -1 or 1."""

    X: np.ndarray  # (letters, pixels) float32
    labels: np.ndarray  # (letters,)
    batch: Batch

    @classmethod
    def load(cls) -> Letters:
        """All words."""
        words = load_ocr()
        X = 2 * np.concatenate(words.X).astype(np.float32) - 1
        labels = np.unique(np.concatenate(words.y), return_inverse=True)[1]
        return cls(X, labels, Batch.from_lengths([len(word) for word in words.y], X=X))

    @property
    def shape(self) -> HiddenShape:
        """Of a function on them."""
        return HiddenShape(self.X.shape[1], UNITS, int(self.labels.max()) + 1)

    @property
    def sizes(self) -> dict[str, int]:
        """What a result says of them."""
        shape = self.shape
        return {
            "instances": self.batch.n_instances,
            "positions": len(self.X),
            "features": shape.n_features,
            "units": shape.n_hidden,
            "labels": shape.n_labels,
        }


# Scores and gradients of all rows.

KERNELS = {
    "softplus": ("softplus", 0.1),
    "far": ("softplus", 21.0),
    "relu": ("relu", 0.1),
    "tanh": ("tanh", 0.1),
}
"""Activation, and the largest |V|; beyond 20 there is no table of exp(V)."""


def one_kernel() -> dict[str, object]:
    """Seconds of scores and of gradients, and of the matrix products among them."""
    letters = Letters.load()
    random = np.random.default_rng(SEED)
    slopes = random.normal(0, 0.1, (len(letters.X), letters.shape.n_labels)).astype(np.float32)
    tasks: dict[str, Callable[[], object]] = {}
    for name, (activation, largest) in KERNELS.items():
        shape = HiddenShape(
            letters.shape.n_features, UNITS, letters.shape.n_labels, activation=activation
        )
        function = HiddenUnitFunction.random(shape, 0.1, random)
        to_label = shape.split(function.weights)["to_label"]
        to_label *= largest / np.abs(to_label).max()
        rows = function.prepare(letters.X)
        tasks[f"{name}_scores"] = partial(rows.scores, function.weights)
        tasks[f"{name}_gradient"] = partial(rows.gradient, slopes)
    parts = shape.split(function.weights)
    inputs = letters.X @ parts["weights"]
    tasks["product_inputs"] = partial(np.matmul, letters.X, parts["weights"])
    tasks["product_weights"] = partial(np.matmul, letters.X.T, inputs)
    tasks["product_labels"] = partial(np.matmul, inputs, parts["to_label"])
    with one_blas_thread():
        seconds = fastest(tasks, REPEATS)
    largest_v = {name: largest for name, (_, largest) in KERNELS.items()}
    return {**letters.sizes, "repeats": REPEATS, "largest": largest_v, "seconds": seconds}


# One sweep of stochastic gradient descent.


class Ours:
    """A model with random first weights, and the steps that the core takes with it."""

    def __init__(self, letters: Letters) -> None:
        self.truth = Truth(letters.batch, Chain(1), letters.labels)
        random = np.random.default_rng(SEED)
        node = HiddenUnitFunction.random(letters.shape, FIRST_WEIGHTS, random)
        self.model = new_model(HiddenUnitCRF(), self.truth, node)
        self.likelihood = Likelihood(self.truth, 1)
        self.start = get_weights(self.model)
        self._take = HiddenSteps(
            self.model, self.truth, self.likelihood, None, np.ones(7), Dropout(0.0, SEED), 1
        )
        self.parameters = self._take.begin(self.start)

    def begin(self) -> None:
        """From the first weights."""
        self.parameters = self._take.begin(self.start)

    def sweep(self, order: np.ndarray, size: int, step: float, period: float) -> None:
        """One pass, as `fit` makes it, without dropout."""
        self._take(Steps(order, size, 0, step, period, 0.0, counts=False), self.parameters)

    def loss(self) -> float:
        """-log p over all words."""
        set_weights(self.model, self.parameters.average())
        return self.likelihood.evaluate(self.model.problem(self.truth.batch), ()).value

    @property
    def named_start(self) -> dict[str, np.ndarray]:
        """The first weights by name."""
        set_weights(self.model, self.start)
        node: Any = self.model.node
        edge: Any = self.model.edge
        ends: Any = self.model.ends
        parts = {**node.shape.split(node.weights), **edge.tables, **ends.tables}
        return {name: part.copy() for name, part in parts.items()}


def one_sweep() -> dict[str, object]:
    """Seconds of a sweep, ours and PyTorch's taking turns, by size of mini-batch."""
    import hidden_units_torch as peer

    peer.use_threads(1)
    letters = Letters.load()
    ours = Ours(letters)
    order = np.random.default_rng(SEED).permutation(letters.batch.n_instances)
    rows = []
    for size in BATCH_SIZES:
        begins = range(0, len(order), size)
        cut = partial(peer.Padded.of, letters.X, letters.labels, letters.batch.offsets)
        batches = [cut(order[begin : begin + size]) for begin in begins]
        step, period = STEP / size**0.5, float(SWEEPS_TO_HALF * len(batches))
        net = peer.TorchHiddenUnitCRF(ours.named_start)
        ours.begin()
        first = {"ours": ours.loss(), "torch": peer.loss(net, batches)}
        check_same(first, MOST_LOSS_DIFFERENCE)
        best = {"ours": np.inf, "torch": np.inf}
        for repeat in range(SWEEP_REPEATS + 1):
            ours.begin()
            net = peer.TorchHiddenUnitCRF(ours.named_start)
            seconds = {
                "ours": timed(partial(ours.sweep, order, size, step, period)),
                "torch": timed(partial(peer.sweep, net, batches, step, period)),
            }
            if repeat:  # the first one warms up
                best = {name: min(best[name], seconds[name]) for name in best}
        last = {"ours": ours.loss(), "torch": peer.loss(net, batches)}
        say(f"mini-batches of {size}: {best}, losses {last}")
        rows.append({"size": size, "step": step, "seconds": best, "first": first, "last": last})
    return {**letters.sizes, "repeats": SWEEP_REPEATS, "sizes": rows}


def timed(task: Callable[[], object]) -> float:
    """Seconds."""
    begin = time.perf_counter()
    task()
    return time.perf_counter() - begin


def check_same(losses: dict[str, float], most: float) -> None:
    """Both are the same model, or there is nothing to compare."""
    difference = abs(losses["ours"] / losses["torch"] - 1)
    if not difference <= most:
        raise SystemExit(f"the losses differ by {difference:.1e} of them: {losses}")


# Many features, many units.

SIZE_CASES = ("sgd", "perceptron")
SENTENCES, MEAN_LENGTH, SIZE_SWEEPS = 2000, 22, 2
FEATURES, FEATURES_A_ROW, LABELS, SIZE_UNITS = 212_610, 30, 45, 1000


def treebank_like() -> tuple[Any, np.ndarray, np.ndarray]:
    """Binary features as rare as those of words, labels, and lengths; all at random."""
    random = np.random.default_rng(SEED)
    lengths = 1 + random.poisson(MEAN_LENGTH - 1, SENTENCES)
    n = int(lengths.sum())
    share = 1 / np.arange(1, FEATURES + 1)  # Zipf's law
    drawn = random.choice(FEATURES, (n, FEATURES_A_ROW), p=share / share.sum())
    rows = np.repeat(np.arange(n), FEATURES_A_ROW)
    ones = np.ones(rows.size, np.float32)
    X = sparse.csr_matrix((ones, (rows, drawn.reshape(-1))), shape=(n, FEATURES))
    X.data[:] = 1  # drawn twice is there once
    labels = random.integers(LABELS, size=n)
    labels[:LABELS] = np.arange(LABELS)  # all of them occur
    return X, labels, lengths


def one_size(trainer: str) -> dict[str, object]:
    """Sweeps by a trainer: seconds of the last, and the most memory that the process held."""
    X, y, lengths = treebank_like()
    before = held_memory()
    crf = HiddenUnitCRF(
        SIZE_UNITS, trainer, sweeps=SIZE_SWEEPS, step=0.01, dropout=0, n_jobs=1, random_state=SEED
    )
    crf.fit(X, y, lengths=lengths)
    return {
        "instances": len(lengths),
        "positions": len(y),
        "features": X.shape[1],
        "features_a_row": X.nnz / len(y),
        "labels": len(crf.classes_),
        "units": SIZE_UNITS,
        "parameters": sum(part.size for part in parameter_arrays(crf.model_)),
        "sweeps": SIZE_SWEEPS,
        "seconds": crf.history_["seconds"][-1],
        "before": before,
        "peak": peak_memory(),
        "after": held_memory(),
    }


PARTS = ("kernel", "sweep", "size")


def in_new_process(*arguments: str) -> dict[str, object]:
    """What another run of this script prints."""
    asked = [sys.executable, __file__, *arguments]
    return json.loads(subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout)


def one(part: str, case: str) -> dict[str, object]:
    """Measure in this process."""
    if part == "size":
        return one_size(case)
    return {"kernel": one_kernel, "sweep": one_sweep}[part]()


def measured(part: str) -> dict[str, object]:
    """Measure in new processes: a peak is a property of a process."""
    if part != "size":
        return in_new_process("--one", part)
    found = {}
    for case in SIZE_CASES:
        say(case)
        found[case] = in_new_process("--one", part, "--case", case)
    return found


def recorded() -> dict[str, Any]:
    """The parts that have been measured so far."""
    return json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else {}


def measure(part: str) -> None:
    """Measure a part and put it in its place; the others stay."""
    say(part)
    begin = time.perf_counter()
    found = {"command": command_line(), "machine": machine(), **measured(part)}
    found["took"] = time.perf_counter() - begin
    result = {**recorded(), part: found}
    write_json(TARGET, {name: result[name] for name in PARTS if name in result})


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, help="measure one part, keep the others")
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    parser.add_argument("--one", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--case", choices=SIZE_CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(arguments.one, arguments.case)))
        return
    parts = [] if arguments.render else [arguments.only] if arguments.only else list(PARTS)
    for part in parts:
        measure(part)
    text = page(recorded())
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
