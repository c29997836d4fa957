"""Training and tagging against CRFsuite, in every instruction set: two parts of `linear.py`."""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from instruction_sets import in_turns
from linear_tasks import (
    CHUNKING,
    L2,
    TASKS,
    TOL,
    all_dicts,
    as_lists,
    new_crf,
    train_ours,
)
from measuring import fastest, say
from scipy import sparse

from crfx import load
from crfx.features import Template, Vocabulary
from reproduce import crfsuite
from reproduce.datasets import load_conll2000

PASSES, PEER_PASSES = 3, 2
ITERATIONS = 50  # in which training is timed
REPEATS = 7
TAGGING_ITERATIONS = 20


# The first iterations of training, in every instruction set.


def save_training(folder: Path) -> None:
    """Write features and labels once, as each tool takes them."""
    for name, task in TASKS.items():
        texts, y = task()
        write(folder / f"{name}.texts", (texts, as_lists(y)))
        X, lengths = Vocabulary().encode(texts, learn=True)
        save_rows(folder / f"{name}.npz", X, lengths, np.concatenate(y))


def save_rows(path: Path, X: Any, lengths: Any, labels: Any) -> None:
    """Write a CSR matrix with lengths and labels."""
    np.savez(
        path,
        data=X.data,
        indices=X.indices,
        indptr=X.indptr,
        shape=X.shape,
        lengths=lengths,
        labels=labels,
    )


def load_rows(path: Path) -> tuple[Any, Any, Any]:
    """Return what `save_rows` wrote."""
    arrays = np.load(path)
    X = sparse.csr_matrix(
        (arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"])
    )
    return X, arrays["lengths"], arrays["labels"]


def write(path: Path, content: object) -> None:
    """Write what another process of this script reads."""
    path.write_bytes(pickle.dumps(content))


def read(path: Path) -> Any:
    """Return what `write` wrote."""
    return pickle.loads(path.read_bytes())


def core_training(folder: str, iterations: str) -> dict[str, float]:
    """Measure LinearCRF: seconds of the first iterations by task and threads."""
    seconds = {}
    for name in TASKS:
        X, lengths, labels = load_rows(Path(folder) / f"{name}.npz")
        for n_jobs in (1, 2):
            crf = new_crf(n_jobs, int(iterations), tol=0.0)
            begin = time.perf_counter()
            crf.fit(X, labels, lengths=lengths)
            seconds[f"{name}_{n_jobs}"] = time.perf_counter() - begin
    return seconds


def peer_training(folder: str, iterations: str) -> dict[str, float]:
    """Measure CRFsuite: seconds of the first iterations by task."""
    seconds = {}
    for name in TASKS:
        texts, y = read(Path(folder) / f"{name}.texts")
        trace = crfsuite.train(texts, y, crfsuite.settings(L2, int(iterations), 1e-12))
        seconds[name] = trace.seconds[-1]
    return seconds


def training_figure(
    to_near: dict[str, dict[str, int]], key: str, ours: dict[str, Any], peers: dict[str, Any]
) -> float:
    """Return how many times faster than CRFsuite we come near the lower objective."""
    name, _, n_jobs = key.removeprefix("training_").partition("_")
    steps = to_near[name]
    theirs = peers[name] * steps["crfsuite"]
    return theirs / (ours["seconds"][f"{name}_{n_jobs or 1}"] * steps["ours"])


def measure_training(
    sets: Sequence[str], to_near: dict[str, dict[str, int]], *, quick: bool
) -> dict[str, Any]:
    """Measure training in every instruction set."""
    passes, iterations = (1, 10) if quick else (PASSES, ITERATIONS)
    with tempfile.TemporaryDirectory() as folder:
        save_training(Path(folder))
        result = in_turns(
            sets,
            passes,
            "core_training",
            folder,
            iterations,
            peers="peer_training",
            peer_passes=PEER_PASSES,
        )
    result["sets"] = {isa: {"seconds": seconds} for isa, seconds in result["sets"].items()}
    return {"iterations": iterations, "passes": passes, "to_near": to_near, **result}


# Tags from a trained model, in every instruction set.


def save_tagging(folder: Path) -> dict[str, int]:
    """Train both tools once, and write models and test sentences; return the sizes."""
    template = Template(CHUNKING, ("word", "pos"))
    train, test = load_conll2000().train, load_conll2000().test
    texts = [template.features(sentence) for sentence in train.X]
    asked = [template.features(sentence) for sentence in test.X]
    say("training on texts")
    crf, vocabulary, _ = train_ours(texts, train.y, 1, TAGGING_ITERATIONS, tol=0.0)
    crf.save(folder / "texts.crfx")
    X, lengths = vocabulary.encode(asked)
    save_rows(folder / "texts.npz", X, lengths, ())
    write(folder / "texts", asked)
    train_quickly(texts, train.y, folder / "texts.crfsuite")
    del texts, asked, vocabulary
    say("training on dicts")
    dicts = all_dicts(template, train.X)
    new_crf(1, TAGGING_ITERATIONS, tol=0.0).fit(dicts, train.y).save(folder / "dicts.crfx")
    train_quickly(dicts, train.y, folder / "dicts.crfsuite")
    write(folder / "dicts", all_dicts(template, test.X))
    return {"instances": len(test.X), "positions": int(sum(map(len, test.X)))}


def train_quickly(X: Any, y: Sequence[Any], model: Path) -> None:
    """Train CRFsuite shortly: the time to tag does not depend on what the weights are."""
    crfsuite.train(X, as_lists(y), crfsuite.settings(L2, TAGGING_ITERATIONS, TOL), str(model))


def core_tagging(folder: str, repeats: str) -> dict[str, float]:
    """Measure LinearCRF: seconds from a CSR matrix, and from dicts, which it reads every time."""
    place = Path(folder)
    X, lengths, _ = load_rows(place / "texts.npz")
    asked = read(place / "dicts")
    prepared, dicts = (
        load(place / f"{name}.crfx").set_params(n_jobs=1) for name in ("texts", "dicts")
    )
    tasks = {
        "prepared": lambda: prepared.predict(X, lengths=lengths),
        "dicts": lambda: dicts.predict(asked),
    }
    return fastest(tasks, int(repeats))


def peer_tagging(folder: str, repeats: str) -> dict[str, float]:
    """Measure CRFsuite: seconds from `ItemSequence`, the form it likes best, and from dicts."""
    place = Path(folder)
    items = crfsuite.prepared(read(place / "texts"))
    asked = read(place / "dicts")
    prepared, dicts = (
        crfsuite.open_tagger(str(place / f"{name}.crfsuite")) for name in ("texts", "dicts")
    )
    tasks = {
        "prepared": lambda: crfsuite.tag_prepared(prepared, items),
        "dicts": lambda: crfsuite.tag(dicts, asked),
    }
    return fastest(tasks, int(repeats))


def tagging_figure(key: str, ours: dict[str, Any], peers: dict[str, Any]) -> float:
    """Return how many times faster than CRFsuite we tag."""
    name = key.removeprefix("tagging_")
    return peers[name] / ours["seconds"][name]


def measure_tagging(sets: Sequence[str], *, quick: bool) -> dict[str, Any]:
    """Measure tagging in every instruction set."""
    passes, repeats = (1, 2) if quick else (PASSES, REPEATS)
    with tempfile.TemporaryDirectory() as folder:
        sizes = save_tagging(Path(folder))
        result = in_turns(sets, passes, "core_tagging", folder, repeats, peers="peer_tagging")
    result["sets"] = {isa: {"seconds": seconds} for isa, seconds in result["sets"].items()}
    return {**sizes, "iterations": TAGGING_ITERATIONS, "repeats": passes * repeats, **result}
