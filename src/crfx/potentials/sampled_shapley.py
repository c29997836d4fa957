"""Any function's scores as sums over features: Shapley values against the input 0, sampled.

For functions that can be asked and not looked into.  Features are put in one after the other, the
others being 0, and each gets the change that its coming makes (Strumbelj and Kononenko 2010); the
mean over several orders is taken.  In any order the changes add up to the score less that of the
input 0, so the sum holds however few orders there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.features.matrix import inputs_at, is_categorical, is_frame, single_entries
from crfx.terms import Names, Terms

ORDERS = 16
"""Half of them drawn, the others these read backwards: exact where features interact by twos."""
MOST_CELLS = 2**22
"""Cells (rows times features) that are held at a time, unless one row has more: 32 MiB."""
SAMPLED = f"Shapley values against the input 0, sampled over {ORDERS} orders"


def sampled_terms(
    scores: Callable[[Any], npt.NDArray[Any]], X: Any, names: Names
) -> Iterator[Terms]:
    """Per row of X, an array, CSR matrix or data frame of numbers: its scores as a sum.

    ``scores`` gives (rows, outputs) of rows like those of X; it is asked about ``ORDERS`` times
    as many rows as a row of X has features that are not 0.  The orders are always the same.
    """
    if is_frame(X) and any(is_categorical(X[name]) for name in X.columns):
        raise ValueError(
            "categories of a base_learner cannot be explained: there is no category 0 to compare "
            "with; encode them, one column per category"
        )
    for row in range(X.shape[0]):
        columns, values = _present(X, row)
        orders = _orders(len(columns))
        shares: Any = 0.0
        for order in orders:
            steps = np.concatenate(
                [
                    np.asarray(scores(_rows_like(X, columns, part)), np.float64)
                    for part in _arriving(order, values, X.shape[1])
                ]
            )
            shares = shares + np.diff(steps, axis=0)[np.argsort(order)] / len(orders)
        inputs = inputs_at(X, row, columns)
        yield Terms.of(steps[0], columns, list(map(names, columns.tolist())), inputs, shares)


def _present(X: Any, row: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The columns that are not 0, missing ones included, and their values."""
    if sparse.issparse(X):
        own = single_entries(X[row])
        columns, values = own.indices.astype(np.int64), own.data.astype(np.float64)
        return columns[values != 0], values[values != 0]
    numbers = X.iloc[row].to_numpy(dtype=np.float64, na_value=np.nan) if is_frame(X) else X[row]
    columns = np.flatnonzero(numbers != 0)
    return columns, numbers[columns].astype(np.float64)


def _orders(n: int) -> list[npt.NDArray[np.int64]]:
    random = np.random.default_rng(0)
    drawn = [random.permutation(n) for _ in range(ORDERS // 2)]
    return [*drawn, *(order[::-1] for order in drawn)]


def _arriving(
    order: npt.NDArray[np.int64], values: npt.NDArray[np.float64], width: int
) -> Iterator[npt.NDArray[np.float64]]:
    """(n + 1, n) the values after 0, 1, ..., n of them have come, 0 before; some rows at a time."""
    arrival, n_steps = np.argsort(order), len(order) + 1
    at_once = max(1, MOST_CELLS // width)
    for begin in range(0, n_steps, at_once):
        come = np.arange(begin, min(begin + at_once, n_steps))
        yield np.where(arrival[None, :] < come[:, None], values, 0.0)


def _rows_like(X: Any, columns: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> Any:
    """(rows, features) of the kind of X: ``values`` (rows, columns) in their columns, else 0."""
    shape = len(values), X.shape[1]
    dtype = np.float64 if is_frame(X) else np.result_type(X.dtype, np.float32)
    if sparse.issparse(X):
        rows, places = np.nonzero(values)
        entries = values[rows, places], (rows, columns[places])
        return sparse.csr_matrix(entries, shape=shape, dtype=dtype)
    wide = np.zeros(shape, dtype)
    wide[:, columns] = values
    return type(X)(wide, columns=X.columns) if is_frame(X) else wide
