"""Targets of the KL objective: distributions over labellings.

`SoftTarget` spreads independently at every position, `ConstrainedTarget` over the labellings that
constraints leave, `ListedTarget` over given labellings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.inference.problem import Problem
from crfx.inference.results import SumProduct
from crfx.inference.sum_product import summed
from crfx.objectives.candidates import add_weighted_counts
from crfx.objectives.truth import ScoreName, Truth
from crfx.scores import FloatArray, IntArray, Scores, Sharing, table_index, weighted_sum
from crfx.threads import thread_count

Array64 = npt.NDArray[np.float64]
TABLES = ("edge", "start", "end")

ENTRIES_AT_ONCE = 1 << 20
"""Entries of tables of single edges that are made at a time."""


@dataclass(frozen=True, eq=False)
class SoftTarget:
    """q(y) = prod_t q_t(y_t), with q (rows, K) given; a `Target`.

    An edge has the probability q_{t-n} ... q_t of its labels.  The counts of shared tables and ends
    are the same in every evaluation and cached: O(edges * K^(n+1)).
    """

    truth: Truth
    q: FloatArray
    n_jobs: int | None = None
    _totals: dict[tuple[ScoreName, tuple[int, ...]], Array64] = field(
        default_factory=dict, init=False, repr=False
    )

    def score(self, name: ScoreName, scores: FloatArray, sharing: Sharing) -> float:
        """Return the expected score under q, times the weights of instances."""
        if name == "node":
            return self._expected(self._weighed_q, scores)
        if name == "edge" and sharing == "each":
            return sum(self._expected(q, scores[rows]) for rows, q in self._edges())
        return self._expected(self._total(name, scores.shape), scores)

    def _expected(self, weights: FloatArray, scores: FloatArray) -> float:
        """Return the weighted total in float64; scores without weight may be -inf."""
        as_scores = weights.astype(scores.dtype, copy=False)
        return _core.weighted_total(as_scores, scores, thread_count(self.n_jobs))

    def subtract_from(self, name: ScoreName, expected: FloatArray, sharing: Sharing) -> None:
        """Subtract the counts of q from expected counts, in place."""
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
        """Return expected counts of ends, or of tables that edges share."""
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
        """Yield rows where edges end, some at a time, and (edges, K, ..., K) label weights."""
        truth = self.truth
        rows, before = truth.rows_with("edge", truth.batch), truth.structure.contexts(truth.batch)
        at_once = max(1, ENTRIES_AT_ONCE // self.q.shape[1] ** truth.structure.n_label_axes)
        for begin in range(0, len(rows), at_once):
            some = rows[begin : begin + at_once]
            q = self.q[some].astype(np.float64)
            if truth.row_weights is not None:
                q = q * truth.row_weights[some, None]
            for axis in reversed(range(before.shape[1])):
                older = self.q[before[begin : begin + at_once, axis]].astype(np.float64)
                q = older.reshape(older.shape + (1,) * (q.ndim - 1)) * q[:, None]
            yield some, q


def forbids(scores: Scores) -> bool:
    """Return whether some score is -inf.  One pass over all of them."""
    tables = (getattr(scores, name) for name in ("node", *TABLES, "pairs"))
    return any(table is not None and bool(np.isneginf(table).any()) for table in tables)


@dataclass(frozen=True, eq=False)
class Spread:
    """q(y), proportional to exp(sum_t exponent_t(y_t)) where a problem's scores forbid nothing.

    It is a model whose edges hold the constraints; its sums are cached, in float64.
    """

    problem: Problem
    exponents: Array64

    @classmethod
    def over(cls, problem: Problem, exponents: Array64) -> Spread:
        """Spread over the labellings of a problem, whose finite scores do not matter."""
        scores = problem.scores
        tables = {
            name: None if (table := getattr(scores, name)) is None else _mask(table)
            for name in TABLES
        }
        node = exponents + _mask(scores.node)
        masks = Scores(node, pairs=scores.pairs, **tables)
        return cls(replace(problem, scores=masks), exponents)

    @cached_property
    def sums(self) -> SumProduct:
        """Log Z and the probabilities of labels."""
        return summed(self.problem, None, None)

    def entropy(self, weights: Array64 | None) -> float:
        """Return sum_i w_i H(q_i) = w_i (log Z - E[exponents])."""
        expected = (self.sums.node * self.exponents).sum(axis=1)
        owner, n = self.problem.batch.instance_of_row, self.problem.batch.n_instances
        each = self.sums.log_z - np.bincount(owner, expected, minlength=n)
        return float(weighted_sum(weights, each))


def _mask(table: FloatArray) -> Array64:
    return np.asarray(np.where(np.isneginf(table), -np.inf, 0.0))


@dataclass(frozen=True, eq=False)
class ConstrainedTarget(SoftTarget):
    """A `Target` in which neighbours depend on each other, as in ``spread``."""

    spread: Spread | None = None

    @classmethod
    def of(
        cls, truth: Truth, spread: Spread, dtype: npt.DTypeLike, n_jobs: int | None
    ) -> ConstrainedTarget:
        """Return the target with probabilities of labels in a dtype."""
        return cls(truth, spread.sums.node.astype(dtype), n_jobs, spread=spread)

    def _total(self, name: ScoreName, shape: tuple[int, ...]) -> Array64:
        if name != "edge":
            return super()._total(name, shape)
        if (name, shape) not in self._totals:
            assert self.spread is not None
            edge = summed(self.spread.problem, "sum", None, weights=self.truth.weights).edge
            assert edge is not None
            self._totals[name, shape] = edge.astype(np.float64)
        return self._totals[name, shape]

    @cached_property
    def _each_edge(self) -> FloatArray:
        assert self.spread is not None
        edge = summed(self.spread.problem, "each", None).edge
        assert edge is not None
        return edge

    def _edges(self) -> Iterator[tuple[IntArray, Array64]]:
        """Yield rows where edges end, some at a time, and (edges, K, ..., K) label weights."""
        rows, weights = self.truth.rows_with("edge", self.truth.batch), self.truth.row_weights
        at_once = max(1, ENTRIES_AT_ONCE // int(np.prod(self._each_edge.shape[1:])))
        for begin in range(0, len(rows), at_once):
            some = rows[begin : begin + at_once]
            q = self._each_edge[some].astype(np.float64)
            if weights is not None:
                q *= weights[some].reshape((-1,) + (1,) * (q.ndim - 1))
            yield some, q


@dataclass(frozen=True, eq=False)
class ListedTarget:
    """Labellings (n, rows) of every instance with weights (n, instances); a `Target`."""

    truth: Truth
    labels: npt.NDArray[np.int32]
    weights: Array64

    def score(self, name: ScoreName, scores: FloatArray, sharing: Sharing) -> float:
        """Return their weighted score."""
        counts = np.zeros(scores.shape)
        add_weighted_counts(counts, self.truth, name, sharing, self.labels, self.weights)
        used = counts != 0
        return float((counts[used] * scores[used]).sum(dtype=np.float64))

    def subtract_from(self, name: ScoreName, expected: FloatArray, sharing: Sharing) -> None:
        """Subtract their counts from expected counts, in place."""
        add_weighted_counts(expected, self.truth, name, sharing, self.labels, -self.weights)
