"""Functions linear in the features: a weight per feature and output, or per pair that occurs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import _core
from crfx.features.conjunctions import Conjunctions
from crfx.features.matrices import is_frame
from crfx.features.sharded_matrix import ShardedMatrix
from crfx.potentials.blas import one_blas_thread
from crfx.potentials.linear_terms import (
    SIZE_OF_WEIGHT,
    SPREAD,
    WEIGHT_TIMES_VALUE,
    spread,
    weighted_terms,
)
from crfx.potentials.sharded_features import ShardedFeatures
from crfx.scores import FloatArray, IntArray
from crfx.terms import Names, Terms

Array32 = npt.NDArray[np.float32]
Array64 = npt.NDArray[np.float64]
Pairs = tuple[IntArray, IntArray]
"""Of features and outputs, as CSR has them: where those of each feature start, and outputs."""
Gather = Callable[[Pairs], list[Pairs]]

SHARE_TO_FILL = 0.2
"""A feature seen with such a share of the outputs gets room for all: whole rows are quicker."""
ROWS_PER_SUM = 4096
"""Sums over so many rows are formed in float32, sums of those in float64."""


@dataclass(frozen=True, eq=False)
class WeightPattern:
    """Which outputs a feature has weights for.

    Those of feature f are ``outputs[starts[f]:starts[f + 1]]``, rising.  ``free`` (weights,) marks
    the ones that may differ from 0; None: all.  ``outputs`` is None where every feature has all.
    """

    starts: npt.NDArray[np.int64]
    outputs: npt.NDArray[np.int32] | None
    n_outputs: int
    free: npt.NDArray[np.bool_] | None = None

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self.starts) - 1

    @property
    def n_weights(self) -> int:
        """How many weights there are, those that stay 0 included."""
        return int(self.starts[-1])

    def take(self, features: IntArray) -> tuple[WeightPattern, IntArray]:
        """The pattern of some features, and where their weights are in the whole."""
        begins = self.starts[features]
        sizes = self.starts[features + 1] - begins
        starts = np.concatenate([[0], np.cumsum(sizes)])
        at = np.arange(starts[-1]) + np.repeat(begins - starts[:-1], sizes)
        outputs = None if self.outputs is None else self.outputs[at]
        free = None if self.free is None else self.free[at]
        return WeightPattern(starts, outputs, self.n_outputs, free), at

    def followed_by(self, more: WeightPattern) -> WeightPattern:
        """The pattern of these features, then of ``more``."""
        starts = np.concatenate([self.starts, self.n_weights + more.starts[1:]])
        if self.outputs is None and more.outputs is None:
            return WeightPattern(starts, None, self.n_outputs)
        outputs = np.concatenate([self._listed_outputs(), more._listed_outputs()])
        free = np.concatenate(
            [np.ones(one.n_weights, bool) if one.free is None else one.free for one in (self, more)]
        )
        return WeightPattern(starts, outputs, self.n_outputs, None if free.all() else free)

    def _listed_outputs(self) -> npt.NDArray[np.int32]:
        if self.outputs is not None:
            return self.outputs
        return np.tile(np.arange(self.n_outputs, dtype=np.int32), self.n_features)

    def matrix(self, weights: Array64) -> Any:
        """(features, outputs) CSR of the weights that are free, zeros among them included."""
        outputs, starts = self._listed_outputs(), self.starts
        if self.free is not None:
            kept = np.concatenate([[0], np.cumsum(self.free)])
            starts, outputs, weights = kept[starts], outputs[self.free], weights[self.free]
        shape = self.n_features, self.n_outputs
        return sparse.csr_matrix((weights, outputs, starts), shape=shape)

    @classmethod
    def of_matrix(cls, matrix: Any) -> tuple[WeightPattern, Array64]:
        """The pattern of a CSR matrix and its weights: what `matrix` takes apart."""
        matrix.sort_indices()
        pattern, place = cls._filled(matrix.indptr, matrix.indices, matrix.shape[1])
        weights = np.zeros(pattern.n_weights)
        weights[place] = matrix.data
        return pattern, weights

    @classmethod
    def all(cls, n_features: int, n_outputs: int) -> WeightPattern:
        """A weight for every pair."""
        starts = np.arange(n_features + 1, dtype=np.int64) * n_outputs
        return cls(starts, None, n_outputs)

    @classmethod
    def observed(
        cls, X: Any, codes: IntArray, n_outputs: int, gather: Gather = lambda own: [own]
    ) -> WeightPattern:
        """A weight for every pair (feature, output) that occurs together.

        ``codes`` (rows,) are the outputs of rows, negative where they are not known.  O(entries of
        X) in time and memory; what stays on disk is read once, a chunk at a time.  ``gather`` gives
        the pairs of all who have rows.
        """
        shape = X.shape[1], n_outputs
        if isinstance(X, ShardedMatrix):
            chunks = X.chunks()
            own = _united((_observed_pairs(chunk, codes[rows]) for rows, chunk in chunks), shape)
        else:
            own = _observed_pairs(X, codes)
        parts = gather(own)
        pairs = own if len(parts) == 1 else _united(parts, shape)
        return cls._filled(pairs[0], pairs[1], n_outputs)[0]

    @classmethod
    def _filled(
        cls, indptr: IntArray, indices: IntArray, n_outputs: int
    ) -> tuple[WeightPattern, IntArray]:
        """Give features that are seen with many outputs room for all; where the pairs then are."""
        counts = np.diff(indptr)
        full = counts >= max(SHARE_TO_FILL * n_outputs, 1)
        sizes = np.where(full, n_outputs, counts)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        feature = np.repeat(np.arange(len(counts)), counts)
        rank = np.arange(len(indices)) - np.repeat(indptr[:-1], counts)
        place = starts[feature] + np.where(full[feature], indices, rank)
        outputs = np.zeros(starts[-1], np.int32)
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
        outputs[:] = within  # of whole rows; the others are put in their places next
        outputs[place] = indices
        free = np.zeros(starts[-1], bool)
        free[place] = True
        return cls(starts, outputs, n_outputs, None if free.all() else free), place


def _united(parts: Iterable[Pairs], shape: tuple[int, int]) -> Pairs:
    """The pairs that occur in one of the parts."""
    met = sparse.csr_matrix(shape, dtype=bool)
    for starts, outputs in parts:
        met = met + sparse.csr_matrix((np.ones(len(outputs), bool), outputs, starts), shape=shape)
    met.sort_indices()
    return met.indptr, met.indices


class LinearFunction:
    """Scores X W, a parametric function: (rows, outputs) from (rows, features).

    ``conjunctions`` of columns, where there are some, are the last of its features.
    """

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
        if isinstance(X, ShardedMatrix):
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
        touched, local = np.unique(X.indices, return_inverse=True)
        pattern, at = self.pattern.take(touched)
        shape = X.shape[0], len(touched)
        own = sparse.csr_matrix((X.data, local.astype(np.int32), X.indptr), shape=shape)
        return SparseFeatures(own, pattern, self.n_jobs), at

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


class SparseFeatures:
    """CSR features; their columns are kept too once a gradient is asked for.

    Scores are of the dtype of the weights, gradients are formed in that of the slopes.
    """

    def __init__(self, X: Any, pattern: WeightPattern, n_jobs: int) -> None:
        if X.shape[1] != pattern.n_features:  # the core would read beyond the weights
            raise ValueError(
                f"X has {X.shape[1]} features, the weights are for {pattern.n_features}"
            )
        self._pattern, self._n_jobs = pattern, n_jobs
        # The core reads no outputs where every feature has all of them.
        self._outputs = np.zeros(0, np.int32) if pattern.outputs is None else pattern.outputs
        self._X = X
        self._rows = compressed(X)

    def scores(self, weights: FloatArray) -> FloatArray:
        """(rows, outputs): X W.  O(weights of the features that occur)."""
        found = np.zeros((self._X.shape[0], self._pattern.n_outputs), weights.dtype)
        _core.linear_scores(
            *_in_dtype(self._rows, weights.dtype),
            self._pattern.starts,
            self._outputs,
            np.ascontiguousarray(weights),
            found,
            self._n_jobs,
        )
        return found

    def gradient(self, slope: FloatArray) -> Array64:
        """(weights,): X^T slope, of (rows, outputs)."""
        found = np.empty(self._pattern.n_weights)
        _core.linear_gradient(
            *_in_dtype(self._columns, slope.dtype),
            self._pattern.starts,
            self._outputs,
            np.ascontiguousarray(slope),
            found,
            self._n_jobs,
        )
        if self._pattern.free is not None:
            found *= self._pattern.free
        return found

    @cached_property
    def _columns(self) -> tuple[Any, Any, Any]:
        return compressed(self._X.tocsc())


class DenseFeatures:
    """A dense matrix of features, with weights for all outputs.

    Scores are of the dtype of the weights, gradients are formed in that of the slopes.
    Blocks of rows are multiplied by BLAS on one thread each, side by side on ours: BLAS's own
    threads would go on spinning in the way of inference (docs/decisions/0008).
    """

    def __init__(self, X: Array32, n_outputs: int, n_jobs: int) -> None:
        self._X, self._n_outputs, self._n_jobs = X, n_outputs, n_jobs
        begins = range(0, len(X), ROWS_PER_SUM)
        self._blocks = [slice(begin, begin + ROWS_PER_SUM) for begin in begins]

    def scores(self, weights: FloatArray) -> FloatArray:
        """(rows, outputs): X W."""
        table = weights.reshape(-1, self._n_outputs)
        found = np.empty((len(self._X), self._n_outputs), weights.dtype)

        def fill(rows: slice) -> None:
            np.matmul(self._X[rows].astype(table.dtype, copy=False), table, out=found[rows])

        self._for_blocks(fill)
        return found

    def gradient(self, slope: FloatArray) -> Array64:
        """(weights,): X^T slope; the same bits for any number of threads."""
        parts = self._for_blocks(
            lambda rows: self._X[rows].T.astype(slope.dtype, copy=False) @ slope[rows]
        )
        total = np.zeros((self._X.shape[1], self._n_outputs))
        for part in parts:
            total += part
        return total.reshape(-1)

    def _for_blocks(self, work: Callable[[slice], Any]) -> list[Any]:
        with one_blas_thread():
            if self._n_jobs == 1 or len(self._blocks) < 2:
                return [work(rows) for rows in self._blocks]
            with ThreadPoolExecutor(self._n_jobs) as pool:
                return list(pool.map(work, self._blocks))


PreparedFeatures = SparseFeatures | DenseFeatures | ShardedFeatures


def _observed_pairs(X: Any, codes: IntArray) -> tuple[IntArray, IntArray]:
    """CSR pattern of (feature, output): where each feature begins, and its outputs, rising."""
    starts, indices, _ = compressed(sparse.csr_matrix(X))
    found: tuple[IntArray, IntArray] = _core.observed_pairs(
        starts, indices, codes.astype(np.int32), X.shape[1]
    )
    return found


def compressed(X: Any) -> tuple[Any, Any, Any]:
    """Starts, indices and values of CSR or CSC; values are None where all are 1."""
    values = None if (X.data == 1).all() else np.ascontiguousarray(X.data, np.float32)
    return X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), values


def _in_dtype(matrix: tuple[Any, Any, Any], dtype: npt.DTypeLike) -> tuple[Any, Any, Any]:
    """The same, `compressed`, with values of a dtype."""
    starts, indices, values = matrix
    return starts, indices, None if values is None else values.astype(dtype, copy=False)


def with_conjunctions(X: Any, conjunctions: Conjunctions | None) -> Any:
    """As `as_numbers`; CSR where there are conjunctions, which come last."""
    if isinstance(X, ShardedMatrix):
        return X.mapped(lambda chunk: with_conjunctions(chunk, conjunctions))
    X = as_numbers(X)
    return X if conjunctions is None else conjunctions.widened(sparse.csr_matrix(X))


def as_numbers(X: Any) -> Any:
    """CSR or dense, of float32; missing counts as 0.  What stays on disk is changed when read."""
    if isinstance(X, ShardedMatrix):
        return X.mapped(as_numbers)
    return _sparse(X) if sparse.issparse(X) else _dense(X)


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
