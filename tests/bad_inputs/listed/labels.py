"""Labels, weights, parents and edge types that `fit` must refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas

from listed.case import Case, arguments_of, each, values_of
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

NAN, INF = np.nan, np.inf


def first(*labels: Any) -> list[Any]:
    """Good labels but for the first instance."""
    return [list(labels), *Y[1:]]


PADDED = np.array([[*labels, *"O" * (5 - len(labels))] for labels in Y])
LABELS: dict[str, tuple[Any, str]] = {
    "None": (None, "y is missing"),
    "no list": (each(3, "ABAB", print), "y is .*, not a list of labels"),
    "another number of instances": (
        each(FLAT, Y[:3], [*Y, ["A"]], [], pandas.DataFrame({"y": FLAT})),
        "y has [0-9]+ instances but X has 4"),
    "another number of labels": (each(first("A"), first(*"ABAB")),
        "instance 0: y has [14] labels, X has 3 rows"),
    "an instance that is no list": (
        each(["ABA", *Y[1:]], [1, *Y[1:]], [None, *Y[1:]], [{"A", "B", "C"}, *Y[1:]],
             [dict.fromkeys("ABC", 1), *Y[1:]], [b"ABA", *Y[1:]]),
        "instance 0: y holds",
    ),
    "a dict": (dict(enumerate(Y)), "y"),
    "all unknown": (each(*([[value] * n for n in LENGTHS] for value in (None, NAN))),
                    "y has no known label"),
    "labels of several kinds": (
        each(first("A", 1, "B"), first("A", b"B", "B"), first("A", object(), "A"),
             [[print, len, print], *Y[1:]], [[1j * n for n in range(len(labels))] for labels in Y]),
        "y mixes labels that cannot be compared",
    ),
    "a label that is no single value": (
        each(*(first("A", value, "A")
               for value in (["B"], {"B"}, {"B": 1}, np.eye(2), bytearray(b"B")))),
        "instance 0, position 1: y holds",
    ),
    "one-hot labels": ([np.eye(2)[[0] * len(labels)] for labels in Y],
        "instance 0, position 0: y holds"),
    "padded labels": (PADDED,
        r"y is padded, cut it: \[own\[:len\(x\)\] for own, x in zip\(y, X\)\]"),
    "an infinite label": (first(1.0, INF, 2.0), "instance 0, position 1: y holds inf|y mixes"),
}  # fmt: skip


def _fit(area: str, tried: str, message: str, names: Any = LABELLERS, **arguments: Any) -> Case:
    def attempt(crf: Any, folder: Path, arguments: dict[str, Any]) -> Any:
        return crf.fit(**{"X": X, "y": Y, **arguments})

    subjects, values = unfitted_and_fitted(names), arguments_of(arguments)
    return Case(f"estimators, {area}", tried, attempt, message, subjects=subjects, values=values)


STACKED_LABELS: dict[str, tuple[Any, str]] = {
    "stacked X, another number of labels": (each(FLAT[:-1], [*FLAT, "A"]),
        "y has 1[35] labels but X has 14 rows"),
    "stacked X, lists of labels": (Y, r"y has 4 labels but X has 14 rows: .*concatenate\(y\)"),
    "stacked X, no list": (each("AB" * 7, 1.0), "y is .*, not a list of labels"),
    "stacked X, a set": (set(range(14)), "y"),
    "stacked X, labels of two columns": (np.zeros((14, 2)), "y"),
    "stacked X, a list as label": ([*FLAT[:-1], ["A"]], "instance 3, position 4: y holds"),
}  # fmt: skip

WEIGHTS: dict[str, tuple[Any, str]] = {
    "another number": (each(2.0, [1.0], np.ones(14), np.ones((4, 1))),
        r"sample_weight has shape .*: pass one weight per instance, 4"),
    "no numbers": (each(["a"] * 4, [1j] * 4, {"A": 1.0}, [[1.0], [1.0, 2.0], [1.0], [1.0]]),
        "sample_weight is not a list of numbers"),
    "out of range": (each(*([1, 1, value, 1] for value in (-1, NAN, INF, None))),
        "instance 2: its weight .* is not 0 or more"),
    "all 0": ([0.0] * 4, "sample_weight is zero for every instance"),
    "beyond all sums": ([1e308] * 4, "sample_weight|weight"),
}  # fmt: skip


def chain(length: int) -> list[int]:
    """Every node under the one before."""
    return list(range(-1, length - 1))


def tree(*parents: Any) -> list[Any]:
    """Good parents but for the first instance."""
    return [list(parents), *(chain(length) for length in LENGTHS[1:])]


PARENTS: dict[str, tuple[Any, str]] = {
    "a cycle": (tree(1, 2, 0), "instance 0, position .*cycle"),
    "a node under itself": (tree(-1, 1, 0), "instance 0, position 1: the node is its own parent"),
    "out of reach": (each(tree(-1, 0, 7), tree(-1, 0, -2)),
        "instance 0, position 2: parent (7|-2)"),
    "too few": (tree(-1, 0), "instance 0: parents has 2 entries, X has 3 rows"),
    "too few instances": (tree(-1, 0, 1)[:3], "parents has 3 instances but X has 4"),
    "of another type": (
        each(tree(-1.0, 0.0, 1.0), tree("a", "b", "c"), tree(None, 0, 1), tree(True, False, True)),
        "instance 0: parents has dtype"),
    "of no axis": (each(0, "abc", {0: -1}), r"parents has shape \(\)"),
    "a matrix": (np.zeros((14, 1), int), "parents"),
    "beyond 64 bits": (tree(2**64, 0, 1), "parents"),
    "ragged": ([[-1, [0], 1], *tree(0)[1:]], "parents"),
}  # fmt: skip
WITH_TYPES = [name for name in LABELLERS if name != "TreeCRF"]
TYPES: dict[str, tuple[Any, str]] = {
    "negative": ([[0, -1, 0], *([0] * n for n in LENGTHS[1:])],
        "instance 0, position 1: edge type"),
    "of another type": (each(*([[value] * n for n in LENGTHS] for value in (0.5, "a", None))),
        "edge_types has dtype"),
    "too few": ([[0], *([0] * n for n in LENGTHS[1:])], "instance 0: edge_types has 1 entries"),
    "too few instances": ([[0, 0, 0]], "edge_types has 1 instances but X has 4"),
    "of no axis": (each(0, "aaaaaaaaaaaaaa"), "edge_types"),
    "far too many": ([[2**30] * n for n in LENGTHS], "edge types"),
    "beyond 32 bits": ([[2**40] * n for n in LENGTHS], "edge_types"),
}  # fmt: skip

CLASS_WEIGHTS: dict[str, tuple[Any, str]] = {
    "no dict": (each([1.0, 2.0], "equal"), "class_weight is "),
    "of another label": ({"Z": 2.0}, "class_weight has the label 'Z', which y has not"),
    "out of range": (each(*({"A": value} for value in (-1.0, NAN, INF, "2", None))),
        "class_weight of 'A' is .*: it must be 0 or more"),
    "all 0": ({"A": 0.0, "B": 0.0}, "class_weight is 0 for every label"),
    "beyond all sums": ({"A": 1e300}, "class_weight of 'A' is 1e\\+300"),
}  # fmt: skip


def _weighted(tried: str, value: Any, message: str) -> Case:
    def attempt(crf: Any, folder: Path, value: Any) -> Any:
        return crf.set_params(class_weight=value).fit(X, Y)

    area, values = "estimators, class_weight", values_of(value)
    return Case(area, tried, attempt, message, subjects=only_unfitted(), values=values)


STACK = {"X": STACKED, "lengths": list(LENGTHS)}
CASES = [
    *(_fit("y", tried, message, y=y) for tried, (y, message) in LABELS.items()),
    *(_fit("y", tried, message, y=y, **STACK) for tried, (y, message) in STACKED_LABELS.items()),
    *(
        _fit("sample_weight", tried, message, sample_weight=value)
        for tried, (value, message) in WEIGHTS.items()
    ),
    *(_weighted(tried, *value) for tried, value in CLASS_WEIGHTS.items()),
    *(_fit("parents", tried, message, parents=up) for tried, (up, message) in PARENTS.items()),
    *(
        _fit("edge_types", tried, message, WITH_TYPES, edge_types=value)
        for tried, (value, message) in TYPES.items()
    ),
    _fit("edge_types", "to a TreeCRF", "make the type a feature of the position", ["TreeCRF"],
         edge_types=[[0] * length for length in LENGTHS]),
]  # fmt: skip
