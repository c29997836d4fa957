"""The negative log-likelihood, with labels that may be unknown (Chen et al. 2015, Eq. 3 to 8)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from crfx import _core
from crfx.batch import Batch
from crfx.inference.problem import Problem
from crfx.inference.results import SumProduct
from crfx.inference.sum_product import summed
from crfx.objectives.base import CurvatureKind, Evaluation, Objective, PartName
from crfx.objectives.by_parts import ByLevels
from crfx.objectives.counts import END_NAMES, edges_of, unit_curvature
from crfx.objectives.curvature import LEAST_CURVATURE, Curvature
from crfx.objectives.truth import SCORE_NAMES, UNKNOWN, Target, Truth
from crfx.scores import FloatArray, IntArray, Room, Sharing, empty_like, weighted_sum
from crfx.structures import Chain
from crfx.threads import thread_count

Slopes = tuple[dict[str, FloatArray], dict[str, FloatArray]]
"""Gradient and curvature, by name of the scores."""


class Sums(NamedTuple):
    """Sums over all labellings, and, of partly labelled instances, over those that agree with the
    known labels.
    """

    problem: Problem
    free: SumProduct
    agreeing: SumProduct | None
    curvature: Curvature | None


class Likelihood:
    """sum_i w_i (log Z_i - log Z_i(known labels)).

    With all labels known the second term is the score of the truth.  Where some are not, it is the
    log of the sum over all labellings that agree with the known ones.  That term is concave in the
    scores, lies below its linearisation, and adds no curvature: bounds for log Z stay bounds.

    The gradient is p - mu (the supplement's Eq. 21; Eq. 5 has the sign reversed), with mu the
    marginals given what is known.  One sum-product per evaluation, two where labels are unknown.
    """

    curvature_kind: CurvatureKind = "bound"
    room: Room | None = None
    """Where evaluations put slopes of nodes, if each may overwrite those of the one before."""

    def __init__(self, truth: Truth, n_jobs: int | None = None) -> None:
        self.truth, self.n_jobs = truth, n_jobs
        self.target: Target = truth

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        edges = edges_of(parts)
        bounded = {"node", "edge", "each_edge"}.intersection(parts)
        free = summed(
            problem,
            edges,
            curvature.bound if curvature is not None and bounded else None,
            nodes=bool({"node", "ends"}.intersection(parts)),
            edge_curvature=curvature is not None and not curvature.first_order and "edge" in parts,
            weights=self.truth.weights,
            n_jobs=self.n_jobs,
            room=self.room,
        )
        agreeing = self._clamped(problem, edges)
        value = self._value(problem, free, agreeing)
        ways = {
            "ends": self._ends,  # first: it reads the node marginals that the next one changes
            "node": self._node,
            "edge": self._edge,
            "each_edge": self._each_edge,
        }
        gradient: dict[str, FloatArray] = {}
        curved: dict[str, FloatArray] = {}
        if curvature is not None and curvature.first_order:
            curved, curvature = unit_curvature(self.truth, problem, parts), None
        for part in (name for name in ways if name in parts):
            slope, curve = ways[part](Sums(problem, free, agreeing, curvature))
            gradient |= slope
            curved |= curve
        gamma = free.node_gamma if "node" in parts else None
        mean = None if gamma is None or not gamma.size else float(gamma.mean(dtype=np.float64))
        return Evaluation(value, gradient, curved, mean)

    def _clamped(self, problem: Problem, edges: str | None) -> SumProduct | None:
        """Sum over the labellings of partly labelled instances that agree with known labels."""
        part = self.truth.partial
        if part is None:
            return None
        labels, weights = self.truth.labels[part.rows], self.truth.weights
        known = np.flatnonzero(labels != UNKNOWN)
        return summed(
            problem.cut(part).clamped(known, labels[known]),
            edges,
            None,
            weights=None if weights is None else weights[part.instances],
            n_jobs=self.n_jobs,
        )

    def _value(self, problem: Problem, free: SumProduct, agreeing: SumProduct | None) -> float:
        weights = self.truth.weights
        known = sum(
            self.target.score(name, scores, problem.sharing)
            for name in SCORE_NAMES
            if (scores := getattr(problem.scores, name)) is not None
        )
        value = float(weighted_sum(weights, free.log_z)) - known
        if agreeing is not None and self.truth.partial is not None:
            partial = None if weights is None else weights[self.truth.partial.instances]
            value -= float(weighted_sum(partial, agreeing.log_z))
        return value

    # One method per part.

    def _node(self, at: Sums) -> Slopes:
        known = None if at.agreeing is None else at.agreeing.node
        return self._by_row(at, "node", at.free.node, at.free.node_gamma, known)

    def _each_edge(self, at: Sums) -> Slopes:
        assert at.free.edge is not None
        known = None if at.agreeing is None else at.agreeing.edge
        return self._by_row(at, "edge", at.free.edge, at.free.edge_gamma, known)

    def _by_row(
        self,
        at: Sums,
        name: Literal["node", "edge"],
        p: FloatArray,
        gamma: FloatArray | None,
        known: FloatArray | None,
    ) -> Slopes:
        """Turn marginals ``p`` into the gradient, in place; ``known`` are those of ``agreeing``."""
        curved: dict[str, FloatArray] = {}
        room = self.room if name == "node" else None
        if at.curvature is not None:
            curved = {name: event_curvature(p, gamma, at.curvature.factor, self.n_jobs, room)}
        if known is not None and self.truth.partial is not None:
            p[self.truth.partial.rows] -= known
        weights = self.truth.row_weights
        if weights is not None:
            for array in (p, *curved.values()):
                array *= weights.reshape((-1,) + (1,) * (array.ndim - 1)).astype(array.dtype)
        self.target.subtract_from(name, p, at.problem.sharing)
        return {name: p}, curved

    def _edge(self, at: Sums) -> Slopes:
        problem, free, agreeing, curvature = at
        gradient = free.edge
        assert gradient is not None
        # Scores may differ by edge, those of a base model do; the table that moves is shared.
        sharing: Sharing = "typed" if problem.sharing == "typed" else "shared"
        self.target.subtract_from("edge", gradient, sharing)
        if agreeing is not None and agreeing.edge is not None:
            gradient -= agreeing.edge
        if curvature is None:
            return {"edge": gradient}, {}
        assert free.edge_curvature is not None
        return {"edge": gradient}, {"edge": curvature.factor * free.edge_curvature}

    def _ends(self, at: Sums) -> Slopes:
        problem, free, agreeing, curvature = at
        truth, partial = self.truth, self.truth.partial
        gradient: dict[str, FloatArray] = {}
        curvatures: dict[str, FloatArray] = {}
        for name in END_NAMES:
            if getattr(problem.scores, name) is None:
                continue
            rows = truth.end_rows(name)
            p, weights = free.node.take(rows, axis=0), self._weights_of(rows)
            slope = weighted_sum(weights, p)
            if curvature is not None:
                curvatures[name] = curvature.ends_factor * weighted_sum(weights, p * (1 - p))
            if agreeing is not None and partial is not None:
                rows = truth.rows_with(name, partial.batch)
                slope -= weighted_sum(self._weights_of(partial.rows[rows]), agreeing.node[rows])
            self.target.subtract_from(name, slope, problem.sharing)
            gradient[name] = slope
        return gradient, curvatures

    def _weights_of(self, rows: IntArray) -> FloatArray | None:
        weights = self.truth.row_weights
        return None if weights is None else weights[rows]


class WeightedLikelihood(ByLevels):
    """sum_i w_i sum_l (v_l - v_{l-1}) -log p(labels of weight v_l or more | the others, x).

    Convex as the likelihood is, and its bounds are those of log Z over fewer labellings.  Without
    edges it is the likelihood of positions, each with its own weight.
    """

    curvature_kind: CurvatureKind = "bound"

    def __init__(self, truth: Truth, n_jobs: int | None = None) -> None:
        super().__init__(truth, lambda level: Likelihood(level, n_jobs))
        self.n_jobs = n_jobs

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        scores = problem.scores
        if scores.edge is not None or scores.start is not None or scores.end is not None:
            return super().evaluate(problem, parts, curvature)
        alone = Problem(self._positions.truth.batch, scores, Chain(1), "none")
        return self._positions.evaluate(alone, parts, curvature)

    @cached_property
    def _positions(self) -> Likelihood:
        """Every position as an instance."""
        truth = self.truth
        batch = Batch.from_lengths(np.ones(truth.batch.n_rows, np.int64))
        alone = Truth(batch, Chain(1), truth.labels, truth.position_weights)
        return Likelihood(alone, self.n_jobs)


def likelihood_of(truth: Truth, n_jobs: int | None = None) -> Objective:
    """Return the likelihood, weighted if labels have weights."""
    kind = Likelihood if truth.class_weights is None else WeightedLikelihood
    return kind(truth, n_jobs)


def event_curvature(
    p: FloatArray,
    gamma: FloatArray | None,
    factor: float,
    n_jobs: int | None = None,
    room: Room | None = None,
) -> FloatArray:
    """Return factor * gamma * p * (1 - p), at least ``LEAST_CURVATURE``; gamma by row or event.

    In place, p becomes 1 where rounding left it above: a sure event would have a slope and no
    curvature.
    """
    curved = empty_like(p, "curvature", room)
    _core.event_curvature(p, gamma, factor, LEAST_CURVATURE, curved, thread_count(n_jobs))
    return curved
