"""Features as numbers to be multiplied by weights: dense or CSR, float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.features.conjunctions import Conjunctions
from crfx.features.matrix import is_categorical, is_frame, mapped

Array32 = npt.NDArray[np.float32]


def compressed(X: Any) -> tuple[Any, Any, Any]:
    """Return starts, indices and values of CSR or CSC; values are None where all are 1."""
    values = None if (X.data == 1).all() else np.ascontiguousarray(X.data, np.float32)
    return X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), values


def with_conjunctions(X: Any, conjunctions: Conjunctions | None) -> Any:
    """Return X `as_numbers`; with conjunctions, which come last, it is CSR."""
    X = as_numbers(X)
    if conjunctions is None:
        return X
    return mapped(X, lambda chunk: conjunctions.widened(sparse.csr_matrix(chunk)))


def as_numbers(X: Any) -> Any:
    """Return X as float32, CSR or dense, with 0 for missing; chunks on disk change when read."""
    return mapped(X, lambda chunk: _sparse(chunk) if sparse.issparse(chunk) else _dense(chunk))


def with_constant(X: Any) -> Any:
    """Return X `as_numbers` with a constant last, (rows, features + 1), as linear edges use it."""
    return mapped(X, _with_constant)


def _with_constant(X: Any) -> Any:
    # Asked by type: categories that are whole numbers would pass for numbers.
    if is_frame(X) and any(is_categorical(X[name]) for name in X.columns):
        raise ValueError(
            'edges="linear" needs numbers: encode categorical columns, or use edges="table" or '
            '"trees"'
        )
    numbers, ones = as_numbers(X), np.ones((X.shape[0], 1), np.float32)
    if sparse.issparse(numbers):
        return sparse.hstack([numbers, sparse.csr_matrix(ones)], "csr", np.float32)
    return np.concatenate([numbers, ones], axis=1)


def _sparse(X: Any) -> Any:
    if X.format == "csr" and X.data.dtype == np.int8:  # ones of names: `compressed` drops them
        return X
    matrix = sparse.csr_matrix(X, dtype=np.float32)
    if np.isnan(matrix.data).any():
        matrix = matrix.copy()
        np.nan_to_num(matrix.data, copy=False)
    return matrix


def _dense(X: Any) -> Array32:
    try:
        if is_frame(X):  # its columns may have a missing value that is no NaN
            X = X.to_numpy(dtype=np.float32, na_value=np.nan)
        dense = np.asarray(X, dtype=np.float32)
    except (TypeError, ValueError):
        raise ValueError(
            "linear functions need numbers: encode categorical columns, one column per category"
        ) from None
    return np.nan_to_num(dense) if np.isnan(dense).any() else dense
