"""Features in the form that training multiplies by weights, and by slopes, again and again."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import _core
from crfx.features.matrix import Matrix
from crfx.potentials.numbers import compressed
from crfx.potentials.weight_pattern import WeightPattern
from crfx.scores import FloatArray, IntArray
from crfx.threads import one_blas_thread

Array32 = npt.NDArray[np.float32]
Array64 = npt.NDArray[np.float64]

ROWS_PER_SUM = 2048
"""Sums over this many rows are formed in float32, sums of those in float64."""

SLOPES_PER_BLOCK = 2**20
"""Slopes that are read once per column: 4 MiB, which caches hold."""


def touched_columns(X: Any) -> tuple[Any, IntArray]:
    """Return the columns of CSR features that have entries, and which they are."""
    touched, local = np.unique(X.indices, return_inverse=True)
    shape = X.shape[0], len(touched)
    return sparse.csr_matrix((X.data, local.astype(np.int32), X.indptr), shape=shape), touched


class SparseFeatures:
    """CSR features; their columns are kept too after the first gradient.

    Scores have the dtype of the weights, gradients are formed in that of the slopes.
    """

    reuses_scores = False
    """Whether scores may overwrite the array of the last call."""

    def __init__(self, X: Any, pattern: WeightPattern, n_jobs: int) -> None:
        if X.shape[1] != pattern.n_features:  # the core would read beyond the weights
            raise ValueError(
                f"X has {X.shape[1]} features, the weights are for {pattern.n_features}"
            )
        self._pattern, self._n_jobs = pattern, n_jobs
        # The core reads no outputs where every feature has all of them.
        self._outputs = np.zeros(0, np.int32) if pattern.outputs is None else pattern.outputs
        self._X = X
        self._scores: FloatArray | None = None
        self._rows = compressed(X)

    def scores(self, weights: FloatArray) -> FloatArray:
        """Return (rows, outputs): X W.  O(weights of the features that occur)."""
        scores = self._scores
        if scores is not None and scores.dtype == weights.dtype:
            scores.fill(0.0)
        else:
            scores = np.zeros((self._X.shape[0], self._pattern.n_outputs), weights.dtype)
            self._scores = scores if self.reuses_scores else None
        _core.linear_scores(
            *_in_dtype(self._rows, weights.dtype),
            self._pattern.starts,
            self._outputs,
            np.ascontiguousarray(weights),
            scores,
            self._n_jobs,
        )
        return scores

    def gradient(self, slope: FloatArray) -> Array64:
        """Return (weights,): X^T ``slope`` (rows, outputs)."""
        gradient = np.zeros(self._pattern.n_weights)
        slope = np.ascontiguousarray(slope)
        for rows, columns, features in self._columns:
            _core.linear_gradient(
                *_in_dtype(columns, slope.dtype),
                features,
                self._pattern.starts,
                self._outputs,
                slope[rows],
                gradient,
                self._n_jobs,
            )
        if self._pattern.free is not None:
            gradient *= self._pattern.free
        return gradient

    @cached_property
    def _columns(self) -> list[tuple[slice, tuple[Any, Any, Any], npt.NDArray[np.int32]]]:
        """The columns of each block of rows: its rows, entries, and features that occur."""
        columns = []
        step = max(1, SLOPES_PER_BLOCK // self._pattern.n_outputs)
        for begin in range(0, self._X.shape[0], step):
            rows = slice(begin, begin + step)
            block = self._X[rows].tocsc()
            features = np.flatnonzero(np.diff(block.indptr))
            starts, indices, values = compressed(block)
            kept = np.append(starts[features], starts[-1:])
            columns.append((rows, (kept, indices, values), features.astype(np.int32)))
        return columns


class DenseFeatures:
    """A dense matrix of features, with weights for all outputs.

    Scores have the dtype of the weights, gradients are formed in that of the slopes.
    BLAS multiplies each block of rows on one of our threads: its own threads would keep spinning
    and slow down inference (docs/decisions/0008).
    """

    def __init__(self, X: Array32, n_outputs: int, n_jobs: int) -> None:
        self._X, self._n_outputs, self._n_jobs = X, n_outputs, n_jobs
        begins = range(0, len(X), ROWS_PER_SUM)
        self._blocks = [slice(begin, begin + ROWS_PER_SUM) for begin in begins]

    def scores(self, weights: FloatArray) -> FloatArray:
        """Return (rows, outputs): X W."""
        table = weights.reshape(-1, self._n_outputs)
        scores = np.empty((len(self._X), self._n_outputs), weights.dtype)

        def fill(rows: slice) -> None:
            np.matmul(self._X[rows].astype(table.dtype, copy=False), table, out=scores[rows])

        self._for_blocks(fill)
        return scores

    def gradient(self, slope: FloatArray) -> Array64:
        """Return (weights,): X^T ``slope``, the same bits for any number of threads."""
        parts = self._for_blocks(
            lambda rows: self._X[rows].T.astype(slope.dtype, copy=False) @ slope[rows]
        )
        total = np.zeros((self._X.shape[1], self._n_outputs))
        for part in parts:
            total += part
        return total.reshape(-1)

    def _for_blocks(self, work: Callable[[slice], Any]) -> list[Any]:
        """Return the result of ``work`` for each block, in order; threads take turns."""
        with one_blas_thread():
            if self._n_jobs == 1 or len(self._blocks) < 2:
                return [work(rows) for rows in self._blocks]
            results: list[Any] = [None] * len(self._blocks)

            def work_from(first: int) -> None:
                for number in range(first, len(self._blocks), self._n_jobs):
                    results[number] = work(self._blocks[number])

            others = [self._pool.submit(work_from, first) for first in range(1, self._n_jobs)]
            work_from(0)
            for other in others:
                other.result()
            return results

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        """The other threads, which stay: to start one costs as much as a small product."""
        return ThreadPoolExecutor(self._n_jobs - 1)


class Prepared(Protocol):
    """Features of some rows, in the form that training uses again and again."""

    def scores(self, values: FloatArray, /) -> FloatArray:
        """Return (rows, outputs), of the dtype of the parameters."""
        ...

    def gradient(self, slope: FloatArray, /) -> Array64:
        """Return (parameters,) from slopes (rows, outputs)."""
        ...


class ShardedFeatures:
    """Features on disk: one chunk, ``prepare`` d, is in memory at a time.

    Each chunk is read for the scores and again, in reverse order, for the gradient; the last one is
    still there then.  With ``looks_back`` the gradient of a chunk needs its last scores, which are
    computed again.
    """

    def __init__(
        self,
        X: Matrix,
        prepare: Callable[[Any], Prepared],
        n_outputs: int,
        *,
        looks_back: bool,
    ) -> None:
        self._X, self._prepare, self._n_outputs = X, prepare, n_outputs
        self._looks_back = looks_back
        self._values: npt.NDArray[Any] | None = None
        self._kept: tuple[int, Prepared] | None = None

    def scores(self, values: FloatArray) -> FloatArray:
        """Return (rows, outputs), of the dtype of the parameters."""
        scores = np.empty((self._X.shape[0], self._n_outputs), values.dtype)
        for number in range(self._X.n_chunks):
            scores[self._X.rows(number)] = self._chunk(number).scores(values)
        self._values = values.copy() if self._looks_back else None
        return scores

    def gradient(self, slope: FloatArray) -> Array64:
        """Return (parameters,); sums over chunks are formed in float64."""
        total: Array64 | None = None
        for number in reversed(range(self._X.n_chunks)):
            is_kept = self._kept is not None and self._kept[0] == number
            chunk = self._chunk(number)
            if self._looks_back and not is_kept:
                assert self._values is not None, "scores come first"
                chunk.scores(self._values)
            part = chunk.gradient(slope[self._X.rows(number)])
            total = part if total is None else total + part
        assert total is not None
        return total

    def _chunk(self, number: int) -> Prepared:
        if self._kept is None or self._kept[0] != number:
            self._kept = None  # before the next is read
            self._kept = number, self._prepare(self._X.chunk(number))
        return self._kept[1]


def prepared(X: Any, pattern: WeightPattern, n_jobs: int) -> SparseFeatures | DenseFeatures:
    """Return features in memory, numbers, in the form for weights of ``pattern``."""
    if not sparse.issparse(X) and pattern.outputs is None:
        return DenseFeatures(X, pattern.n_outputs, n_jobs)
    return SparseFeatures(sparse.csr_matrix(X), pattern, n_jobs)


def _in_dtype(matrix: tuple[Any, Any, Any], dtype: npt.DTypeLike) -> tuple[Any, Any, Any]:
    """Return the matrix, a result of `compressed`, with values of a dtype."""
    starts, indices, values = matrix
    return starts, indices, None if values is None else values.astype(dtype, copy=False)
