"""How fast is HiddenUnitCRF: its kernels, epochs and threads, and how much memory does it take?

Kernels are measured in matrix products of the same shapes, epochs against the same model written
in PyTorch, two threads against one; a corpus as large as that of the paper (van der Maaten, Welling
and Saul 2011) shows the memory. OCR letters come from $CRFX_DATA.

    python benchmarks/hidden_units.py                       # five minutes: all parts
    python benchmarks/hidden_units.py --sets avx2 --quick   # a first look
    python benchmarks/hidden_units.py --only kernel         # one part; the others stay as measured

Parts: kernel, sweep (needs PyTorch: `make bench` installs it), threads (LinearCRF too), measured in
every instruction set of the processor; size (needs 6 GB of memory). Each runs in processes of its
own and records its machine and date. Writes reports/results/hidden_units.json and from it
reports/hidden-units-speed.md.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from hidden_units_page import (
    KERNEL_TARGETS,
    PAGE,
    SWEEP_TARGETS,
    THREADS_TARGETS,
    in_products,
    page,
)
from instruction_sets import (
    in_child,
    in_turns,
    lowest,
    measured,
    parser_of,
    report_parts,
    run_child,
)
from measuring import (
    RESULTS,
    command_line,
    fastest,
    held_memory,
    machine,
    peak_memory,
    say,
)
from scipy import sparse

from crfx import HiddenUnitCRF, LinearCRF
from crfx.batch import Batch
from crfx.datasets import load_ocr
from crfx.model.building import FIRST_WEIGHTS, Parts, new_model
from crfx.model.flat_parameters import get_weights, parameter_arrays, set_weights
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.truth import Truth
from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction
from crfx.structures import Chain
from crfx.threads import one_blas_thread
from crfx.trainers.core_steps import CoreParameters, CoreSteps, hidden_sweeps
from crfx.trainers.sgd import Steps

TARGET = RESULTS / "hidden_units.json"
SEED = 0
UNITS = 100
PASSES, REPEATS = 5, 5
SWEEP_REPEATS = 3
THREADS_PASSES = 3
BATCH_SIZES = (1, 8, 32, 100)
STEP = 0.02  # of mini-batches of one word; of larger ones it falls with the root of the size
SWEEPS_TO_HALF = 50
MOST_LOSS_DIFFERENCE = 1e-4


@dataclass(frozen=True, eq=False)
class Letters:
    """OCR letters, pixels -1 or 1."""

    X: np.ndarray  # (letters, pixels) float32
    labels: np.ndarray  # (letters,)
    batch: Batch

    @classmethod
    def load(cls) -> Letters:
        """Return all words."""
        words = load_ocr()
        X = 2 * np.concatenate(words.X).astype(np.float32) - 1
        labels = np.unique(np.concatenate(words.y), return_inverse=True)[1]
        return cls(X, labels, Batch.from_lengths([len(word) for word in words.y], X=X))

    @property
    def shape(self) -> HiddenShape:
        """Return the shape of a function on them."""
        return HiddenShape(self.X.shape[1], UNITS, int(self.labels.max()) + 1)

    @property
    def sizes(self) -> dict[str, int]:
        """Return their numbers for a result."""
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


def kernel(repeats: str) -> dict[str, float]:
    """Measure scores and gradients in the instruction set of this process, and matrix products.

    Seconds. The products among scores and gradients take turns with ours, so that both find the
    caches as they are in the middle of work.
    """
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
        return fastest(tasks, int(repeats))


def kernel_figure(key: str, ours: dict[str, Any], peers: dict[str, Any]) -> float:
    """Return scores and gradient of summed units, in matrix products."""
    return in_products("softplus", ours["seconds"])


def measure_kernel(sets: Sequence[str], *, quick: bool) -> dict[str, Any]:
    """Measure the kernels in every instruction set."""
    passes, repeats = (1, 2) if quick else (PASSES, REPEATS)
    result = in_turns(sets, passes, "kernel", repeats)
    result["sets"] = {isa: {"seconds": seconds} for isa, seconds in result["sets"].items()}
    largest_v = {name: largest for name, (_, largest) in KERNELS.items()}
    return {**Letters.load().sizes, "repeats": passes * repeats, "largest": largest_v, **result}


# One epoch of stochastic gradient descent.


class Ours:
    """A model with random first weights, trained by steps of the core."""

    def __init__(self, letters: Letters) -> None:
        self.truth = Truth(letters.batch, Chain(1), letters.labels)
        random = np.random.default_rng(SEED)
        node = HiddenUnitFunction.random(letters.shape, FIRST_WEIGHTS, random)
        self.model = new_model(Parts(1, "table", start_end=True), self.truth, node)
        self.likelihood = Likelihood(self.truth, 1)
        self.start = get_weights(self.model)
        sweeps = hidden_sweeps(self.model, self.truth, self.likelihood, None)
        self._take = CoreSteps(sweeps, 1, rates=np.ones(7), dropout=0.0, seed=SEED)
        self.begin()

    def begin(self) -> None:
        """Start from the first weights."""
        n_features = self.truth.batch.X.shape[1]
        self.parameters = CoreParameters(self._take.sweeps, n_features, self.start)

    def sweep(self, order: np.ndarray, size: int, step: float, period: float) -> None:
        """Run one epoch, as `fit` does, without dropout."""
        self._take(Steps(order, size, 0, step, period, 0.0, counts=False), self.parameters)

    def loss(self) -> float:
        """-log p over all words."""
        set_weights(self.model, self.parameters.average())
        return self.likelihood.evaluate(self.model.problem(self.truth.batch), ()).value

    @property
    def named_start(self) -> dict[str, np.ndarray]:
        """Return the first weights by name."""
        set_weights(self.model, self.start)
        node: Any = self.model.node
        edge: Any = self.model.edge
        ends: Any = self.model.ends
        parts = {**node.shape.split(node.weights), **edge.tables, **ends.tables}
        return {name: part.copy() for name, part in parts.items()}


def sweep(sizes: str, repeats: str) -> list[dict[str, Any]]:
    """Measure our epochs in the instruction set of this process, by size of mini-batch."""
    letters = Letters.load()
    ours = Ours(letters)
    rows = []
    for size, order, step, period in schedule(letters, sizes):
        ours.begin()
        first = ours.loss()
        best = np.inf
        for _ in range(int(repeats) + 1):
            ours.begin()
            best = min(best, timed(partial(ours.sweep, order, size, step, period)))
        rows.append({"size": size, "seconds": best, "first": first, "last": ours.loss()})
    return rows


def torch_sweep(sizes: str, repeats: str) -> list[dict[str, Any]]:
    """Measure PyTorch's epochs from the same weights."""
    import hidden_units_torch as peer

    peer.use_threads(1)
    letters = Letters.load()
    start = Ours(letters).named_start
    cut = partial(peer.Padded.of, letters.X, letters.labels, letters.batch.offsets)
    rows = []
    for size, order, step, period in schedule(letters, sizes):
        batches = [cut(order[begin : begin + size]) for begin in range(0, len(order), size)]
        net = peer.TorchHiddenUnitCRF(start)
        first = peer.loss(net, batches)
        best = np.inf
        for _ in range(int(repeats) + 1):
            net = peer.TorchHiddenUnitCRF(start)
            best = min(best, timed(partial(peer.sweep, net, batches, step, period)))
        rows.append(
            {"size": size, "seconds": best, "first": first, "last": peer.loss(net, batches)}
        )
    return rows


def schedule(letters: Letters, sizes: str) -> list[tuple[int, np.ndarray, float, float]]:
    """Return size, order of instances, step and period for each size of mini-batch."""
    n = letters.batch.n_instances
    order = np.random.default_rng(SEED).permutation(n)
    return [
        (size, order, STEP / size**0.5, float(SWEEPS_TO_HALF * -(-n // size)))
        for size in map(int, sizes.split(","))
    ]


def sweep_figure(key: str, ours: dict[str, Any], peers: dict[str, Any]) -> float:
    """Return how many times faster than PyTorch an epoch is."""
    size = key.removeprefix("sweep_")
    return peers[size]["seconds"] / ours["sizes"][size]["seconds"]


def measure_sweep(sets: Sequence[str], *, quick: bool) -> dict[str, Any]:
    """Measure epochs in every instruction set."""
    sizes = ",".join(map(str, BATCH_SIZES))
    passes, repeats = (1, 1) if quick else (2, SWEEP_REPEATS)
    asked = (sets, passes, "sweep", sizes, repeats)
    result = in_turns(*asked, peers="torch_sweep", peer_passes=1)
    by_size = {str(row["size"]): row for row in result["peers"]}
    ours = {isa: {str(row["size"]): row for row in rows} for isa, rows in result["sets"].items()}
    for rows in ours.values():
        for size, row in rows.items():
            losses = {"ours": row["first"], "torch": by_size[size]["first"]}
            check_same(losses, MOST_LOSS_DIFFERENCE)
    return {
        **Letters.load().sizes,
        "repeats": passes * repeats,
        "peers": by_size,
        "sets": {isa: {"sizes": rows} for isa, rows in ours.items()},
    }


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


# Two threads against one.

THREADS_BATCH, THREADS_SWEEPS, THREADS_ITERATIONS = 32, 25, 200
PRODUCTS, PRODUCT_SIZE = 200, 512


def threads(n_jobs: str) -> dict[str, Any]:
    """Measure training on so many threads: seconds, and what tells parameters apart."""
    words = load_ocr()
    X = [np.asarray(word, np.float32) for word in words.X]
    made = {
        "hidden_sgd": HiddenUnitCRF(
            UNITS,
            "sgd",
            sweeps=THREADS_SWEEPS,
            batch_size=THREADS_BATCH,
            step=STEP / THREADS_BATCH**0.5,
            n_jobs=int(n_jobs),
            random_state=SEED,
        ),
        "linear_lbfgs": LinearCRF(max_iter=THREADS_ITERATIONS, tol=0.0, n_jobs=int(n_jobs)),
    }
    result = {"products": {"seconds": min(timed(partial(products, int(n_jobs))) for _ in range(3))}}
    for name, crf in made.items():
        seconds = timed(partial(crf.fit, X, words.y))
        bits = b"".join(part.tobytes() for part in parameter_arrays(crf.model_))
        result[name] = {"seconds": seconds, "digest": hashlib.sha256(bits).hexdigest()}
    return result


def products(n_jobs: int) -> None:
    """Multiply matrices, independently of each other: what so many cores give at the best."""
    matrix = np.random.default_rng(SEED).random((PRODUCT_SIZE, PRODUCT_SIZE), dtype=np.float32)
    with one_blas_thread(), ThreadPoolExecutor(n_jobs) as pool:
        list(pool.map(lambda _: matrix @ matrix, range(PRODUCTS)))


def threads_figure(key: str, ours: dict[str, Any], peers: dict[str, Any]) -> float:
    """Return how many times faster two threads are."""
    one, two = (ours[n_jobs][key.removeprefix("threads_")]["seconds"] for n_jobs in ("1", "2"))
    return one / two


def measure_threads(sets: Sequence[str], *, quick: bool) -> dict[str, Any]:
    """Measure threads in every instruction set."""
    runs = {isa: {} for isa in sets}
    for number in range(1 if quick else THREADS_PASSES):
        for n_jobs in ("1", "2") if number % 2 == 0 else ("2", "1"):
            for isa, figures in in_turns(sets, 1, "threads", n_jobs)["sets"].items():
                runs[isa][n_jobs] = (
                    lowest(runs[isa][n_jobs], figures) if n_jobs in runs[isa] else figures
                )
    return {
        **Letters.load().sizes,
        "batch_size": THREADS_BATCH,
        "sweeps": THREADS_SWEEPS,
        "iterations": THREADS_ITERATIONS,
        "peers": {},
        "sets": runs,
    }


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


def size(trainer: str) -> dict[str, object]:
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


def measure_size() -> dict[str, Any]:
    """Measure the memory of each trainer: a peak is a property of a process."""
    begin = time.perf_counter()
    start = {"command": command_line(), "machine": machine()}
    sizes = {}
    for case in SIZE_CASES:
        say(f"size, {case}")
        sizes[case] = in_child("size", case)
    return {**start, **sizes, "took": time.perf_counter() - begin}


BY_SET = {
    "kernel": (measure_kernel, KERNEL_TARGETS, kernel_figure),
    "sweep": (measure_sweep, SWEEP_TARGETS, sweep_figure),
    "threads": (measure_threads, THREADS_TARGETS, threads_figure),
}
PARTS = (*BY_SET, "size")


def measure(
    part: str, sets: Sequence[str], result: dict[str, Any], *, quick: bool
) -> dict[str, Any]:
    """Return a part; ``result`` has those measured so far."""
    if part == "size":
        return measure_size()
    run, targets, figure = BY_SET[part]
    return measured(sets, partial(run, sets, quick=quick), result.get(part, {}), targets, figure)


CHILDREN = {
    "kernel": kernel,
    "sweep": sweep,
    "torch_sweep": torch_sweep,
    "threads": threads,
    "size": size,
}


def main() -> None:
    """Measure, print, write."""
    if run_child(CHILDREN):
        return
    parser = parser_of(__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, help="measure one part, keep the others")
    arguments = parser.parse_args()
    parts = [arguments.only] if arguments.only else BY_SET if arguments.quick else PARTS
    report_parts(
        arguments, list(parts), TARGET, partial(measure, quick=arguments.quick), PAGE, page
    )


if __name__ == "__main__":
    main()
