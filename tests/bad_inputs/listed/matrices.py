"""X of numbers: arrays, sparse matrices and data frames that `fit` must refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy import sparse

from listed.case import Case
from listed.subjects import STACKED, X, Y, unfitted_and_fitted

AREA = "estimators, X"
NAN, INF = np.nan, np.inf


def with_entry(value: Any) -> list[Any]:
    """Good matrices but for one entry, in instance 1, position 2, feature 1."""
    changed = [own.copy() for own in X]
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


FRAMES = [pandas.DataFrame(own, columns=list("abc")) for own in X]
SPARSE = [sparse.csr_matrix(own) for own in X]
TEXT = pandas.DataFrame({"a": ["x", "y", "z"], "b": [1.0, 2.0, 3.0], "c": [0.0, 0.0, 0.0]})
TWICE = pandas.DataFrame(X[0], columns=["a", "a", "b"])
DATED = pandas.DataFrame({"a": pandas.to_datetime(["2020-01-01"] * 3), "b": [1, 2, 3]})
ENDLESS = pandas.DataFrame({"a": [1.0, INF, 2.0], "b": [1, 2, 3]})

PADDED = np.zeros((4, 5, 3))
for number, own in enumerate(X):
    PADDED[number, : len(own)] = own

TRIED: dict[str, tuple[Any, str]] = {
    "None": (None, "X is None: pass a list"),
    "a number": (3, "X is 3: pass a list"),
    "a text": ("abc", "wrap a single instance in a list"),
    "bytes": (b"abc", "X"),
    "an empty list": ([], "X has no instances"),
    "an empty tuple": ((), "X has no instances"),
    "a set of numbers": ({1, 2}, "X"),
    "instances that are numbers": ([1, 2, 3, 4], r"instance 0: X"),
    "instances that are None": ([None] * 4, "instance 0: X"),
    "one matrix without lengths": (STACKED, r"shape \(14, 3\).*lengths=\[5, 3\].*fit\(\[X\[:5\]"),
    "one sparse matrix without lengths": (sparse.csr_matrix(STACKED), "pass lengths="),
    "one data frame without lengths": (pandas.DataFrame(STACKED), r"lengths=.*X.iloc\[:5\]"),
    "one row without lengths": (STACKED[0], r"X has shape \(3,\)"),
    "a matrix of no axis": (np.array(1.0), r"X has shape \(\)"),
    "an instance of one axis": (first(X[0][:, 0]), r"instance 0: X has shape \(3,\)"),
    "an instance of three axes": (first(X[0][None]), r"instance 0: X has shape \(1, 3, 3\)"),
    "an instance of no axis": (first(np.array(1.0)), r"instance 0: X has shape \(\)"),
    "four axes": (np.zeros((4, 3, 3, 1)), r"X has shape \(4, 3, 3, 1\)"),
    "rows of unequal lengths": (first([[1.0, 2.0, 3.0], [1.0], [2.0]]), "instance 0: .*unequal"),
    "instances of unequal width": (first(X[0][:, :2]), "instance 1: X has 3 features"),
    "no features": ([own[:, :0] for own in X], "X has no features"),
    "only empty instances": ([np.zeros((0, 3))] * 4, "every instance of X is empty"),
    "text among numbers": (first(np.array([["1", "a", "2"]] * 3)), "instance 0: .*pass numbers"),
    "an array of objects": (first(X[0].astype(object)), "instance 0: X has dtype object"),
    "None among numbers": (first([[1.0, None, 2.0]] * 3), "instance 0: X has dtype object"),
    "complex numbers": (first(X[0].astype(complex)), "instance 0: X has dtype complex128"),
    "dates": (first(np.full((3, 3), np.datetime64("2020-01-01"))), "X has dtype datetime64"),
    "records": (first(np.zeros(3, dtype=[("a", float)])), "instance 0: X"),
    "a masked array": (first(np.ma.masked_greater(X[0], 0.0)), "masked array: put NaN"),
    "an infinite number": (with_entry(INF), "instance 1, position 2: feature 1 is infinite"),
    "minus infinity": (with_entry(-INF), "instance 1, position 2: feature 1 is infinite"),
    "a number beyond float32": (with_entry(1e300), "instance 1, position 2: .*too large"),
    "whole numbers beyond float32": (
        [np.full(own.shape, 10**30, dtype=object) for own in X],
        "instance 0: X has dtype object",
    ),
    "dense among sparse": ([SPARSE[0], *X[1:]], "instance 1: X is dense, but others are sparse"),
    "a sparse vector": (first(sparse.coo_array(X[0][:, 0])), "X"),
    "CSR with a column beyond": ([bad_csr([0, 1, 9], [0, 1, 2, 3])], "no valid sparse matrix"),
    "CSR with a negative column": ([bad_csr([0, -1, 2], [0, 1, 2, 3])], "no valid sparse matrix"),
    "CSR whose rows fall": ([bad_csr([0, 1, 2], [0, 3, 2, 3])], "no valid sparse matrix"),
    "CSR whose rows end beyond": ([bad_csr([0, 1, 2], [0, 1, 2, 7])], "no valid sparse matrix"),
    "CSR with too little data": (
        [bad_csr([0, 1, 2], [0, 1, 2, 3], [1.0])],
        "no valid sparse matrix",
    ),
    "CSR with too few rows": ([bad_csr([0, 1, 2], [0, 3])], "no valid sparse matrix"),
    "CSR of complex numbers": ([SPARSE[0].astype(complex)], "instance 0: X has dtype complex128"),
    "CSR with infinity": (
        [sparse.csr_matrix(with_entry(INF)[1])],
        "instance 0, position 2: feature 1 is infinite",
    ),
    "a frame of text": ([TEXT], "column 'a' has dtype .*make it a category"),
    "a frame of dates": ([DATED], "column 'a' has dtype datetime64"),
    "a frame with a name twice": ([TWICE], "two columns 'a'"),
    "a frame with infinity": ([ENDLESS], "instance 0, position 1: feature 0 is infinite"),
    "frames with other columns": (
        [FRAMES[0], FRAMES[1].rename(columns={"a": "z"}), *FRAMES[2:]],
        "instance 1: its columns differ",
    ),
    "frames with other types": (
        [FRAMES[0], FRAMES[1].astype({"a": "category"}), *FRAMES[2:]],
        "instance 1: its column types",
    ),
    "an array among frames": ([FRAMES[0], X[1], *FRAMES[2:]], "instance 1: X is no data frame"),
    "a column of a frame": (FRAMES[0]["a"], "X"),
    "texts among matrices": (["abc", *X[1:]], "instance 0: X"),
    "a matrix among words": ([[{"a": 1.0}] * 3, *X[1:]], "instance 1"),
    "a generator of nothing": (iter(()), "X has no instances"),
    "rows in a list without lengths": (STACKED.tolist(), r"instance 0: X .*one matrix, np.array"),
    "one feature a position, of one axis": ([own[:, 0] for own in X], r"0: X .*reshape\(-1, 1\)"),
    "sentences as texts": (["a b c", "a b c d", "a b", "a b c d e"], r"text.split\(\)"),
    "padded": (PADDED, r"if X is padded, cut it: \[x\[:len\(own\)\] for x, own in zip\(X, y\)\]"),
    "a function": (print, "X is <built-in function print>: pass a list"),
}


def _case(tried: str, given: Any, message: str) -> Case:
    own = given if isinstance(given, list) else [given]
    y = Y if not isinstance(given, list) or len(own) == len(Y) else Y[: len(own)]

    def attempt(crf: Any, folder: Path) -> Any:
        return crf.fit(given, y)

    return Case(AREA, tried, attempt, message, subjects=unfitted_and_fitted())


LENGTHS: dict[str, tuple[Any, str]] = {
    "lengths that do not add up": ([3, 4, 2], "lengths add up to 9 but X has 14 rows"),
    "a negative length": ([3, 13, -2], "instance 2: length -2 is negative"),
    "lengths of floats": ([3.0, 4.0, 2.0, 5.0], "lengths has dtype float64"),
    "lengths of text": (["3", "4", "2", "5"], "lengths"),
    "lengths that are one number": (14, "lengths"),
    "lengths that are True": (True, "lengths"),
    "lengths of two axes": ([[3, 4], [2, 5]], "lengths"),
    "no lengths": ([], "lengths add up to 0 but X has 14 rows"),
    "lengths that are ragged": ([[3], [4, 2, 5]], "lengths"),
    "lengths with None": ([3, 4, None, 5], "lengths"),
    "lengths beyond 64 bits": ([2**63, 14], "lengths"),
    "lengths whose sum is beyond 64 bits": ([2**62, 2**62, 2**62, 2**62], "lengths"),
}


def _lengths(tried: str, given: Any, message: str) -> Case:
    def attempt(crf: Any, folder: Path) -> Any:
        return crf.fit(STACKED, [label for own in Y for label in own], lengths=given)

    return Case(AREA, tried, attempt, message, subjects=unfitted_and_fitted())


CASES = [
    *(_case(tried, *given) for tried, given in TRIED.items()),
    *(_lengths(tried, *given) for tried, given in LENGTHS.items()),
    Case(
        AREA,
        "lengths beside a list",
        lambda crf, folder: crf.fit(X, Y, lengths=[3, 4, 2, 5]),
        "lengths are given, but X is a list",
        subjects=unfitted_and_fitted(),
    ),
    Case(
        AREA,
        "a padded array beside lengths",
        lambda crf, folder: crf.fit(PADDED, Y, lengths=[3, 4, 2, 5]),
        r"padded, cut it, \[x\[:n\] for x, n in zip\(X, lengths\)\]",
        subjects=unfitted_and_fitted(),
    ),
    Case(
        AREA,
        "stacked X and y, swapped",
        lambda crf, folder: crf.fit(
            [label for own in Y for label in own], STACKED, lengths=[3, 4, 2, 5]
        ),
        "are X and y swapped",
        subjects=unfitted_and_fitted(),
    ),
    Case(
        AREA,
        "X and y swapped",
        lambda crf, folder: crf.fit(Y, X),
        "are X and y swapped",
        subjects=unfitted_and_fitted(),
    ),
]
