"""A target that spreads over the labellings that constraints leave, and over no other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.inference.problem import Problem
from crfx.inference.results import SumProduct
from crfx.inference.sum_product import summed
from crfx.objectives.soft_target import ENTRIES_AT_ONCE, SoftTarget
from crfx.objectives.truth import ScoreName, Truth
from crfx.scores import FloatArray, IntArray, Scores, weighted_sum

Array64 = npt.NDArray[np.float64]
TABLES = ("edge", "start", "end")


def forbids(scores: Scores) -> bool:
    """Whether some score is -inf.  One pass over all of them."""
    tables = (getattr(scores, name) for name in ("node", *TABLES, "pairs"))
    return any(table is not None and bool(np.isneginf(table).any()) for table in tables)


@dataclass(frozen=True, eq=False)
class Spread:
    """q(y), proportional to exp(sum_t exponent_t(y_t)) where a problem's scores forbid nothing.

    A model itself, whose edges say what is forbidden; its sums are found once, in float64.
    """

    problem: Problem
    exponents: Array64

    @classmethod
    def over(cls, problem: Problem, exponents: Array64) -> Spread:
        """Over the labellings of a problem, whose finite scores do not matter."""
        scores = problem.scores
        tables = {
            name: None if (table := getattr(scores, name)) is None else _mask(table)
            for name in TABLES
        }
        node = exponents + _mask(scores.node)
        own = Scores(node, pairs=scores.pairs, **tables)
        return cls(replace(problem, scores=own), exponents)

    @cached_property
    def sums(self) -> SumProduct:
        """Log Z and the probabilities of labels."""
        return summed(self.problem, None, None)

    def entropy(self, weights: Array64 | None) -> float:
        """sum_i w_i H(q_i) = w_i (log Z - E[exponents])."""
        expected = (self.sums.node * self.exponents).sum(axis=1)
        owner, n = self.problem.batch.instance_of_row, self.problem.batch.n_instances
        each = self.sums.log_z - np.bincount(owner, expected, minlength=n)
        return float(weighted_sum(weights, each))


def _mask(table: FloatArray) -> Array64:
    found: Array64 = np.where(np.isneginf(table), -np.inf, 0.0)
    return found


@dataclass(frozen=True, eq=False)
class ConstrainedTarget(SoftTarget):
    """A `Target` of which neighbours are not independent: ``spread`` tells how they go together."""

    spread: Spread | None = None

    @classmethod
    def of(cls, truth: Truth, spread: Spread, dtype: Any, n_jobs: int | None) -> ConstrainedTarget:
        """With probabilities of labels in a dtype."""
        return cls(truth, spread.sums.node.astype(dtype), n_jobs, spread=spread)

    def _total(self, name: ScoreName, shape: tuple[int, ...]) -> Array64:
        if name != "edge":
            return super()._total(name, shape)
        if (name, shape) not in self._totals:
            assert self.spread is not None
            found = summed(self.spread.problem, "sum", None, weights=self.truth.weights)
            assert found.edge is not None
            self._totals[name, shape] = found.edge.astype(np.float64)
        return self._totals[name, shape]

    @cached_property
    def _each_edge(self) -> FloatArray:
        assert self.spread is not None
        found = summed(self.spread.problem, "each", None).edge
        assert found is not None
        return found

    def _edges(self) -> Iterator[tuple[IntArray, Array64]]:
        """Rows where edges end, some at a time, and (edges, K, ..., K) of their labels' weight."""
        rows, weights = self.truth.rows_with("edge", self.truth.batch), self.truth.row_weights
        at_once = max(1, ENTRIES_AT_ONCE // int(np.prod(self._each_edge.shape[1:])))
        for begin in range(0, len(rows), at_once):
            own = rows[begin : begin + at_once]
            q = self._each_edge[own].astype(np.float64)
            if weights is not None:
                q *= weights[own].reshape((-1,) + (1,) * (q.ndim - 1))
            yield own, q
