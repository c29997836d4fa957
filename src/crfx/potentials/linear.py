"""Functions linear in the features: a weight per feature and output, or per pair that occurs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.features.conjunctions import Conjunctions, canonical
from crfx.features.matrix import is_on_disk
from crfx.potentials.base import Function, PotentialShape
from crfx.potentials.linear_features import (
    Prepared,
    ShardedFeatures,
    SparseFeatures,
    prepared,
    touched_columns,
)
from crfx.potentials.numbers import with_conjunctions
from crfx.potentials.weight_pattern import WeightPattern
from crfx.scores import FloatArray, IntArray
from crfx.state import State
from crfx.terms import Names, Terms

Array64 = npt.NDArray[np.float64]


WEIGHT_TIMES_VALUE = "weight × value"
SPREAD = "how far its weights part the labels"
SIZE_OF_WEIGHT = "size of its weight"


def entries_by_row(X: Any) -> Iterator[tuple[IntArray, Array64]]:
    """Yield, for each row of X, dense or CSR, the columns that are not 0 and their values."""
    X = canonical(sparse.csr_matrix(X))
    for begin, end in pairwise(X.indptr.tolist()):
        yield X.indices[begin:end], X.data[begin:end].astype(np.float64)


def weighted_terms(
    X: Any, weights: Any, base: Any, names: Names, n_columns: int | None = None
) -> Iterator[Terms]:
    """Yield, for each row of X, ``base`` (outputs,) and weight times value of its features.

    X (rows, features) is dense or CSR, without missing values, ``weights`` (features, outputs) too;
    features from ``n_columns`` on are no columns of X.  O(entries of X * outputs).
    """
    weights, n_columns = sparse.csr_matrix(weights), X.shape[1] if n_columns is None else n_columns
    for features, values in entries_by_row(X):
        shares = weights[features].toarray() * values[:, None]
        columns = np.where(features < n_columns, features, -1)
        yield Terms.of(base, columns, list(map(names, features.tolist())), values, shares)


def spread(weights: Any) -> Array64:
    """Return (features,) how far ``weights`` (features, outputs), dense or sparse, lie apart.

    It is the largest weight less the smallest, 0 where there is none; with one output, the size of
    the weight.
    """
    matrix = sparse.csr_matrix(weights)
    if matrix.shape[1] == 1:
        return np.asarray(np.abs(matrix.toarray()[:, 0]), np.float64)
    largest, smallest = (ends(axis=1).toarray()[:, 0] for ends in (matrix.max, matrix.min))
    return np.asarray(largest - smallest, np.float64)


class LinearFunction(Function):
    """The parametric function X W: (rows, outputs) from (rows, features).

    ``conjunctions`` of columns, where there are some, are the last of its features.
    """

    kind: ClassVar = "linear"
    method: ClassVar = WEIGHT_TIMES_VALUE
    n_rounds = 0

    def __init__(
        self,
        pattern: WeightPattern,
        weights: Array64 | None = None,
        conjunctions: Conjunctions | None = None,
    ) -> None:
        self.pattern, self.conjunctions = pattern, conjunctions
        self.weights = np.zeros(pattern.n_weights) if weights is None else weights
        self.n_outputs, self.n_jobs = pattern.n_outputs, 1
        self.measure = SIZE_OF_WEIGHT if pattern.n_outputs == 1 else SPREAD

    def to_state(self, state: State, name: str) -> None:
        """Write the weights as CSR, without outputs where every feature has all of them."""
        matrix = self.pattern.matrix(self.weights)
        state.put(f"{name}.starts", matrix.indptr.astype(np.int64))
        outputs = matrix.indices if self.pattern.outputs is not None else matrix.indices[:0]
        state.put(f"{name}.outputs", outputs.astype(np.int32))
        state.put(f"{name}.weights", matrix.data)
        if self.conjunctions is not None:
            state.put(f"{name}.conjunctions.starts", self.conjunctions.starts)
            state.put(f"{name}.conjunctions.columns", self.conjunctions.columns)

    @classmethod
    def from_state(cls, state: State, name: str, shape: PotentialShape) -> Self:
        """Read and check what `to_state` wrote."""
        conjunctions = None
        if state.has(f"{name}.conjunctions.starts"):
            conjunctions = _read_conjunctions(state, name, shape.n_features)
        n_features, n_outputs = shape.n_features, shape.n_outputs
        n_features += 0 if conjunctions is None else len(conjunctions)
        starts = state.array(f"{name}.starts", np.int64)
        outputs = state.array(f"{name}.outputs", np.int32)
        weights = state.array(f"{name}.weights", np.float64)
        has_all = outputs.shape == (0,) and weights.shape == (n_features * n_outputs,)
        fits = has_all or (weights.shape == outputs.shape and weights.ndim == 1)
        if starts.shape != (n_features + 1,) or not fits:
            raise ValueError(f"the weights {name} are not those of {n_features} features")
        if starts[0] != 0 or starts[-1] != len(weights) or (starts[1:] < starts[:-1]).any():
            raise ValueError(f"the weights {name} begin and end in wrong places")
        if has_all and (np.diff(starts) == n_outputs).all():
            return cls(WeightPattern.all(n_features, n_outputs), weights, conjunctions)
        if weights.shape != outputs.shape:
            raise ValueError(f"the weights {name} are for all scores, but begin in wrong places")
        if len(outputs) and not (outputs.min() >= 0 and outputs.max() < n_outputs):
            raise ValueError(f"the weights {name} are for scores that there are not")
        matrix = sparse.csr_matrix((weights, outputs, starts), shape=(n_features, n_outputs))
        if not matrix.has_canonical_format:
            raise ValueError(f"the weights {name} are not in order")
        return cls(*WeightPattern.of_matrix(matrix), conjunctions)

    @property
    def n_columns(self) -> int:
        """The number of its features that are columns of X."""
        n_conjunctions = 0 if self.conjunctions is None else len(self.conjunctions)
        return self.pattern.n_features - n_conjunctions

    def prepare(self, X: Any) -> Prepared:
        """Return features in the form that training uses again and again."""
        if is_on_disk(X):
            return ShardedFeatures(X, self.prepare, self.n_outputs, looks_back=False)
        return prepared(with_conjunctions(X, self.conjunctions), self.pattern, self.n_jobs)

    def prepare_part(self, X: Any) -> tuple[Prepared, IntArray]:
        """Return features of some rows with the weights that they touch, and their places."""
        if not sparse.issparse(X):
            return self.prepare(X), np.arange(self.pattern.n_weights)
        X = X if self.conjunctions is None else with_conjunctions(X, self.conjunctions)
        matrix, touched = touched_columns(X)
        pattern, at = self.pattern.take(touched)
        return SparseFeatures(matrix, pattern, self.n_jobs), at

    def scores(self, X: Any, n_rows: int, n_rounds: int | None = None) -> FloatArray:
        """Return (rows, outputs)."""
        return self.prepare(X).scores(self.weights.astype(np.float32))

    def explained(self, X: Any, names: Names) -> Iterator[Terms]:
        """Yield the scores of every row of X as sums of weight times value."""
        X = with_conjunctions(X, self.conjunctions)
        matrix, base = self.pattern.matrix(self.weights), np.zeros(self.n_outputs)
        return weighted_terms(X, matrix, base, self.named(names), self.n_columns)

    def named(self, names: Names) -> Names:
        """Return the names of its features; conjunctions have those of their columns, joined."""
        sets = [] if self.conjunctions is None else self.conjunctions.sets()
        n_columns = self.n_columns
        return lambda column: " & ".join(
            map(names, (column,) if column < n_columns else sets[column - n_columns])
        )

    def strengths(self) -> Array64:
        """Return (features,) how far apart the weights of each lie, see `spread`."""
        return spread(self.pattern.matrix(self.weights))

    def with_outputs(self, places: IntArray, n_outputs: int) -> LinearFunction:
        """Return the weights with more outputs: output k becomes ``places[k]``, new ones are 0."""
        pairs = sparse.coo_matrix(self.pattern.matrix(self.weights))
        n_features = self.pattern.n_features
        matrix = sparse.csr_matrix(
            (pairs.data, (pairs.row, places[pairs.col])), shape=(n_features, n_outputs)
        )
        if self.pattern.outputs is not None:
            return LinearFunction(*WeightPattern.of_matrix(matrix), self.conjunctions)
        weights = np.asarray(matrix.todense(), np.float64).reshape(-1)
        return LinearFunction(WeightPattern.all(n_features, n_outputs), weights, self.conjunctions)


def _read_conjunctions(state: State, name: str, n_columns: int) -> Conjunctions:
    starts, columns = (
        state.array(f"{name}.conjunctions.{part}", np.int64) for part in ("starts", "columns")
    )
    if not starts.ndim == columns.ndim == 1:
        raise ValueError(f"the conjunctions of {name} are of another type")
    if len(starts) < 2 or starts[0] != 0 or starts[-1] != len(columns):
        raise ValueError(f"the conjunctions of {name} begin and end in wrong places")
    if (np.diff(starts) < 2).any() or columns.min() < 0 or columns.max() >= n_columns:
        raise ValueError(f"the conjunctions of {name} are not of two or more columns")
    rises = np.diff(columns) > 0
    rises[starts[1:-1] - 1] = True  # from one conjunction to the next
    if not rises.all():
        raise ValueError(f"the conjunctions of {name} are not in order")
    return Conjunctions(starts, columns)
