"""How does TreeCRF scale: with the window, the order, the labels, and how much memory does it take?

Windows and orders are those of the paper's Table 3 and its claim of linear growth (Dietterich,
Ashenfelder and Bulatov 2004), on its proteins; memory is compared with growing the same trees by
XGBoost on rows copied for every label before them. Data come from $CRFX_DATA.

    python benchmarks/treecrf.py                  # all parts, one after the other
    python benchmarks/treecrf.py --only windows   # one part; the others stay as measured
    python benchmarks/treecrf.py --render         # only write the page anew

Parts: windows, orders, memory, labels (needs 8 GB of memory), methods (McNemar's test between the
rows of `crfx reproduce treecrf`; nothing is trained). All but the last run in processes of their
own. Writes reports/results/treecrf-scale.json and from it reports/treecrf-scale.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import (
    RESULTS,
    command_line,
    held_memory,
    machine,
    peak_memory,
    write_json,
    write_whole,
)
from scipy.stats import binomtest
from treecrf_page import PAGE, page

from crfx import LinearCRF, TreeCRF
from crfx.datasets import load_brown, load_ocr, load_qian_sejnowski, load_ud_ewt
from crfx.report.experiments.hidden_units import describe
from crfx.report.experiments.treecrf import letter_frame

TARGET = RESULTS / "treecrf-scale.json"
WINDOWS = (1, 3, 5, 7, 11)
LINEAR_WINDOWS = (1, 3, 5, 7)
ORDERS = (1, 2, 3)
ROUNDS = 30
LEAVES = 10
REPEATS = 5
METHODS = {
    "protein": ("test",),
    "faq": tuple(map(str, range(10))),
}


def say(text: str) -> None:
    """Tell whoever waits; results have standard output to themselves."""
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def proteins() -> tuple[list[Any], list[Any], list[str]]:
    """Training chains: letters as categories, classes, letters."""
    train = load_qian_sejnowski().train
    return [letter_frame(chain) for chain in train.residues], list(train.y), list(train.residues)


def round_seconds(**settings: Any) -> float:
    """Seconds of the fastest round after the first ones, which follow the pseudo-likelihood."""
    X, y, _ = proteins()
    settings = {"n_estimators": ROUNDS, "max_leaves": LEAVES, "n_jobs": 1, **settings}
    crf = TreeCRF(random_state=0, **settings).fit(X, y)
    return float(np.median(crf.history_["seconds"][crf.pseudo_likelihood_rounds :]))


def all_conjunctions(chain: str, window: int) -> list[list[str]]:
    """Per position, every non-empty set of places of its window with what stands there."""
    half = window // 2
    padded = "." * half + chain + "." * half
    places = range(window)
    chosen = [
        which for size in range(1, window + 1) for which in itertools.combinations(places, size)
    ]
    return [
        ["".join(f"{place}{padded[at + place]}" for place in which) for which in chosen]
        for at in range(len(chain))
    ]


def linear_seconds(window: int) -> tuple[float, int]:
    """Seconds of an iteration of a linear CRF over all conjunctions, and how many occur."""
    _, y, chains = proteins()
    X = [all_conjunctions(chain, window) for chain in chains]
    crf = LinearCRF(edges="linear", max_iter=6, n_jobs=1).fit(X, y)
    return float(np.median(crf.history_["seconds"][1:])), int(crf.n_features_in_)


def windows(case: str | None) -> dict[str, Any]:
    """Seconds per round by window."""
    best = {window: float("inf") for window in WINDOWS}
    for _ in range(REPEATS):  # taking turns, so that a slow moment hits all
        for window in WINDOWS:
            best[window] = min(best[window], round_seconds(window=window))
    linear = {}
    for window in LINEAR_WINDOWS:
        say(f"linear, window {window}")
        seconds, features = linear_seconds(window)
        linear[window] = {"seconds": seconds, "features": features}
    return {"treecrf": best, "linear": linear, "rounds": ROUNDS, "leaves": LEAVES}


def orders(case: str | None) -> dict[str, Any]:
    """Seconds per round by order, window 11."""
    best = {order: float("inf") for order in ORDERS}
    for _ in range(REPEATS):
        for order in ORDERS:
            best[order] = min(best[order], round_seconds(window=11, order=order))
    return {"seconds": best, "rounds": ROUNDS, "leaves": LEAVES}


def words() -> tuple[list[Any], list[Any]]:
    """OCR words and their labels."""
    data = load_ocr()
    return list(data.X), list(data.y)


def memory(case: str | None) -> dict[str, Any]:
    """Peak memory of two rounds on OCR: ours, and XGBoost on copied rows."""
    assert case is not None
    X, y = words()
    stacked, labels = np.concatenate(X), np.concatenate(y)
    before, begin = held_memory(), time.perf_counter()
    if case == "ours":
        crf = TreeCRF(
            n_estimators=2, pseudo_likelihood_rounds=0, max_leaves=30, n_jobs=1, random_state=0
        ).fit(stacked, labels, lengths=[len(x) for x in X])
        seconds = crf.history_["seconds"][-1]
    else:
        seconds = grow_on_copies(stacked, len(np.unique(labels)))
    return {
        "before": before,
        "peak": peak_memory(),
        "took": time.perf_counter() - begin,
        "seconds": seconds,
        "rows": len(stacked),
        "features": stacked.shape[1],
        "labels": len(np.unique(labels)),
    }


def grow_on_copies(X: np.ndarray[Any, Any], n_labels: int) -> float:
    """Grow the trees of one round on rows x labels, the label before a column of categories.

    With gradients at random: what is measured is memory and time.  As ours, it holds the scores of
    all pairs and their gradient, which here is the gradient of the copies.
    """
    import xgboost

    n_rows = len(X)
    scores = np.zeros((n_rows * n_labels, n_labels), np.float32)
    gradient = np.random.default_rng(0).normal(size=scores.shape).astype(np.float32)
    wide = np.empty((n_rows * n_labels, X.shape[1] + 1), np.float32)
    wide[:, :-1] = np.repeat(X, n_labels, axis=0)
    wide[:, -1] = np.tile(np.arange(n_labels), n_rows)
    kinds = ["q"] * X.shape[1] + ["c"]
    matrix = xgboost.QuantileDMatrix(wide, feature_types=kinds, enable_categorical=True, nthread=1)
    booster = xgboost.Booster(
        {
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": 30,
            "max_depth": 0,
            "num_class": n_labels,
            "objective": "multi:softprob",
            "base_score": 0.0,
            "disable_default_eval_metric": True,
            "nthread": 1,
        },
        [matrix],
    )
    begin = time.perf_counter()
    booster.boost(matrix, 0, grad=gradient, hess=np.ones_like(gradient))
    return time.perf_counter() - begin


def labels(case: str | None) -> dict[str, Any]:
    """Seconds and memory with the fine tags of UD English EWT, on words and their spelling."""
    data = load_ud_ewt()
    X = [describe(list(tokens)) for tokens in data.train.tokens]
    test = [describe(list(tokens)) for tokens in data.test.tokens]
    y = [[tag or "_" for tag in own] for own in data.train.xpos]
    before, begin = held_memory(), time.perf_counter()
    crf = TreeCRF(n_estimators=12, max_leaves=100, random_state=0).fit(X, y)
    took = time.perf_counter() - begin
    peak = peak_memory()
    right = crf.score(test, [[tag or "_" for tag in own] for own in data.test.xpos])
    return {
        "before": before,
        "peak": peak,
        "took": took,
        "seconds": float(np.median(crf.history_["seconds"][crf.pseudo_likelihood_rounds :])),
        "rounds": crf.n_rounds_,
        "instances": len(X),
        "positions": sum(map(len, y)),
        "features": int(crf.n_features_in_),
        "labels": len(crf.classes_),
        "accuracy": right,
        "limit": brown_limit(),
    }


def brown_limit() -> dict[str, Any]:
    """What the Brown corpus would need: the pairs of labels that occur, and bytes."""
    sentences = load_brown().y
    names = sorted({str(tag) for sentence in sentences for tag in sentence})
    pairs = {pair for own in sentences for pair in itertools.pairwise(map(str, own))}
    return {
        "labels": len(names),
        "positions": sum(map(len, sentences)),
        "pairs": len(pairs),
    }


def methods(case: str | None) -> dict[str, Any]:
    """McNemar's exact test between all rows of the table that have their labels kept."""
    found: dict[str, Any] = {}
    for data, units in METHODS.items():
        rights = {
            folder.name: rights_of(folder, units)
            for folder in sorted((RESULTS / "treecrf").glob(f"{data}-*"))
        }
        whole = {name: right for name, right in rights.items() if right is not None}
        found[data] = [
            {"one": one, "other": other, **mcnemar(whole[one], whole[other])}
            for one, other in itertools.combinations(whole, 2)
            if len(whole[one]) == len(whole[other])
        ]
    return found


def rights_of(folder: Any, units: tuple[str, ...]) -> list[float] | None:
    """Position by position, 1 where a row was right; None unless all units are there."""
    files = [folder / f"{unit}.json" for unit in units]
    if not all(file.exists() for file in files):
        return None
    curves = [json.loads(file.read_text(encoding="utf-8"))["curves"] for file in files]
    return [entry for curve in curves for entry in curve["right"]]


def mcnemar(one: list[float], other: list[float]) -> dict[str, Any]:
    """Positions that only one of two methods has right, and how probable so uneven a share is.

    >>> mcnemar([1.0, 1.0, 0.0], [0.0, 1.0, 0.0])["only_one"]
    1
    """
    a, b = np.array(one) > 0, np.array(other) > 0
    only_one, only_other = int((a & ~b).sum()), int((b & ~a).sum())
    n = only_one + only_other
    p = float(binomtest(only_one, n).pvalue) if n else 1.0
    return {"only_one": only_one, "only_other": only_other, "p": p, "positions": len(a)}


PARTS: dict[str, Callable[[str | None], dict[str, Any]]] = {
    "windows": windows,
    "orders": orders,
    "memory": memory,
    "labels": labels,
    "methods": methods,
}
CASES = {"memory": ("ours", "copies")}


def apart(part: str, case: str | None = None) -> Any:
    """Run a part in a process of its own."""
    say(f"{part}{' ' + case if case else ''}")
    asked = [sys.executable, __file__, "--one", part, *(["--case", case] if case else [])]
    done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def measure(part: str) -> None:
    """Measure a part and record it beside the others."""
    begin = time.perf_counter()
    cases = CASES.get(part)
    content = {case: apart(part, case) for case in cases} if cases else apart(part)
    result = recorded()
    result[part] = {
        "found": content,
        "command": command_line(),
        "machine": machine(),
        "took": time.perf_counter() - begin,
    }
    write_json(TARGET, result)


def recorded() -> dict[str, Any]:
    """What is on disk."""
    if not TARGET.exists():
        return {}
    found: dict[str, Any] = json.loads(TARGET.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, help="measure one part, keep the others")
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    parser.add_argument("--one", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(PARTS[arguments.one](arguments.case)))
        return
    parts = [] if arguments.render else [arguments.only] if arguments.only else list(PARTS)
    for part in parts:
        measure(part)
    text = page(recorded())
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
