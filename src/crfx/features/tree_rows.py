"""Features as our own trees read them: dense rows that may overlap, or sparse rows.

A window over dense features costs nothing: positions lie one after the other, so a position with
its neighbours is a longer row of the same numbers.  Between instances lie rows that stand for the
outside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import _core
from crfx.features.matrix import is_categorical, is_frame, single_entries
from crfx.features.windows import neighbours

IntArray = npt.NDArray[np.integer[Any]]

OUTSIDE = -np.inf
"""Stands for numbers beyond the ends of an instance: below all features, which are finite."""
_TAKEN = re.compile(r"label\[-\d+\]|outside\[[+-]\d+\]")
"""Names that are not of features of X: labels before, and "there is no neighbour"."""
MOST_CATEGORIES = 254
"""Most categories of a column; one more stands for the outside."""


def tree_rows(X: Any, lengths: IntArray, left: int = 0, right: int = 0) -> _core.FeatureRows:
    """Return the rows of X, each with its neighbours, from ``left`` before to ``right`` after.

    X is one stacked matrix or data frame, of instances of these lengths.  Columns are those of the
    position furthest to the left, then of the next.  Beyond the ends numbers are `OUTSIDE` and
    categories have a value of their own; sparse features are absent there, and a column is added
    for each neighbour, which is 1 where there is none.
    O(rows * features) in time and, where rows overlap or a data frame is read, in memory.
    """
    if sparse.issparse(X):
        return _sparse_rows(_sparse_window(X, lengths, left, right))
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
    """Return the rows of X without neighbours; X is copied unless it is float32."""
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
    """Return (rows, columns) with codes for categories, and (columns,) values of the outside."""
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
    """Return (columns,) 1 where a column holds categories; raise if one has too many."""
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
    """Return the names of the columns of `tree_rows`: ``name[-1]``, ``name``, ``name[+1]``.

    Names that mean something else, ``label[-1]`` and ``outside[+1]``, become ``label[-1] of X``.
    """
    shifts = range(-left, right + 1)
    window = [_shifted(name, shift) for shift in shifts for name in names]
    if is_sparse and (left or right):
        window += [f"outside{_mark(shift)}" for shift in shifts]
    return window


@dataclass(frozen=True, eq=False)
class WindowView:
    """The columns of `tree_rows`, read one by one, for explanations."""

    X: Any
    lengths: IntArray
    left: int
    right: int

    def origin(self, column: int) -> tuple[int | None, int]:
        """Return the column of X (None for "there is no neighbour") and the shift."""
        n_base, width = self.X.shape[1], self.left + 1 + self.right
        if column >= width * n_base:
            return None, column - width * n_base - self.left
        return column % n_base, column // n_base - self.left

    def name(self, column: int, names: Callable[[int], str]) -> str:
        """Return the name of a column, as `window_names` does."""
        base, shift = self.origin(column)
        return f"outside{_mark(shift)}" if base is None else _shifted(names(base), shift)

    def values(self, rows: IntArray, columns: IntArray) -> npt.NDArray[np.float32]:
        """Return (columns, rows) as trees see them: NaN is missing, `OUTSIDE` beyond the ends."""
        values = np.full((len(columns), len(rows)), np.nan, np.float32)
        if sparse.issparse(self.X):
            wide = _sparse_window(self.X, self.lengths, self.left, self.right)
            wide = single_entries(wide[rows])[:, columns].tocoo()
            values[wide.col, wide.row] = wide.data
            return values
        numbers, outside = as_numbers(self.X)
        window = list(neighbours(self.lengths, self.left, self.right))
        for place, column in enumerate(columns.tolist()):
            base, shift = self.origin(column)
            neighbour, is_inside = (each[rows] for each in window[shift + self.left])
            values[place] = outside[base]
            values[place, is_inside] = numbers[neighbour[is_inside], base]
        return values

    def shown(self, column: int, value: float) -> Any:
        """Return a value of `values` as users know it: categories by name, None if missing."""
        base, _ = self.origin(column)
        if value != value:
            return None
        if value == OUTSIDE:
            return "outside"
        if base is not None and is_frame(self.X):
            values = self.X.iloc[:, base]
            if is_categorical(values):
                known = values.cat.categories
                return known[int(value)] if int(value) < len(known) else "outside"
        return float(value)


def _shifted(name: str, shift: int) -> str:
    """Return the name of a feature of a neighbour, or of the position itself."""
    shifted = f"{name}{_mark(shift)}"
    return f"{shifted} of X" if _TAKEN.fullmatch(shifted) else shifted


def _mark(shift: int) -> str:
    return f"[{shift:+d}]" if shift else ""


def _sparse_window(X: Any, lengths: IntArray, left: int, right: int) -> Any:
    if not (left or right):
        return X
    # Rows are taken, not multiplied: a product would leave out zeros, which are values.
    parts, absent = [], []
    padded = sparse.vstack([X, sparse.csr_matrix((1, X.shape[1]), dtype=X.dtype)], format="csr")
    for neighbour, is_inside in neighbours(lengths, left, right):
        parts.append(padded[np.where(is_inside, neighbour, X.shape[0])])
        absent.append(sparse.csr_matrix(~is_inside[:, None], dtype=np.float32))
    return sparse.hstack([*parts, *absent], format="csr")
