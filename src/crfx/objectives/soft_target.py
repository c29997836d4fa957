"""A target that spreads over labellings, independently at every position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.objectives.truth import ScoreName, Truth
from crfx.scores import FloatArray, IntArray, Sharing, table_index
from crfx.threads import thread_count

Array64 = npt.NDArray[np.float64]

ENTRIES_AT_ONCE = 1 << 20
"""Of tables of single edges: what is made of them at a time."""


@dataclass(frozen=True, eq=False)
class SoftTarget:
    """q(y) = prod_t q_t(y_t), with q (rows, K) given; a `Target`.

    An edge has the probability q_{t-n} ... q_t of its labels.  What shared tables and ends count is
    the same in every evaluation and found once: O(edges * K^(n+1)).
    """

    truth: Truth
    q: FloatArray
    n_jobs: int | None = None
    _totals: dict[tuple[ScoreName, tuple[int, ...]], Array64] = field(
        default_factory=dict, init=False, repr=False
    )

    def score(self, name: ScoreName, scores: FloatArray, sharing: Sharing) -> float:
        """Expected under q, weights counted."""
        if name == "node":
            return self._expected(self._weighed_q, scores)
        if name == "edge" and sharing == "each":
            return sum(self._expected(q, scores[rows]) for rows, q in self._edges())
        return self._expected(self._total(name, scores.shape), scores)

    def _expected(self, weights: FloatArray, scores: FloatArray) -> float:
        """In float64; what has no weight may be forbidden."""
        as_scores = weights.astype(scores.dtype, copy=False)
        return _core.weighted_total(as_scores, scores, thread_count(self.n_jobs))

    def subtract_from(self, name: ScoreName, expected: FloatArray, sharing: Sharing) -> None:
        """Expected counts minus those of q, in place."""
        if name == "node":
            expected -= self._weighed_q
        elif name == "edge" and sharing == "each":
            for rows, q in self._edges():
                expected[rows] -= q.astype(expected.dtype)
        else:
            expected -= self._total(name, expected.shape).astype(expected.dtype)

    @property
    def _weighed_q(self) -> FloatArray:
        weights = self.truth.row_weights
        return self.q if weights is None else self.q * weights[:, None].astype(self.q.dtype)

    def _total(self, name: ScoreName, shape: tuple[int, ...]) -> Array64:
        """Expected counts of ends, or of tables that edges share."""
        if (name, shape) not in self._totals:
            total = np.zeros(shape)
            if name == "edge":
                is_typed = len(shape) > self.truth.structure.n_label_axes
                for rows, q in self._edges():
                    if is_typed:
                        np.add.at(total, table_index("typed", rows, self.truth.batch.edge_types), q)
                    else:
                        total += q.sum(axis=0)
            else:
                rows = self.truth.rows_with(name, self.truth.batch)
                total += self._weighed_q[rows].sum(axis=0, dtype=np.float64)
            self._totals[name, shape] = total
        return self._totals[name, shape]

    def _edges(self) -> Iterator[tuple[IntArray, Array64]]:
        """Rows where edges end, some at a time, and (edges, K, ..., K) of their labels' weight."""
        truth = self.truth
        rows, before = truth.rows_with("edge", truth.batch), truth.structure.contexts(truth.batch)
        at_once = max(1, ENTRIES_AT_ONCE // self.q.shape[1] ** truth.structure.n_label_axes)
        for begin in range(0, len(rows), at_once):
            own = rows[begin : begin + at_once]
            q = self._weighed_rows(own)
            for axis in reversed(range(before.shape[1])):
                older = self.q[before[begin : begin + at_once, axis]].astype(np.float64)
                q = older.reshape(older.shape + (1,) * (q.ndim - 1)) * q[:, None]
            yield own, q

    def _weighed_rows(self, rows: IntArray) -> Array64:
        weights, q = self.truth.row_weights, self.q[rows].astype(np.float64)
        return q if weights is None else q * weights[rows, None]
