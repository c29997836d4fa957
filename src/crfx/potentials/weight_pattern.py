"""The pairs of feature and output that have a weight: all, or those that occur."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import _core
from crfx.features.matrix import chunks
from crfx.potentials.numbers import compressed
from crfx.scores import IntArray

Array64 = npt.NDArray[np.float64]
Pairs = tuple[IntArray, IntArray]
"""Pairs (feature, output) as in CSR: where those of each feature start, and the outputs."""

SHARE_TO_FILL = 0.2
"""A feature seen with this share of the outputs gets room for all: whole rows are faster."""


@dataclass(frozen=True, eq=False)
class WeightPattern:
    """The outputs that each feature has weights for.

    The outputs of feature f are ``outputs[starts[f]:starts[f + 1]]``, rising; ``outputs`` is None
    where every feature has all.  ``free`` (weights,) marks those that may differ from 0; None: all.
    """

    starts: npt.NDArray[np.int64]
    outputs: npt.NDArray[np.int32] | None
    n_outputs: int
    free: npt.NDArray[np.bool_] | None = None

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.starts) - 1

    @property
    def n_weights(self) -> int:
        """The number of weights, those that stay 0 included."""
        return int(self.starts[-1])

    def take(self, features: IntArray) -> tuple[WeightPattern, IntArray]:
        """Return the pattern of some features, and where their weights are in the whole."""
        begins = self.starts[features]
        sizes = self.starts[features + 1] - begins
        starts = np.concatenate([[0], np.cumsum(sizes)])
        at = np.arange(starts[-1]) + np.repeat(begins - starts[:-1], sizes)
        outputs = None if self.outputs is None else self.outputs[at]
        free = None if self.free is None else self.free[at]
        return WeightPattern(starts, outputs, self.n_outputs, free), at

    def followed_by(self, more: WeightPattern) -> WeightPattern:
        """Return the pattern of these features, then of ``more``."""
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
        """Return (features, outputs) CSR of the free weights, zeros among them included."""
        outputs, starts = self._listed_outputs(), self.starts
        if self.free is not None:
            kept = np.concatenate([[0], np.cumsum(self.free)])
            starts, outputs, weights = kept[starts], outputs[self.free], weights[self.free]
        shape = self.n_features, self.n_outputs
        return sparse.csr_matrix((weights, outputs, starts), shape=shape)

    @classmethod
    def of_matrix(cls, matrix: Any) -> tuple[WeightPattern, Array64]:
        """Return the pattern and the weights of a CSR matrix, the inverse of `matrix`."""
        matrix.sort_indices()
        pattern, place = cls._filled(matrix.indptr, matrix.indices, matrix.shape[1])
        weights = np.zeros(pattern.n_weights)
        weights[place] = matrix.data
        return pattern, weights

    @classmethod
    def all(cls, n_features: int, n_outputs: int) -> WeightPattern:
        """Return the pattern with a weight for every pair."""
        starts = np.arange(n_features + 1, dtype=np.int64) * n_outputs
        return cls(starts, None, n_outputs)

    @classmethod
    def observed(
        cls,
        X: Any,
        codes: IntArray,
        n_outputs: int,
        gather: Callable[[Pairs], list[Pairs]] = lambda pairs: [pairs],
    ) -> WeightPattern:
        """Return the pattern with a weight for every pair that occurs together.

        ``codes`` (rows,) are the outputs of rows, negative where they are not known.  O(entries of
        X) in time and memory; X on disk is read once, a chunk at a time.  ``gather`` returns the
        pairs of all workers.
        """
        shape = X.shape[1], n_outputs
        pairs = _united((_observed_pairs(part, codes[rows]) for rows, part in chunks(X)), shape)
        starts, outputs = _united(gather(pairs), shape)
        return cls._filled(starts, outputs, n_outputs)[0]

    @classmethod
    def _filled(
        cls, indptr: IntArray, indices: IntArray, n_outputs: int
    ) -> tuple[WeightPattern, IntArray]:
        """Return a pattern in which features with many outputs have all, and where pairs are."""
        counts = np.diff(indptr)
        full = counts >= max(SHARE_TO_FILL * n_outputs, 1)
        sizes = np.where(full, n_outputs, counts)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        feature = np.repeat(np.arange(len(counts)), counts)
        rank = np.arange(len(indices)) - np.repeat(indptr[:-1], counts)
        place = starts[feature] + np.where(full[feature], indices, rank)
        # Right for whole rows; the outputs of the others are put in their places next.
        outputs = (np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)).astype(np.int32)
        outputs[place] = indices
        free = np.zeros(starts[-1], bool)
        free[place] = True
        return cls(starts, outputs, n_outputs, None if free.all() else free), place


def _united(parts: Iterable[Pairs], shape: tuple[int, int]) -> Pairs:
    """Return the pairs that occur in one of the parts."""
    matrices = (
        sparse.csr_matrix((np.ones(len(outputs), bool), outputs, starts), shape=shape)
        for starts, outputs in parts
    )
    total = reduce(add, matrices)
    total.sort_indices()
    return total.indptr, total.indices


def _observed_pairs(X: Any, codes: IntArray) -> Pairs:
    """Return where the outputs of each feature begin, and these, rising."""
    starts, indices, _ = compressed(sparse.csr_matrix(X))
    return _core.observed_pairs(starts, indices, codes.astype(np.int32), X.shape[1])
