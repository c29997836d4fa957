"""Features as our own trees read them: dense rows that may overlap, or sparse rows.

A window over neighbours costs nothing where features are dense: positions stand one after the
other, so a position with its neighbours is a longer row of the same numbers.  Between instances
stand rows for what lies outside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import _core
from crfx.features.matrix import is_categorical, is_frame, single_entries

IntArray = npt.NDArray[np.integer[Any]]

OUTSIDE = -np.inf
"""A number beyond the ends of an instance: below all others, since features are finite."""
_TAKEN = re.compile(r"label\[-\d+\]|outside\[[+-]\d+\]")
"""Names of what is no feature: labels before, and that there is no neighbour."""
MOST_CATEGORIES = 254
"""Of a column; one more is for what lies outside."""


def tree_rows(X: Any, lengths: IntArray, left: int = 0, right: int = 0) -> _core.FeatureRows:
    """The rows of X, each with its neighbours, from ``left`` before to ``right`` after.

    X is one stacked matrix or data frame, of instances of these lengths.

    Columns are those of the position furthest to the left, then of the next.  Beyond the ends
    numbers are `OUTSIDE` and categories have a value of their own; sparse features are absent there
    and a column is added for each neighbour, which is 1 where there is none.
    O(rows * features) in time and, where rows overlap or a data frame is read, in memory.
    """
    if sparse.issparse(X):
        return _sparse_rows(_sparse_window(X, lengths, left, right) if left or right else X)
    numbers, outside = as_numbers(X)
    n_base, gap = numbers.shape[1], max(left, right)
    n_rows, n_instances = len(numbers), len(lengths)
    places = np.arange(n_rows) + gap * (1 + np.repeat(np.arange(n_instances), lengths))
    if gap:
        padded = np.empty((n_rows + gap * (n_instances + 1), n_base), np.float32)
        padded[:] = outside
        padded[places] = numbers
        numbers = padded
    n_features = (left + 1 + right) * n_base
    return _core.FeatureRows(numbers.reshape(-1), (places - left) * n_base, n_features, n_base)


def plain_rows(X: Any) -> _core.FeatureRows:
    """The rows of X as they stand, without neighbours.  Copies what is not float32 already."""
    if sparse.issparse(X):
        return _sparse_rows(X)
    numbers = as_numbers(X)[0]
    n_rows, n_columns = numbers.shape
    first = np.arange(0, n_rows * n_columns, n_columns) if n_columns else np.zeros(n_rows, np.int64)
    return _core.FeatureRows(numbers.reshape(-1), first, n_columns, n_columns)


def _sparse_rows(X: Any) -> _core.FeatureRows:
    matrix = single_entries(X)
    return _core.FeatureRows(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32, copy=False),
        matrix.data.astype(np.float32, copy=False),
        matrix.shape[1],
    )


def as_numbers(X: Any) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """(rows, columns), categories by their codes; and (columns,) what stands for the outside."""
    n_columns = X.shape[1]
    outside = np.full(n_columns, OUTSIDE, np.float32)
    if not is_frame(X):
        return np.ascontiguousarray(X, dtype=np.float32), outside
    numbers = np.empty(X.shape, np.float32)
    for place, name in enumerate(X.columns):
        column = X[name]
        if is_categorical(column):
            codes = column.cat.codes.to_numpy()
            numbers[:, place] = np.where(codes < 0, np.nan, codes)
            outside[place] = len(column.cat.categories)
        else:
            numbers[:, place] = column.to_numpy(dtype=np.float32, na_value=np.nan)
    return numbers, outside


def category_flags(X: Any) -> npt.NDArray[np.uint8]:
    """(columns,) 1 where a column holds categories; raises where one has too many."""
    flags = np.zeros(X.shape[1], np.uint8)
    if not is_frame(X):
        return flags
    for place, name in enumerate(X.columns):
        if not is_categorical(X[name]):
            continue
        flags[place] = 1
        if (count := len(X[name].cat.categories)) > MOST_CATEGORIES:
            raise ValueError(
                f"column {str(name)!r} has {count} categories: trees take up to {MOST_CATEGORIES}; "
                "make it a sparse matrix of indicators, or join rare ones"
            )
    return flags


def window_names(names: Sequence[str], left: int, right: int, *, is_sparse: bool) -> list[str]:
    """The names of the columns of `tree_rows`: ``name[-1]``, ``name``, ``name[+1]``; those that
    mean something else already, ``label[-1]`` and ``outside[+1]``, are ``label[-1] of X``.
    """
    shifts = range(-left, right + 1)
    found = [_shifted(name, shift) for shift in shifts for name in names]
    if is_sparse and (left or right):
        found += [f"outside{_mark(shift)}" for shift in shifts]
    return found


@dataclass(frozen=True, eq=False)
class WindowView:
    """The columns of `tree_rows`, read one by one: for explanations."""

    X: Any
    lengths: IntArray
    left: int
    right: int

    def origin(self, column: int) -> tuple[int | None, int]:
        """The column of X, and how far from the position; None for "there is no neighbour"."""
        n_base, width = self.X.shape[1], self.left + 1 + self.right
        if column >= width * n_base:
            return None, column - width * n_base - self.left
        return column % n_base, column // n_base - self.left

    def name(self, column: int, names: Callable[[int], str]) -> str:
        """As in `window_names`."""
        base, shift = self.origin(column)
        return f"outside{_mark(shift)}" if base is None else _shifted(names(base), shift)

    def values(self, rows: IntArray, columns: IntArray) -> npt.NDArray[np.float32]:
        """(columns, rows) as trees see them: NaN where missing, `OUTSIDE` beyond the ends."""
        found = np.full((len(columns), len(rows)), np.nan, np.float32)
        if sparse.issparse(self.X):
            wide = single_entries(self._wide[rows])[:, columns].tocoo()
            found[wide.col, wide.row] = wide.data
            return found
        numbers, outside = as_numbers(self.X)
        ends = np.cumsum(self.lengths)
        first = np.repeat(ends - self.lengths, self.lengths)[rows]
        last = np.repeat(ends, self.lengths)[rows]
        for place, column in enumerate(columns.tolist()):
            base, shift = self.origin(column)
            inside = (rows + shift >= first) & (rows + shift < last)
            found[place] = outside[base]
            found[place, inside] = numbers[(rows + shift)[inside], base]
        return found

    @cached_property
    def _wide(self) -> Any:
        if not (self.left or self.right):
            return self.X
        return _sparse_window(self.X, self.lengths, self.left, self.right)

    def shown(self, column: int, value: float) -> Any:
        """A value of `values` as users know it: a category by its name, None where missing."""
        base, _ = self.origin(column)
        if value != value:
            return None
        if value == OUTSIDE:
            return "outside"
        if base is not None and is_frame(self.X):
            own = self.X.iloc[:, base]
            if is_categorical(own):
                known = own.cat.categories
                return known[int(value)] if int(value) < len(known) else "outside"
        return float(value)


def _shifted(name: str, shift: int) -> str:
    """The name of a feature of a neighbour, or of the position itself."""
    found = f"{name}{_mark(shift)}"
    return f"{found} of X" if _TAKEN.fullmatch(found) else found


def _mark(shift: int) -> str:
    return f"[{shift:+d}]" if shift else ""


def _sparse_window(X: Any, lengths: IntArray, left: int, right: int) -> Any:
    n_rows = X.shape[0]
    ends = np.cumsum(lengths)
    first, last = np.repeat(ends - lengths, lengths), np.repeat(ends, lengths)
    # Rows are taken, not multiplied: a product would leave out zeros, which are values.
    parts, absent = [], []
    padded = sparse.vstack([X, sparse.csr_matrix((1, X.shape[1]), dtype=X.dtype)], format="csr")
    for shift in range(-left, right + 1):
        at = np.arange(n_rows) + shift
        inside = (at >= first) & (at < last)
        parts.append(padded[np.where(inside, at, n_rows)])
        absent.append(sparse.csr_matrix(~inside[:, None], dtype=np.float32))
    return sparse.hstack([*parts, *absent], format="csr")
