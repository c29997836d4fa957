"""How long does one sentence take, and how long do many, against XGBoost's own prediction?

One sentence has 20 positions; there are 9 labels and 300 rounds, once with 50 dense features, once
with words seen through a template (sparse; XGBoost gets the finished matrix). XGBoost is asked for
margins in place and through a DMatrix, on one thread and on all; its fastest way counts. Then all
labelling estimators, warm. Made-up data: only times are of interest.

    python benchmarks/latency.py            # three minutes, half of them training
    python benchmarks/latency.py --render   # only write the page anew

Writes reports/results/latency.json and from it reports/latency.md.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from measuring import (
    RESULTS,
    ROOT,
    command_line,
    fastest,
    host_line,
    machine,
    verdict,
    write_json,
    write_whole,
)

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, TreeCRF
from crfx.features import Template

TARGET = RESULTS / "latency.json"
PAGE = ROOT / "reports" / "latency.md"
MOST_RATIO = 1.2
LENGTH, LABELS, FEATURES, ROUNDS = 20, 9, 50, 300
SENTENCES = {20: 1, 100: 5, 10_000: 500}
"""How many sentences so many rows are."""
REPEATS = {20: 400, 100: 150, 10_000: 5}
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

    found: dict[str, Callable[[], Any]] = {}
    for n_threads in threads():
        booster = xgboost.Booster({"nthread": n_threads})
        booster.load_model(bytearray(raw))
        found[f"in place, {n_threads}"] = lambda booster=booster: booster.inplace_predict(
            X, predict_type="margin"
        )
        found[f"matrix, {n_threads}"] = lambda booster=booster, n=n_threads: booster.predict(
            xgboost.DMatrix(X, nthread=n), output_margin=True
        )
    return found


def threads() -> list[int]:
    """One, and all."""
    return sorted({1, len(os.sched_getaffinity(0))})


@dataclass(frozen=True)
class Subject:
    """A fitted estimator, and how to make sentences for it and to show them to it."""

    crf: Any
    make: Callable[[int, int], tuple[list[Any], list[Any]]]
    seen: Callable[[list[Any]], Any]

    def matrix(self, X: list[Any]) -> Any:
        """The features as XGBoost takes them."""
        vocabulary = self.crf.columns_.vocabulary
        return np.concatenate(X) if vocabulary is None else vocabulary.encode(self.seen(X))[0]


def subjects() -> dict[str, Subject]:
    """All labelling estimators, fitted, by name."""
    kinds = {
        "LinearCRF, dense": LinearCRF(max_iter=20),
        "LinearCRF, words": LinearCRF(max_iter=20),
        "HiddenUnitCRF (100 units), dense": HiddenUnitCRF(n_hidden=100, max_iter=5),
        "TreeCRF (100 rounds), dense": TreeCRF(n_estimators=100),
        "GBCRF (300 rounds), dense": GBCRF(n_estimators=ROUNDS),
        "GBCRF (300 rounds), words": GBCRF(n_estimators=ROUNDS),
    }
    found = {}
    for name, crf in kinds.items():
        make, seen = (words, TEMPLATE) if name.endswith("words") else (dense, list)
        X, y = make(TRAINING_SENTENCES, 0)
        found[name] = Subject(crf.fit(seen(X), y), make, seen)
    return found


def measure_trees(name: str, subject: Subject) -> list[dict[str, Any]]:
    """GBCRF beside XGBoost."""
    found = []
    trees = subject.crf.model_.node
    copies = {n: copy.deepcopy(subject.crf).set_params(n_jobs=n) for n in threads()}
    for rows, n_sentences in SENTENCES.items():
        X, _ = subject.make(n_sentences, 1)
        matrix = subject.matrix(X)
        tasks = xgboost_ways(trees.raw, matrix)
        ours = trees.scores(matrix, rows)
        equal = all(np.array_equal(way(), ours) for way in tasks.values())
        for n, own in copies.items():
            own.model_.use_threads(n)
            tasks[f"predict, {n}"] = lambda own=own, X=X: own.predict(subject.seen(X))
            tasks[f"scores, {n}"] = lambda node=own.model_.node, matrix=matrix, rows=rows: (
                node.scores(matrix, rows)
            )
        seconds = fastest(tasks, REPEATS[rows])
        features = name.rsplit(", ", 1)[1]
        found.append({"features": features, "rows": rows, "seconds": seconds, "equal": equal})
    return found


def measure_estimator(subject: Subject) -> dict[str, dict[str, float]]:
    """Seconds of a call, by rows and kind of prediction."""
    seconds = {}
    for rows, n_sentences in SENTENCES.items():
        X, _ = subject.make(n_sentences, 1)
        tasks = {
            "predict": lambda X=X: subject.crf.predict(subject.seen(X)),
            "marginals": lambda X=X: subject.crf.predict_marginals(subject.seen(X)),
        }
        seconds[str(rows)] = fastest(tasks, REPEATS[rows])
    return seconds


def measure() -> dict[str, Any]:
    """Everything."""
    begin = time.perf_counter()
    fitted = subjects()
    boosted = {name: own for name, own in fitted.items() if name.startswith("GBCRF")}
    result = {
        "command": command_line(),
        "machine": machine(),
        "threads": threads(),
        "trees": [row for name, own in boosted.items() for row in measure_trees(name, own)],
        "estimators": [
            {"name": name, "seconds": measure_estimator(own)} for name, own in fitted.items()
        ],
    }
    return result | {"took": time.perf_counter() - begin}


def ratio_of(result: dict[str, Any]) -> float:
    """Time of one sentence, dense, over that of XGBoost's trees."""
    first = result["trees"][0]["seconds"]
    return best(first, "predict") / best_of_xgboost(first)


def page(result: dict[str, Any]) -> str:
    """The report, rendered from what was measured."""
    ratio = ratio_of(result)
    lines = [
        "# Latency of prediction",
        "",
        "Rendered by `benchmarks/latency.py` from [results/latency.json](results/latency.json).",
        "",
        host_line(result, ("crfx", "numpy", "xgboost")),
        "",
        f"`GBCRF` with {ROUNDS} rounds and {LABELS} labels, warm; sentences of {LENGTH} positions; "
        f"{FEATURES} dense features, or words through a template. `predict` is all of it, from "
        "lists of arrays or of words to labels; its trees alone are beside it. XGBoost's times are "
        "of its trees alone, from a finished matrix: the faster of `inplace_predict` and of "
        "`predict(DMatrix(X))`. Fastest of many runs that take turns.",
        "",
        f"One sentence, dense: {ratio:.2f} of XGBoost's time (≤ {MOST_RATIO}): "
        f"{verdict(ratio <= MOST_RATIO)}.",
        "",
        "| features | rows | threads | predict | its trees | XGBoost in place | XGBoost, matrix | "
        "predict / XGBoost | trees / XGBoost | equal bits |",
        "|---" * 10 + "|",
    ]
    for row in result["trees"]:
        seconds = row["seconds"]
        for n in result["threads"]:
            xgboost = min(seconds[f"in place, {n}"], seconds[f"matrix, {n}"])
            cells = [_time(seconds[f"{way}, {n}"]) for way in WAYS]
            ratios = [f"{seconds[f'{way}, {n}'] / xgboost:.2f}" for way in ("predict", "scores")]
            told = [row["features"], f"{row['rows']:,}", str(n), *cells, *ratios]
            lines.append("| " + " | ".join([*told, "yes" if row["equal"] else "**no**"]) + " |")
    lines += [
        "",
        "All labelling estimators, on all threads; the time of one call:",
        "",
        "| estimator | " + " | ".join(f"{rows:,} rows | marginals" for rows in SENTENCES) + " |",
        "|---" * (2 * len(SENTENCES) + 1) + "|",
    ]
    for row in result["estimators"]:
        cells = [
            _time(row["seconds"][str(rows)][task])
            for rows in SENTENCES
            for task in ("predict", "marginals")
        ]
        lines.append("| " + " | ".join([row["name"], *cells]) + " |")
    return "\n".join([*lines, ""])


WAYS = ("predict", "scores", "in place", "matrix")


def best(seconds: dict[str, float], way: str) -> float:
    """The fastest of a way, over threads."""
    return min(own for name, own in seconds.items() if name.startswith(way))


def best_of_xgboost(seconds: dict[str, float]) -> float:
    """Its fastest way."""
    return min(best(seconds, way) for way in ("in place", "matrix"))


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    if not parser.parse_args().render:
        write_json(TARGET, measure())
    text = page(json.loads(TARGET.read_text(encoding="utf-8")))
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
