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

from crfx.features.matrices import inputs_at, is_categorical, is_frame, single_entries
from crfx.terms import Names, Terms

ORDERS = 16
"""Half of them drawn, the others these read backwards: exact where features interact by twos."""
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
        kept = np.concatenate([_arriving(order) for order in orders])
        found = np.asarray(scores(_rows_like(X, columns, np.where(kept, values, 0.0))), np.float64)
        steps = found.reshape(len(orders), len(columns) + 1, found.shape[1])
        changes = np.diff(steps, axis=1)
        shares = np.zeros((len(columns), found.shape[1]))
        for order, change in zip(orders, changes, strict=True):
            shares[order] += change / len(orders)
        inputs = inputs_at(X, row, columns)
        yield Terms.of(steps[0, 0], columns, list(map(names, columns.tolist())), inputs, shares)


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


def _arriving(order: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """(n + 1, n) which features are there after 0, 1, ..., n of them have come."""
    arrival = np.argsort(order)
    return arrival[None, :] < np.arange(len(order) + 1)[:, None]


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
