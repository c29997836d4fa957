"""Scores that are linear in the features, as sums: weight times value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from crfx.explanation import Names, Terms
from crfx.features.conjunctions import Conjunctions, canonical

WEIGHT_TIMES_VALUE = "weight × value"


def weighted_terms(
    X: Any, weights: Any, base: Any, names: Names, conjunctions: Conjunctions | None = None
) -> Iterator[Terms]:
    """Per row of X: ``base`` (outputs,) and, of every feature that is not 0, weight times value.

    X (rows, features) is dense or CSR, without missing values, ``weights`` (features, outputs) too;
    the last features are the ``conjunctions``, if any.  O(entries of X * outputs).
    """
    X, weights = canonical(sparse.csr_matrix(X)), sparse.csr_matrix(weights)
    sets = [] if conjunctions is None else conjunctions.sets()
    n_columns = X.shape[1] - len(sets)

    def named(column: int) -> str:
        if column < n_columns:
            return names(column)
        return " & ".join(names(each) for each in sets[column - n_columns])

    for row in range(X.shape[0]):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        columns, values = X.indices[entries], X.data[entries].astype(np.float64)
        own = weights[columns].toarray() * values[:, None]
        told = np.where(columns < n_columns, columns, -1)
        yield Terms.of(base, told, list(map(named, columns.tolist())), values, own)
