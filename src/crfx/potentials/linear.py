"""Functions linear in the features: a weight per feature and output, or per pair that occurs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.features.conjunctions import Conjunctions, canonical
from crfx.features.matrix import is_on_disk
from crfx.potentials.base import OfFeatures, PotentialShape
from crfx.potentials.linear_features import (
    DenseFeatures,
    PreparedFeatures,
    ShardedFeatures,
    SparseFeatures,
    touched_columns,
)
from crfx.potentials.numbers import with_conjunctions
from crfx.potentials.weight_pattern import WeightPattern
from crfx.scores import IntArray
from crfx.state import State
from crfx.terms import Names, Terms

Array32 = npt.NDArray[np.float32]
Array64 = npt.NDArray[np.float64]


WEIGHT_TIMES_VALUE = "weight × value"
SPREAD = "how far its weights part the labels"
SIZE_OF_WEIGHT = "size of its weight"


def entries_by_row(X: Any) -> Iterator[tuple[IntArray, Array64]]:
    """Per row of X, dense or CSR: the columns that are not 0, and their values."""
    X = canonical(sparse.csr_matrix(X))
    for row in range(X.shape[0]):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        yield X.indices[entries], X.data[entries].astype(np.float64)


def weighted_terms(
    X: Any, weights: Any, base: Any, names: Names, n_columns: int | None = None
) -> Iterator[Terms]:
    """Per row of X: ``base`` (outputs,) and, of every feature that is not 0, weight times value.

    X (rows, features) is dense or CSR, without missing values, ``weights`` (features, outputs) too;
    features from ``n_columns`` on are no columns of X.  O(entries of X * outputs).
    """
    weights, n_columns = sparse.csr_matrix(weights), X.shape[1] if n_columns is None else n_columns
    for columns, values in entries_by_row(X):
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


class LinearFunction(OfFeatures):
    """Scores X W, a parametric function: (rows, outputs) from (rows, features).

    ``conjunctions`` of columns, where there are some, are the last of its features.
    """

    kind: ClassVar = "linear"
    n_rounds = 0
    method = WEIGHT_TIMES_VALUE

    def __init__(
        self,
        pattern: WeightPattern,
        weights: Array64 | None = None,
        conjunctions: Conjunctions | None = None,
    ) -> None:
        self.pattern, self.conjunctions = pattern, conjunctions
        self.weights = np.zeros(pattern.n_weights) if weights is None else weights
        self.n_jobs = 1

    def to_state(self, state: State, name: str) -> None:
        """Write the weights as CSR; without outputs where every feature has all of them."""
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
        """Read and check them."""
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
    def n_outputs(self) -> int:
        """How many scores a row has."""
        return self.pattern.n_outputs

    @property
    def n_columns(self) -> int:
        """How many of its features are columns of X."""
        return self.pattern.n_features - (
            0 if self.conjunctions is None else len(self.conjunctions)
        )

    def prepare(self, X: Any) -> PreparedFeatures:
        """Features in the form that training needs again and again."""
        if is_on_disk(X):
            return ShardedFeatures(X, self.prepare, self.n_outputs, looks_back=False)
        X = with_conjunctions(X, self.conjunctions)
        if not sparse.issparse(X) and self.pattern.outputs is None:
            return DenseFeatures(X, self.pattern.n_outputs, self.n_jobs)
        return SparseFeatures(sparse.csr_matrix(X), self.pattern, self.n_jobs)

    def prepare_part(self, X: Any) -> tuple[PreparedFeatures, IntArray]:
        """Features of some rows, with the weights they touch only, and where these are."""
        if not sparse.issparse(X):
            return self.prepare(X), np.arange(self.pattern.n_weights)
        X = X if self.conjunctions is None else with_conjunctions(X, self.conjunctions)
        matrix, touched = touched_columns(X)
        pattern, at = self.pattern.take(touched)
        return SparseFeatures(matrix, pattern, self.n_jobs), at

    def scores(self, X: Any, n_rows: int, n_rounds: int | None = None) -> Array32:
        """(rows, outputs)."""
        found: Array32 = self.prepare(X).scores(self.weights.astype(np.float32))
        return found

    def explained(self, X: Any, names: Names) -> Iterator[Terms]:
        """The scores of every row of X as sums, weight times value; names are those of columns."""
        X = with_conjunctions(X, self.conjunctions)
        matrix, base = self.pattern.matrix(self.weights), np.zeros(self.n_outputs)
        return weighted_terms(X, matrix, base, self.named(names), self.n_columns)

    def named(self, names: Names) -> Names:
        """The names of its features: of columns these, of conjunctions theirs joined."""
        sets = [] if self.conjunctions is None else self.conjunctions.sets()
        n_columns = self.n_columns
        return lambda column: " & ".join(
            map(names, (column,) if column < n_columns else sets[column - n_columns])
        )

    @property
    def measure(self) -> str:
        """What `strengths` are, in words."""
        return SIZE_OF_WEIGHT if self.n_outputs == 1 else SPREAD

    def strengths(self) -> Array64:
        """(features,) how far their weights for the outputs lie apart; sizes, of one output."""
        return spread(self.pattern.matrix(self.weights))

    def with_outputs(self, places: IntArray, n_outputs: int) -> LinearFunction:
        """The same weights with more outputs: output k becomes ``places[k]``, new ones are 0."""
        pairs = sparse.coo_matrix(self.pattern.matrix(self.weights))
        n_features = self.pattern.n_features
        matrix = sparse.csr_matrix(
            (pairs.data, (pairs.row, places[pairs.col])), shape=(n_features, n_outputs)
        )
        if self.pattern.outputs is not None:
            return LinearFunction(*WeightPattern.of_matrix(matrix), self.conjunctions)
        weights = np.asarray(matrix.todense(), np.float64).reshape(-1)
        return LinearFunction(WeightPattern.all(n_features, n_outputs), weights, self.conjunctions)

    def use_threads(self, n_jobs: int) -> None:
        """Score on so many threads from now on."""
        self.n_jobs = n_jobs


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
    rises[starts[1:-1] - 1] = True  # from one to the next
    if not rises.all():
        raise ValueError(f"the conjunctions of {name} are not in order")
    return Conjunctions(starts, columns)
