"""The loss-inspired divergence (Volkovs et al. 2011, Eq. 8 and 9): exact for sums over positions.

q(y) is proportional to exp(-loss(y) / T).  Where the loss is a sum over positions, q is a product
over positions: label smoothing by the costs of mistakes, exact for structures.  Labellings that
scores of -inf forbid have no part in q, which then is a chain or forest itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.inference.problem import Problem
from crfx.inference.sum_product import summed
from crfx.objectives.base import Evaluation, Objective, PartName
from crfx.objectives.candidates import (
    Candidates,
    Source,
    add_weighted_counts,
    bind_either,
    check_candidates,
    softmax,
)
from crfx.objectives.costs import PositionCosts, WholeLosses
from crfx.objectives.curvature import Curvature
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.task_loss import TaskLoss, is_number
from crfx.objectives.truth import ScoreName, Truth
from crfx.scores import Array64, FloatArray, IntArray, Scores, Sharing, table_index, weighted_sum
from crfx.threads import thread_count

ENTRIES_AT_ONCE = 1 << 20
"""Entries of tables of single edges that are made at a time."""


@dataclass(frozen=True)
class KL:
    """The divergence of the model from a target that spreads by the loss, exp(-loss / T).

    Parameters
    ----------
    temperature : float
        T.  Towards 0 it is the likelihood; 0.2 gives a mistake exp(-5) of the truth's weight.
    candidates, n_candidates, seed
        As in `ExpectedLoss`: what the target spreads over for a loss of whole labellings.
    """

    temperature: float = 0.2
    candidates: Source | None = None
    n_candidates: int = 20
    seed: int = 0
    name: ClassVar[str] = "kl"
    uses_loss: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not is_number(self.temperature) or not 0 < self.temperature < np.inf:
            raise ValueError(f"temperature is {self.temperature!r}: it must be above 0")
        check_candidates(self.candidates, self.n_candidates, self.seed)

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """Return the objective for the truth of a batch and either kind of loss."""
        costs = bind_either(loss, truth, self.candidates)
        if isinstance(costs, PositionCosts):
            return Divergence(costs, self.temperature, n_jobs)
        source: Source = self.candidates or "samples"
        candidates = source, self.n_candidates, self.seed
        return ListedDivergence(costs, self.temperature, *candidates, n_jobs)


class Divergence(Likelihood):
    """sum_i w_i KL(q_i || p_i) = log Z - E_q[score] - H(q): linear in the scores but for log Z.

    So it has the curvature of the likelihood, and becomes it as the temperature falls to 0.
    All labels must be known: an unknown one has no loss to spread by.
    """

    def __init__(self, costs: PositionCosts, temperature: float, n_jobs: int | None = None) -> None:
        truth = costs.truth
        super().__init__(truth, n_jobs)
        self.costs, self.temperature = costs, temperature
        truth.check_all_known("kl")
        truth.check_no_class_weights('"kl"')
        exponents = costs.by_row().astype(np.float64) / -temperature
        exponents -= exponents.max(axis=1, keepdims=True)
        self._exponents = exponents
        self._entropy = 0.0

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        if not isinstance(self.target, SoftTarget) or self.target.q.dtype != problem.scores.dtype:
            spread = constrained_target if forbids(problem.scores) else soft_target
            target = spread(self.truth, problem, self._exponents, self.n_jobs)
            self.target, self._entropy = target  # once: constraints do not change in training
        result = super().evaluate(problem, parts, curvature)
        return replace(result, value=result.value - self._entropy)


class ListedDivergence(Likelihood):
    """sum_i w_i KL(q_i || p_i), with q proportional to exp(-loss / T) on the truth and candidates.

    log Z is exact, over all labellings, so the curvature of the likelihood holds.
    """

    def __init__(
        self,
        losses: WholeLosses,
        temperature: float,
        source: Source,
        n: int,
        seed: int,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(losses.truth, n_jobs)
        losses.truth.check_all_known("kl")
        losses.truth.check_no_class_weights('"kl"')
        self.losses, self.temperature = losses, temperature
        self.source: Source = source
        self.n, self.seed = n, seed

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        candidates = Candidates.of(problem, self.source, self.n, self.seed, self.n_jobs)
        candidates = candidates.with_truth(self.truth)
        losses = candidates.losses(self.losses)
        q = softmax(np.where(candidates.exist, losses / -self.temperature, -np.inf))
        entropy = -(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=0)
        if self.truth.weights is not None:
            q, entropy = q * self.truth.weights, entropy * self.truth.weights
        self.target = ListedTarget(self.truth, candidates.labels, q)
        result = super().evaluate(problem, parts, curvature)
        return replace(result, value=result.value - float(entropy.sum()))


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


@dataclass(frozen=True, eq=False)
class ConstrainedTarget(SoftTarget):
    """A `Target` in which neighbours depend on each other: the model of ``spread``."""

    spread: Problem | None = None

    def _total(self, name: ScoreName, shape: tuple[int, ...]) -> Array64:
        if name != "edge":
            return super()._total(name, shape)
        if (name, shape) not in self._totals:
            assert self.spread is not None
            edge = summed(self.spread, "sum", None, weights=self.truth.weights).edge
            assert edge is not None
            self._totals[name, shape] = edge.astype(np.float64)
        return self._totals[name, shape]

    @cached_property
    def _each_edge(self) -> FloatArray:
        assert self.spread is not None
        edge = summed(self.spread, "each", None).edge
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


def soft_target(
    truth: Truth, problem: Problem, exponents: Array64, n_jobs: int | None
) -> tuple[SoftTarget, float]:
    """Return q, proportional to exp(exponents), and sum_i w_i H(q_i)."""
    q = np.exp(exponents)
    totals = q.sum(axis=1, keepdims=True)
    q /= totals
    log_q = exponents - np.log(totals)
    # 0 log 0 is 0, and exp has made 0 of what is far below any precision.
    rows = -(q * np.maximum(log_q, -1e3)).sum(axis=1)
    target = SoftTarget(truth, q.astype(problem.scores.dtype), n_jobs)
    return target, float(weighted_sum(truth.row_weights, rows))


def constrained_target(
    truth: Truth, problem: Problem, exponents: Array64, n_jobs: int | None
) -> tuple[ConstrainedTarget, float]:
    """Return q over the labellings that a problem allows, and sum_i w_i H(q_i).

    q is a model with the exponents as node scores, and edges that hold the constraints; in float64.
    H(q) is log Z - E[exponents].
    """
    scores, batch = problem.scores, problem.batch
    masks = {
        name: None if (table := getattr(scores, name)) is None else _mask(table)
        for name in ("edge", "start", "end")
    }
    node = exponents + _mask(scores.node)
    spread = replace(problem, scores=Scores(node, pairs=scores.pairs, **masks))
    sums = summed(spread, None, None)
    expected = (sums.node * exponents).sum(axis=1)
    owner, n = batch.instance_of_row, batch.n_instances
    entropies = sums.log_z - np.bincount(owner, expected, minlength=n)
    target = ConstrainedTarget(truth, sums.node.astype(scores.dtype), n_jobs, spread=spread)
    return target, float(weighted_sum(truth.weights, entropies))


def forbids(scores: Scores) -> bool:
    """Return whether some score is -inf.  One pass over all of them."""
    tables = (scores.node, scores.edge, scores.start, scores.end, scores.pairs)
    return any(table is not None and bool(np.isneginf(table).any()) for table in tables)


def _mask(table: FloatArray) -> Array64:
    return np.asarray(np.where(np.isneginf(table), -np.inf, 0.0))
