"""Scores that are linear in the features, as sums: weight times value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.features.conjunctions import canonical
from crfx.terms import Names, Terms

Array64 = npt.NDArray[np.float64]
WEIGHT_TIMES_VALUE = "weight × value"
SPREAD = "how far its weights part the labels"
SIZE_OF_WEIGHT = "size of its weight"


def weighted_terms(
    X: Any, weights: Any, base: Any, names: Names, n_columns: int | None = None
) -> Iterator[Terms]:
    """Per row of X: ``base`` (outputs,) and, of every feature that is not 0, weight times value.

    X (rows, features) is dense or CSR, without missing values, ``weights`` (features, outputs) too;
    features from ``n_columns`` on are no columns of X.  O(entries of X * outputs).
    """
    X, weights = canonical(sparse.csr_matrix(X)), sparse.csr_matrix(weights)
    n_columns = X.shape[1] if n_columns is None else n_columns
    for row in range(X.shape[0]):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        columns, values = X.indices[entries], X.data[entries].astype(np.float64)
        own = weights[columns].toarray() * values[:, None]
        told = np.where(columns < n_columns, columns, -1)
        yield Terms.of(base, told, list(map(names, columns.tolist())), values, own)


def spread(weights: Any) -> Array64:
    """(features,) of (features, outputs), dense or sparse: the largest weight less the smallest,
    0 where there is none; the size of the weight where there is one output.
    """
    matrix = sparse.csr_matrix(weights)
    if matrix.shape[1] == 1:
        return np.asarray(np.abs(matrix.toarray()[:, 0]), np.float64)
    largest, smallest = (ends(axis=1).toarray()[:, 0] for ends in (matrix.max, matrix.min))
    return np.asarray(largest - smallest, np.float64)
