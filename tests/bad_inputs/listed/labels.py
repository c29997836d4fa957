"""Labels, weights, parents and edge types that `fit` must refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas

from listed.case import Case
from listed.subjects import (
    FLAT,
    LABELLERS,
    LENGTHS,
    STACKED,
    X,
    Y,
    only_unfitted,
    unfitted_and_fitted,
)

AREA = "estimators, y"
NAN, INF = np.nan, np.inf


def first(*labels: Any) -> list[Any]:
    """Good labels but for the first instance."""
    return [list(labels), *Y[1:]]


PADDED = np.array([[*own, *"O" * (5 - len(own))] for own in Y])
LABELS: dict[str, tuple[Any, str]] = {
    "None": (None, "y is missing"),
    "a number": (3, "y"),
    "a text": ("ABAB", "y"),
    "a function": (print, "y"),
    "one list for all": (FLAT, "y has 14 instances but X has 4"),
    "too few instances": (Y[:3], "y has 3 instances but X has 4"),
    "too many instances": ([*Y, ["A"]], "y has 5 instances but X has 4"),
    "no instances": ([], "y has 0 instances but X has 4"),
    "too few labels": (first("A"), "instance 0: y has 1 labels, X has 3 rows"),
    "too many labels": (first(*"ABAB"), "instance 0: y has 4 labels, X has 3 rows"),
    "an instance that is a text": (["ABA", *Y[1:]], "instance 0: y holds 'ABA'"),
    "an instance that is a number": ([1, *Y[1:]], "instance 0: y holds 1"),
    "an instance that is None": ([None, *Y[1:]], "instance 0: y holds None"),
    "an instance that is a set": ([{"A", "B", "C"}, *Y[1:]], "instance 0: y"),
    "an instance that is a dict": ([dict.fromkeys("ABC", 1), *Y[1:]], "instance 0: y"),
    "bytes as instance": ([b"ABA", *Y[1:]], "instance 0: y"),
    "a dict": (dict(enumerate(Y)), "y"),
    "all unknown": ([[None] * len(own) for own in Y], "y has no known label"),
    "all NaN": ([[NAN] * len(own) for own in Y], "y has no known label"),
    "text and numbers": (first("A", 1, "B"), "y mixes labels that cannot be compared"),
    "text and bytes": (first("A", b"B", "B"), "y mixes labels"),
    "a list as label": (first("A", ["B"], "A"), "instance 0, position 1: y holds"),
    "a set as label": (first("A", {"B"}, "A"), "instance 0, position 1: y holds"),
    "a dict as label": (first("A", {"B": 1}, "A"), "instance 0, position 1: y holds"),
    "an array as label": (first("A", np.eye(2), "A"), "instance 0, position 1: y holds"),
    "one-hot labels": ([np.eye(2)[[0] * len(own)] for own in Y], "instance 0, position 0: y holds"),
    "a byte array as label": (first("A", bytearray(b"B"), "A"), "instance 0, position 1: y"),
    "complex labels": ([[1j * n for n in range(len(own))] for own in Y], "y mixes|y holds"),
    "objects as labels": (first("A", object(), "A"), "y mixes labels"),
    "functions as labels": ([[print, len, print], *Y[1:]], "y mixes labels|y holds"),
    "padded labels": (
        PADDED,
        r"y is padded, cut it: \[own\[:len\(x\)\] for own, x in zip\(y, X\)\]",
    ),
    "an infinite label": (first(1.0, INF, 2.0), "instance 0, position 1: y holds inf|y mixes"),
    "a frame of labels": (pandas.DataFrame({"y": FLAT}), "y"),
}


def _fit(area: str, tried: str, message: str, names: Any = LABELLERS, **given: Any) -> Case:
    def attempt(crf: Any, folder: Path) -> Any:
        return crf.fit(**{"X": X, "y": Y, **given})

    return Case(area, tried, attempt, message, subjects=unfitted_and_fitted(names))


STACKED_LABELS: dict[str, tuple[Any, str]] = {
    "stacked X, too few labels": (FLAT[:-1], "y has 13 labels but X has 14 rows"),
    "stacked X, too many labels": ([*FLAT, "A"], "y has 15 labels but X has 14 rows"),
    "stacked X, lists of labels": (Y, r"y has 4 labels but X has 14 rows: .*concatenate\(y\)"),
    "stacked X, a text": ("ABABABABABABAB", "y"),
    "stacked X, a set": (set(range(14)), "y"),
    "stacked X, labels of two columns": (np.zeros((14, 2)), "y"),
    "stacked X, a list as label": ([*FLAT[:-1], ["A"]], "instance 3, position 4: y holds"),
    "stacked X, a number": (1.0, "y"),
}

WEIGHTS: dict[str, tuple[Any, str]] = {
    "one number": (2.0, "sample_weight has shape"),
    "text": (["a"] * 4, "sample_weight is not a list of numbers"),
    "too few": ([1.0], r"sample_weight has shape \(1,\): pass one weight per instance, 4"),
    "one a position": (np.ones(14), r"sample_weight has shape \(14,\)"),
    "two axes": (np.ones((4, 1)), r"sample_weight has shape \(4, 1\)"),
    "negative": ([1, 1, -1, 1], "instance 2: its weight -1.0 is not 0 or more"),
    "NaN": ([1, 1, NAN, 1], "instance 2: its weight nan is not 0 or more"),
    "infinite": ([1, 1, 1, INF], "instance 3: its weight inf is not 0 or more"),
    "all 0": ([0.0] * 4, "sample_weight"),
    "complex": ([1j] * 4, "sample_weight is not a list of numbers"),
    "a dict": ({"A": 1.0}, "sample_weight"),
    "None among numbers": ([1.0, None, 1.0, 1.0], "instance 1|sample_weight"),
    "ragged": ([[1.0], [1.0, 2.0], [1.0], [1.0]], "sample_weight is not a list of numbers"),
    "beyond all sums": ([1e308] * 4, "sample_weight|weight"),
}


def chain(length: int) -> list[int]:
    """Every node under the one before."""
    return list(range(-1, length - 1))


def tree(*parents: Any) -> list[Any]:
    """Good parents but for the first instance."""
    return [list(parents), *(chain(length) for length in LENGTHS[1:])]


PARENTS: dict[str, tuple[Any, str]] = {
    "a cycle": (tree(1, 2, 0), "instance 0, position .*cycle"),
    "a node under itself": (tree(-1, 1, 0), "instance 0, position 1: the node is its own parent"),
    "beyond the instance": (tree(-1, 0, 7), "instance 0, position 2: parent 7"),
    "below -1": (tree(-1, 0, -2), "instance 0, position 2: parent -2"),
    "too few": (tree(-1, 0), "instance 0: parents has 2 entries, X has 3 rows"),
    "too few instances": (tree(-1, 0, 1)[:3], "parents has 3 instances but X has 4"),
    "floats": (tree(-1.0, 0.0, 1.0), "parents has dtype float64"),
    "NaN": (tree(NAN, 0, 1), "parents has dtype float64"),
    "text": (tree("a", "b", "c"), "parents has dtype"),
    "None at a root": (tree(None, 0, 1), "parents has dtype object"),
    "truth values": (tree(True, False, True), "instance 0: parents has dtype bool"),
    "one number": (0, "parents"),
    "a text": ("abc", "parents"),
    "a matrix": (np.zeros((14, 1), int), "parents"),
    "beyond 64 bits": (tree(2**64, 0, 1), "parents"),
    "ragged": ([[-1, [0], 1], *tree(0)[1:]], "parents"),
    "a dict": ({0: -1}, "parents"),
}
WITH_TYPES = [name for name in LABELLERS if name != "TreeCRF"]
TYPES: dict[str, tuple[Any, str]] = {
    "negative": (
        [[0, -1, 0], *([0] * n for n in LENGTHS[1:])],
        "instance 0, position 1: edge type",
    ),
    "floats": ([[0.5] * n for n in LENGTHS], "edge_types has dtype float64"),
    "text": ([["a"] * n for n in LENGTHS], "edge_types has dtype"),
    "None": ([[None] * n for n in LENGTHS], "edge_types has dtype object"),
    "too few": ([[0], *([0] * n for n in LENGTHS[1:])], "instance 0: edge_types has 1 entries"),
    "too few instances": ([[0, 0, 0]], "edge_types has 1 instances but X has 4"),
    "one number": (0, "edge_types"),
    "far too many": ([[2**30] * n for n in LENGTHS], "edge types"),
    "beyond 32 bits": ([[2**40] * n for n in LENGTHS], "edge_types"),
    "a text": ("aaaaaaaaaaaaaa", "edge_types"),
}

CLASS_WEIGHTS: dict[str, tuple[Any, str]] = {
    "a list": ([1.0, 2.0], r"class_weight is \[1.0, 2.0\]"),
    "a word": ("equal", "class_weight is 'equal'"),
    "of another label": ({"Z": 2.0}, "class_weight has the label 'Z', which y has not"),
    "negative": ({"A": -1.0}, "class_weight of 'A' is -1.0"),
    "NaN": ({"A": NAN}, "class_weight of 'A' is nan"),
    "infinite": ({"A": INF}, "class_weight of 'A' is inf"),
    "text": ({"A": "2"}, "class_weight of 'A' is '2'"),
    "None": ({"A": None}, "class_weight of 'A' is None"),
    "all 0": ({"A": 0.0, "B": 0.0}, "class_weight is 0 for every label"),
    "beyond all sums": ({"A": 1e300}, "class_weight of 'A' is 1e\\+300"),
}


def _weighted(tried: str, given: Any, message: str) -> Case:
    def attempt(crf: Any, folder: Path) -> Any:
        return crf.set_params(class_weight=given).fit(X, Y)

    return Case("estimators, class_weight", tried, attempt, message, subjects=only_unfitted())


CASES = [
    *(_fit(AREA, tried, message, y=y) for tried, (y, message) in LABELS.items()),
    *(
        _fit(AREA, tried, message, X=STACKED, lengths=list(LENGTHS), y=y)
        for tried, (y, message) in STACKED_LABELS.items()
    ),
    *(
        _fit("estimators, sample_weight", tried, message, sample_weight=own)
        for tried, (own, message) in WEIGHTS.items()
    ),
    *(_weighted(tried, *given) for tried, given in CLASS_WEIGHTS.items()),
    *(
        _fit("estimators, parents", tried, message, parents=own)
        for tried, (own, message) in PARENTS.items()
    ),
    *(
        _fit("estimators, edge_types", tried, message, WITH_TYPES, edge_types=own)
        for tried, (own, message) in TYPES.items()
    ),
    _fit(
        "estimators, edge_types",
        "to a TreeCRF",
        "make the type a feature of the position",
        ["TreeCRF"],
        edge_types=[[0] * length for length in LENGTHS],
    ),
]
