"""How long does one sentence take, and how long do many, against XGBoost's own prediction?

One sentence has 20 positions; there are 9 labels and 300 rounds, once with 50 dense features, once
with words seen through a template (sparse; XGBoost gets the finished matrix). XGBoost is asked for
margins in place and through a DMatrix, on one thread and on all; its fastest way counts. Then all
labelling estimators, warm, in every instruction set of the processor. Made-up data: only times are
of interest.

    python benchmarks/latency.py                       # four minutes
    python benchmarks/latency.py --sets avx2 --quick   # a first look

Writes reports/results/latency.json and from it reports/latency.md.
"""

from __future__ import annotations

import copy
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from instruction_sets import (
    NAMES,
    Target,
    answers,
    everywhere,
    host_lines,
    in_turns,
    measured,
    parser_of,
    peers_of,
    report,
    run_child,
)
from measuring import RESULTS, ROOT, fastest, say

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, TreeCRF, load
from crfx.features import Template

TARGET = RESULTS / "latency.json"
PAGE = ROOT / "reports" / "latency.md"
TARGETS = (
    Target(
        "sentence",
        "`GBCRF`, one sentence, dense, all of `predict`, in XGBoost's time for the trees",
        everywhere(1.2),
    ),
)
PASSES = 3
LENGTH, LABELS, FEATURES, ROUNDS = 20, 9, 50, 300
SENTENCES = {20: 1, 100: 5, 10_000: 500}
"""How many sentences so many rows are."""
REPEATS = {20: 120, 100: 50, 10_000: 2}  # in a pass
TRAINING_SENTENCES = 200
WORDS = 2000
TEMPLATE = Template("word[-2..2]\nword[-1..0] & word[0..1]\nsuffix(word[0], 1..3)", ["word"])


def dense(n_sentences: int, seed: int) -> tuple[list[Any], list[Any]]:
    """Numbers, and labels that depend on them in noise."""
    random = np.random.default_rng(seed)
    weights = np.random.default_rng(99).normal(size=(FEATURES, LABELS))
    X = [random.normal(size=(LENGTH, FEATURES)).astype(np.float32) for _ in range(n_sentences)]
    y = [(np.tanh(x) @ weights + random.gumbel(size=(LENGTH, LABELS))).argmax(1) for x in X]
    return X, y


def words(n_sentences: int, seed: int) -> tuple[list[Any], list[Any]]:
    """Words, few of them frequent, each with a label that it often has."""
    random = np.random.default_rng(seed)
    usual = np.random.default_rng(99).integers(LABELS, size=WORDS)
    X, y = [], []
    for _ in range(n_sentences):
        drawn = np.minimum(random.zipf(1.3, LENGTH), WORDS) - 1
        labels = np.where(random.random(LENGTH) < 0.7, usual[drawn], random.integers(LABELS))
        X.append([f"Word{number}" for number in drawn])
        y.append(labels)
    return X, y


def xgboost_ways(raw: bytes, X: Any) -> dict[str, Callable[[], Any]]:
    """XGBoost's own predictions of a matrix, by name."""
    import xgboost

    ways: dict[str, Callable[[], Any]] = {}
    for n_threads in threads():
        booster = xgboost.Booster({"nthread": n_threads})
        booster.load_model(bytearray(raw))
        ways[f"in place, {n_threads}"] = lambda booster=booster: booster.inplace_predict(
            X, predict_type="margin"
        )
        ways[f"matrix, {n_threads}"] = lambda booster=booster, n=n_threads: booster.predict(
            xgboost.DMatrix(X, nthread=n), output_margin=True
        )
    return ways


def threads() -> list[int]:
    """Return one thread and all."""
    return sorted({1, len(os.sched_getaffinity(0))})


@dataclass(frozen=True)
class Subject:
    """A fitted estimator, and functions that make its sentences and pass them to it."""

    crf: Any
    make: Callable[[int, int], tuple[list[Any], list[Any]]]
    seen: Callable[[list[Any]], Any]

    def matrix(self, X: list[Any]) -> Any:
        """Return the features as XGBoost takes them."""
        vocabulary = self.crf.columns_.vocabulary
        return np.concatenate(X) if vocabulary is None else vocabulary.encode(self.seen(X))[0]


KINDS = {
    "LinearCRF, dense": LinearCRF(max_iter=20),
    "LinearCRF, words": LinearCRF(max_iter=20),
    "HiddenUnitCRF (100 units), dense": HiddenUnitCRF(n_hidden=100, max_iter=5),
    "TreeCRF (100 rounds), dense": TreeCRF(n_estimators=100),
    "GBCRF (300 rounds), dense": GBCRF(n_estimators=ROUNDS),
    "GBCRF (300 rounds), words": GBCRF(n_estimators=ROUNDS),
}


def save_subjects(folder: Path) -> None:
    """Train all labelling estimators once."""
    for number, (name, crf) in enumerate(KINDS.items()):
        say(f"training {name}")
        make, seen = ways_of(name)
        X, y = make(TRAINING_SENTENCES, 0)
        crf.fit(seen(X), y).save(folder / f"{number}.crfx")


def ways_of(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return how sentences are made, and shown to an estimator."""
    return (words, TEMPLATE) if name.endswith("words") else (dense, list)


def subjects(folder: str) -> dict[str, Subject]:
    """Return all labelling estimators, by name."""
    return {
        name: Subject(load(Path(folder) / f"{number}.crfx"), *ways_of(name))
        for number, name in enumerate(KINDS)
    }


def boosted(folder: str) -> dict[str, Subject]:
    """Return those that have trees of XGBoost, by kind of features."""
    return {
        name.rpartition(", ")[2]: subject
        for name, subject in subjects(folder).items()
        if name.startswith("GBCRF")
    }


def digest(scores: Any) -> str:
    """Return what tells arrays apart, to the bit."""
    return hashlib.sha256(np.ascontiguousarray(scores, np.float32).tobytes()).hexdigest()


def peer(folder: str, share: str) -> dict[str, Any]:
    """Measure XGBoost's own predictions: seconds by features, rows and way."""
    result: dict[str, Any] = {}
    for features, subject in boosted(folder).items():
        result[features] = {}
        for rows, n_sentences in SENTENCES.items():
            matrix = subject.matrix(subject.make(n_sentences, 1)[0])
            tasks = xgboost_ways(subject.crf.model_.node.raw, matrix)
            digests = {digest(way()) for way in tasks.values()}
            result[features][str(rows)] = {
                "seconds": fastest(tasks, repeats_of(rows, share)),
                "digest": digests.pop() if len(digests) == 1 else "",
            }
    return result


def repeats_of(rows: int, share: str) -> int:
    """Return how often a call with so many rows is repeated."""
    return max(1, int(float(share) * REPEATS[rows]))


def core(folder: str, share: str) -> dict[str, Any]:
    """Measure ours in the instruction set of this process."""
    trees: dict[str, Any] = {}
    for features, subject in boosted(folder).items():
        trees[features] = {
            str(rows): time_trees(subject, rows, n_sentences, share)
            for rows, n_sentences in SENTENCES.items()
        }
    estimators = {
        name: time_estimator(subject, share) for name, subject in subjects(folder).items()
    }
    return {"trees": trees, "estimators": estimators}


def time_trees(subject: Subject, rows: int, n_sentences: int, share: str) -> dict[str, Any]:
    """Return seconds of GBCRF and of its trees alone, by threads."""
    X, _ = subject.make(n_sentences, 1)
    matrix = subject.matrix(X)
    tasks: dict[str, Callable[[], Any]] = {}
    for n in threads():
        crf = copy.deepcopy(subject.crf).set_params(n_jobs=n)
        crf.model_.use_threads(n)
        tasks[f"predict, {n}"] = lambda crf=crf: crf.predict(subject.seen(X))
        tasks[f"scores, {n}"] = partial(crf.model_.node.scores, matrix, rows)
    return {
        "seconds": fastest(tasks, repeats_of(rows, share)),
        "digest": digest(subject.crf.model_.node.scores(matrix, rows)),
    }


def time_estimator(subject: Subject, share: str) -> dict[str, dict[str, float]]:
    """Return seconds of a call, by rows and kind of prediction."""
    seconds = {}
    for rows, n_sentences in SENTENCES.items():
        X, _ = subject.make(n_sentences, 1)
        tasks = {
            "predict": lambda X=X: subject.crf.predict(subject.seen(X)),
            "marginals": lambda X=X: subject.crf.predict_marginals(subject.seen(X)),
        }
        seconds[str(rows)] = fastest(tasks, repeats_of(rows, share))
    return seconds


def measure(sets: Sequence[str], *, quick: bool) -> dict[str, Any]:
    """Measure everything."""
    passes, share = (1, 0.1) if quick else (PASSES, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        save_subjects(Path(folder))
        result = in_turns(sets, passes, "core", folder, share, peers="peer")
    return {"threads": threads(), **result}


def figure(key: str, ours_by_part: dict[str, Any], peers: dict[str, Any]) -> float:
    """Return the time of one sentence, dense, over that of XGBoost's trees."""
    ours, theirs = (each["dense"]["20"]["seconds"] for each in (ours_by_part["trees"], peers))
    return best(ours, "predict") / best_of_xgboost(theirs)


def page(result: dict[str, Any]) -> str:
    """Return the report, rendered from what was measured."""
    lines = [
        "# Latency of prediction",
        "",
        *answers([(result, TARGETS)]),
        "",
        f"`GBCRF` with {ROUNDS} rounds and {LABELS} labels, warm; sentences of {LENGTH} positions; "
        f"{FEATURES} dense features, or words through a template. `predict` is all of it, from "
        "lists of arrays or of words to labels; its trees alone are beside it. XGBoost's times are "
        "of its trees alone, from a finished matrix: the faster of `inplace_predict` and of "
        "`predict(DMatrix(X))`. The fastest of many runs, in turns.",
        "",
        "## Beside XGBoost",
        "",
        "| features | rows | threads | instruction set | predict | its trees | XGBoost in place | "
        "XGBoost, matrix | predict / XGBoost | trees / XGBoost | equal bits |",
        "|---" * 11 + "|",
    ]
    for features in ("dense", "words"):
        for rows in SENTENCES:
            for n in result["threads"]:
                for isa, figures in result["sets"].items():
                    ours = figures["trees"][features][str(rows)]
                    theirs = peers_of(result, isa)[features][str(rows)]
                    row = tree_cells(ours["seconds"], theirs["seconds"], n)
                    equal = "yes" if ours["digest"] == theirs["digest"] else "**no**"
                    cells = [features, f"{rows:,}", str(n), NAMES[isa], *row, equal]
                    lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "## All labelling estimators",
        "",
        "On all threads; the time of one call:",
        "",
        "| estimator | instruction set | "
        + " | ".join(f"{rows:,} rows | marginals" for rows in SENTENCES)
        + " |",
        "|---" * (2 * len(SENTENCES) + 2) + "|",
    ]
    for name in KINDS:
        for isa, figures in result["sets"].items():
            cells = [
                _time(figures["estimators"][name][str(rows)][task])
                for rows in SENTENCES
                for task in ("predict", "marginals")
            ]
            lines.append("| " + " | ".join([name, NAMES[isa], *cells]) + " |")
    lines += [
        "",
        "Rendered by `benchmarks/latency.py` from [results/latency.json](results/latency.json).",
        "",
        *host_lines(result, ("crfx", "numpy", "xgboost")),
    ]
    return "\n".join([*lines, ""])


def tree_cells(ours: dict[str, float], theirs: dict[str, float], n: int) -> list[str]:
    """Return seconds of both on so many threads, and their ratios."""
    xgboost = [theirs[f"{way}, {n}"] for way in ("in place", "matrix")]
    seconds = [ours[f"{way}, {n}"] for way in ("predict", "scores")]
    return [
        *map(_time, seconds),
        *map(_time, xgboost),
        *(f"{one / min(xgboost):.2f}" for one in seconds),
    ]


def best(seconds: dict[str, float], way: str) -> float:
    """Return the fastest time of a way, over threads."""
    return min(value for name, value in seconds.items() if name.startswith(way))


def best_of_xgboost(seconds: dict[str, float]) -> float:
    """Return the time of XGBoost's fastest way."""
    return min(best(seconds, way) for way in ("in place", "matrix"))


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


CHILDREN = {"core": core, "peer": peer}


def main() -> None:
    """Measure, print, write."""
    if run_child(CHILDREN):
        return
    arguments = parser_of(__doc__.splitlines()[0]).parse_args()

    def measure_all(sets: list[str], recorded: dict[str, Any]) -> dict[str, Any]:
        run = partial(measure, sets, quick=arguments.quick)
        return measured(sets, run, recorded, TARGETS, figure)

    report(arguments, TARGET, measure_all, PAGE, page)


if __name__ == "__main__":
    main()
