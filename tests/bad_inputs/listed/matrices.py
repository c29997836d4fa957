"""X of numbers: arrays, sparse matrices and data frames that `fit` must refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy import sparse

from listed.case import Case, each, values_of
from listed.subjects import FLAT, LENGTHS, STACKED, X, Y, unfitted_and_fitted

AREA = "estimators, X"
NAN, INF = np.nan, np.inf


def with_entry(value: Any) -> list[Any]:
    """Good matrices but for one entry, in instance 1, position 2, feature 1."""
    changed = [x.copy() for x in X]
    changed[1][2, 1] = value
    return changed


def first(other: Any) -> list[Any]:
    """Good matrices but for the first."""
    return [other, *X[1:]]


def bad_csr(indices: Any, indptr: Any, data: Any = (1.0, 1.0, 1.0)) -> Any:
    """A CSR matrix of three columns whose arrays were changed after it was made."""
    matrix = sparse.csr_matrix(np.eye(3))
    matrix.indices = np.array(indices, np.int32)
    matrix.indptr = np.array(indptr, np.int32)
    matrix.data = np.array(data)
    return matrix


FRAMES = [pandas.DataFrame(x, columns=list("abc")) for x in X]
SPARSE = [sparse.csr_matrix(x) for x in X]
TEXT = pandas.DataFrame({"a": ["x", "y", "z"], "b": [1.0, 2.0, 3.0], "c": [0.0, 0.0, 0.0]})
TWICE = pandas.DataFrame(X[0], columns=["a", "a", "b"])
DATED = pandas.DataFrame({"a": pandas.to_datetime(["2020-01-01"] * 3), "b": [1, 2, 3]})
ENDLESS = pandas.DataFrame({"a": [1.0, INF, 2.0], "b": [1, 2, 3]})

PADDED = np.zeros((4, 5, 3))
for number, x in enumerate(X):
    PADDED[number, : len(x)] = x

TRIED: dict[str, tuple[Any, str]] = {
    "no list": (each(None, 3, print), "X is .*: pass a list"),
    "a text": (each("abc", ["abc", *X[1:]]), "wrap a single instance in a list"),
    "nothing": (each([], (), iter(())), "X has no instances"),
    "instances of no axis": (each([None] * 4, {1, 2}, FRAMES[0]["a"]), r"instance 0: X has shape"),
    "one matrix without lengths": (STACKED, r"shape \(14, 3\).*lengths=\[5, 3\].*fit\(\[X\[:5\]"),
    "one sparse matrix without lengths": (sparse.csr_matrix(STACKED), "pass lengths="),
    "one data frame without lengths": (pandas.DataFrame(STACKED), r"lengths=.*X.iloc\[:5\]"),
    "one row without lengths": (STACKED[0], r"X has shape \(3,\)"),
    "a matrix of no axis": (np.array(1.0), r"X has shape \(\)"),
    "an instance of one axis": (first(X[0][:, 0]), r"instance 0: X has shape \(3,\)"),
    "an instance of three axes": (first(X[0][None]), r"instance 0: X has shape \(1, 3, 3\)"),
    "four axes": (np.zeros((4, 3, 3, 1)), r"X has shape \(4, 3, 3, 1\)"),
    "rows of unequal lengths": (first([[1.0, 2.0, 3.0], [1.0], [2.0]]), "instance 0: .*unequal"),
    "instances of unequal width": (first(X[0][:, :2]), "instance 1: X has 3 features"),
    "no features": ([x[:, :0] for x in X], "X has no features"),
    "only empty instances": ([np.zeros((0, 3))] * 4, "every instance of X is empty"),
    "text among numbers": (first(np.array([["1", "a", "2"]] * 3)), "instance 0: .*pass numbers"),
    "objects": (each(first(X[0].astype(object)), first([[1.0, None, 2.0]] * 3)),
        "instance 0: X has dtype object"),
    "complex numbers": (first(X[0].astype(complex)), "instance 0: X has dtype complex128"),
    "dates": (first(np.full((3, 3), np.datetime64("2020-01-01"))), "X has dtype datetime64"),
    "a masked array": (first(np.ma.masked_greater(X[0], 0.0)), "masked array: put NaN"),
    "infinite numbers": (each(with_entry(INF), with_entry(-INF), with_entry(1e300)),
        "instance 1, position 2: feature 1 is infinite, or too large"),
    "dense among sparse": ([SPARSE[0], *X[1:]], "instance 1: X is dense, but others are sparse"),
    "a sparse vector": (first(sparse.coo_array(X[0][:, 0])), "X"),
    "damaged CSR": (
        each(
            [bad_csr([0, 1, 9], [0, 1, 2, 3])],
            [bad_csr([0, -1, 2], [0, 1, 2, 3])],
            [bad_csr([0, 1, 2], [0, 3, 2, 3])],
            [bad_csr([0, 1, 2], [0, 1, 2, 7])],
            [bad_csr([0, 1, 2], [0, 1, 2, 3], [1.0])],
            [bad_csr([0, 1, 2], [0, 3])],
        ),
        "no valid sparse matrix",
    ),
    "CSR of complex numbers": ([SPARSE[0].astype(complex)], "instance 0: X has dtype complex128"),
    "CSR with infinity": ([sparse.csr_matrix(with_entry(INF)[1])],
        "instance 0, position 2: feature 1 is infinite"),
    "a frame of text": ([TEXT], "column 'a' has dtype .*make it a category"),
    "a frame of dates": ([DATED], "column 'a' has dtype datetime64"),
    "a frame with a name twice": ([TWICE], "two columns 'a'"),
    "a frame with infinity": ([ENDLESS], "instance 0, position 1: feature 0 is infinite"),
    "frames with other columns": ([FRAMES[0], FRAMES[1].rename(columns={"a": "z"}), *FRAMES[2:]],
        "instance 1: its columns differ"),
    "frames with other types": ([FRAMES[0], FRAMES[1].astype({"a": "category"}), *FRAMES[2:]],
        "instance 1: its column types"),
    "an array among frames": ([FRAMES[0], X[1], *FRAMES[2:]], "instance 1: X is no data frame"),
    "a matrix among words": ([[{"a": 1.0}] * 3, *X[1:]], "instance 1"),
    "rows in a list without lengths": (STACKED.tolist(), r"instance 0: X .*one matrix, np.array"),
    "one feature a position, of one axis": ([x[:, 0] for x in X], r"0: X .*reshape\(-1, 1\)"),
    "sentences as texts": (["a b c", "a b c d", "a b", "a b c d e"], r"text.split\(\)"),
    "padded": (PADDED, r"if X is padded, cut it: \[x\[:len\(own\)\] for x, own in zip\(X, y\)\]"),
}  # fmt: skip


def _case(tried: str, value: Any, message: str) -> Case:
    def attempt(crf: Any, folder: Path, value: Any) -> Any:
        return crf.fit(value, Y[: len(value)] if isinstance(value, list) else Y)

    subjects = unfitted_and_fitted()
    return Case(AREA, tried, attempt, message, subjects=subjects, values=values_of(value))


NO_LENGTHS: dict[str, tuple[Any, str]] = {
    "lengths that do not add up": (each([3, 4, 2], []), "lengths add up to . but X has 14 rows"),
    "a negative length": ([3, 13, -2], "instance 2: length -2 is negative"),
    "lengths of floats": ([3.0, 4.0, 2.0, 5.0], "lengths has dtype float64"),
    "lengths of text": (["3", "4", "2", "5"], "lengths"),
    "lengths of no axis": (each(14, True), r"lengths has shape \(\)"),
    "lengths of two axes": ([[3, 4], [2, 5]], "lengths"),
    "lengths that are ragged": ([[3], [4, 2, 5]], "lengths"),
    "lengths with None": ([3, 4, None, 5], "lengths"),
    "lengths beyond 64 bits": (each([2**63, 14], [2**62] * 4), "lengths"),
}


def _fit(tried: str, X: Any, y: Any, message: str, lengths: Any = None) -> Case:
    def attempt(crf: Any, folder: Path, value: Any) -> Any:
        return crf.fit(X, y) if value is None else crf.fit(X, y, lengths=value)

    subjects = unfitted_and_fitted()
    return Case(AREA, tried, attempt, message, subjects=subjects, values=values_of(lengths))


CASES = [
    *(_case(tried, *value) for tried, value in TRIED.items()),
    *(_fit(tried, STACKED, FLAT, message, value) for tried, (value, message) in NO_LENGTHS.items()),
    _fit("lengths beside a list", X, Y, "lengths are given, but X is a list", list(LENGTHS)),
    _fit("a padded array beside lengths", PADDED, Y,
         r"padded, cut it, \[x\[:n\] for x, n in zip\(X, lengths\)\]", list(LENGTHS)),
    _fit("stacked X and y, swapped", FLAT, STACKED, "are X and y swapped", list(LENGTHS)),
    _fit("X and y, swapped", Y, X, "are X and y swapped"),
]  # fmt: skip
