"""How does TreeCRF scale with window, order and labels, and how much memory does it take?

Windows and orders are those of the paper's Table 3 and its claim of linear growth (Dietterich,
Ashenfelder and Bulatov 2004), on its proteins; memory is compared with growing the same trees by
XGBoost on rows copied for every label before them. Data come from $CRFX_DATA.

    python benchmarks/treecrf.py                       # three minutes: windows and orders
    python benchmarks/treecrf.py --sets avx2 --quick   # a first look
    python benchmarks/treecrf.py --all                 # all parts, one after the other
    python benchmarks/treecrf.py --only memory         # one part; the others stay as measured

Parts: windows, orders, measured in every instruction set of the processor; linear (the linear CRFs
beside windows), memory, labels (needs 8 GB of memory), methods (McNemar's test between the rows of
`python -m reproduce treecrf`; nothing is trained). All but the last run in processes of their own.
Writes reports/results/treecrf-scale.json and from it reports/treecrf-scale.md.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from instruction_sets import in_child, in_turns, measured, parser_of, report_parts, run_child
from measuring import RESULTS, command_line, held_memory, machine, peak_memory, say
from scipy.stats import binomtest
from treecrf_page import ORDERS_TARGETS, PAGE, WINDOWS_TARGETS, page

from crfx import LinearCRF, TreeCRF
from crfx.datasets import load_ocr, load_qian_sejnowski
from reproduce.datasets import load_brown, load_ud_ewt
from reproduce.experiments.hidden_units import describe
from reproduce.experiments.treecrf import letter_frame
from reproduce.results import read_units
from reproduce.table import find_table, read_table

TARGET = RESULTS / "treecrf-scale.json"
WINDOWS = (1, 3, 5, 7, 11)
LINEAR_WINDOWS = (1, 3, 5, 7)
ORDERS = (1, 2, 3)
ROUNDS = 30
LEAVES = 10
PASSES = 5
METHODS = {
    "protein": ("test",),
    "faq": tuple(map(str, range(10))),
}


def proteins() -> tuple[list[Any], list[Any], list[str]]:
    """Training chains: letters as categories, classes, letters."""
    train = load_qian_sejnowski().train
    return [letter_frame(chain) for chain in train.residues], list(train.y), list(train.residues)


def round_seconds(**settings: Any) -> float:
    """Return the median seconds of a round after those that use the pseudo-likelihood."""
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


def windows(rounds: str) -> dict[str, float]:
    """Measure seconds per round by window, in the instruction set of this process."""
    return {
        str(window): round_seconds(window=window, n_estimators=int(rounds)) for window in WINDOWS
    }


def orders(rounds: str) -> dict[str, float]:
    """Measure seconds per round by order, window 11, in the instruction set of this process."""
    return {
        str(order): round_seconds(window=11, order=order, n_estimators=int(rounds))
        for order in ORDERS
    }


def growth(key: str, ours: dict[str, Any], peers: dict[str, Any]) -> float:
    """Return a round's seconds over those with window 1, or of order 1."""
    return ours["seconds"][key.rpartition("_")[2]] / ours["seconds"]["1"]


def measure_rounds(part: str, sets: Sequence[str], *, quick: bool) -> dict[str, Any]:
    """Measure windows or orders in every instruction set."""
    passes, rounds = (1, 10) if quick else (PASSES, ROUNDS)
    result = in_turns(sets, passes, part, rounds)
    result["sets"] = {isa: {"seconds": seconds} for isa, seconds in result["sets"].items()}
    return {"rounds": rounds, "passes": passes, "leaves": LEAVES, **result}


def linear() -> dict[str, Any]:
    """Measure linear CRFs over all conjunctions, by window."""
    windows = {}
    for window in LINEAR_WINDOWS:
        say(f"linear, window {window}")
        seconds, features = linear_seconds(window)
        windows[str(window)] = {"seconds": seconds, "features": features}
    return windows


def words() -> tuple[list[Any], list[Any]]:
    """OCR words and their labels."""
    data = load_ocr()
    return list(data.X), list(data.y)


def memory(case: str) -> dict[str, Any]:
    """Measure the peak memory of two rounds on OCR: ours, or XGBoost on copied rows."""
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


def labels() -> dict[str, Any]:
    """Seconds and memory with the fine tags of UD English EWT, on words and their spelling."""
    data = load_ud_ewt()
    X = [describe(list(tokens)) for tokens in data.train.tokens]
    test = [describe(list(tokens)) for tokens in data.test.tokens]
    y = [[tag or "_" for tag in tags] for tags in data.train.xpos]
    before, begin = held_memory(), time.perf_counter()
    crf = TreeCRF(n_estimators=12, max_leaves=100, random_state=0).fit(X, y)
    took = time.perf_counter() - begin
    peak = peak_memory()
    right = crf.score(test, [[tag or "_" for tag in tags] for tags in data.test.xpos])
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
    """Return the needs of the Brown corpus: the pairs of labels that occur, and bytes."""
    sentences = load_brown().y
    names = sorted({str(tag) for sentence in sentences for tag in sentence})
    pairs = {pair for tags in sentences for pair in itertools.pairwise(map(str, tags))}
    return {
        "labels": len(names),
        "positions": sum(map(len, sentences)),
        "pairs": len(pairs),
    }


def methods() -> dict[str, Any]:
    """McNemar's exact test between all rows of the table that have their labels kept."""
    stored = read_units(RESULTS, read_table(find_table("treecrf")))
    comparisons: dict[str, Any] = {}
    for data, units in METHODS.items():
        rows = sorted({row for row, _ in stored if row.startswith(f"{data}-")})
        rights = {
            row: [entry for unit in units for entry in stored[row, unit].curves["right"]]
            for row in rows
            if all((row, unit) in stored for unit in units)
        }
        comparisons[data] = [
            {"one": one, "other": other, **mcnemar(rights[one], rights[other])}
            for one, other in itertools.combinations(rights, 2)
            if len(rights[one]) == len(rights[other])
        ]
    return comparisons


def mcnemar(one: list[float], other: list[float]) -> dict[str, Any]:
    """Count positions that only one of two methods has right, and test the difference.

    >>> mcnemar([1.0, 1.0, 0.0], [0.0, 1.0, 0.0])["only_one"]
    1
    """
    a, b = np.array(one) > 0, np.array(other) > 0
    only_one, only_other = int((a & ~b).sum()), int((b & ~a).sum())
    n = only_one + only_other
    p = float(binomtest(only_one, n).pvalue) if n else 1.0
    return {"only_one": only_one, "only_other": only_other, "p": p, "positions": len(a)}


BY_SET = {"windows": WINDOWS_TARGETS, "orders": ORDERS_TARGETS}
ONCE = ("linear", "memory", "labels", "methods")
MEMORY_CASES = ("ours", "copies")


def measure(
    part: str, sets: Sequence[str], result: dict[str, Any], *, quick: bool
) -> dict[str, Any]:
    """Return a part; ``result`` has those measured so far."""
    if part in BY_SET:
        run = partial(measure_rounds, part, sets, quick=quick)
        return measured(sets, run, result.get(part, {}), BY_SET[part], growth)
    say(part)
    begin = time.perf_counter()
    start = {"command": command_line(), "machine": machine()}
    if part == "memory":
        outcome = {case: in_child("memory", case) for case in MEMORY_CASES}
    else:
        outcome = in_child(part)
    return {**start, "found": outcome, "took": time.perf_counter() - begin}


CHILDREN: dict[str, Callable[..., Any]] = {
    "windows": windows,
    "orders": orders,
    "linear": linear,
    "memory": memory,
    "labels": labels,
    "methods": methods,
}


def main() -> None:
    """Measure, print, write."""
    if run_child(CHILDREN):
        return
    parser = parser_of(__doc__.splitlines()[0])
    parser.add_argument("--only", choices=CHILDREN, help="measure one part, keep the others")
    parser.add_argument("--all", action="store_true", help="measure all parts")
    arguments = parser.parse_args()
    parts = [arguments.only] if arguments.only else [*BY_SET, *(ONCE if arguments.all else ())]
    run = partial(measure, quick=arguments.quick)
    report_parts(arguments, parts, TARGET, run, PAGE, page)


if __name__ == "__main__":
    main()
