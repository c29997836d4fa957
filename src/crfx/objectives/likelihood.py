"""The negative log-likelihood, with labels that may be unknown (Chen et al. 2015, Eq. 3 to 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from crfx import _core
from crfx.inference.clamping import clamped
from crfx.inference.problem import Problem
from crfx.inference.results import SumProduct
from crfx.inference.sum_product import summed
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.counts import edges_of
from crfx.objectives.curvature import Curvature
from crfx.objectives.first_order import END_NAMES, unit_curvature
from crfx.objectives.truth import UNKNOWN, ScoreName, Target, Truth
from crfx.scores import FloatArray, IntArray, Sharing, weighted_sum
from crfx.threads import thread_count

SCORE_NAMES: tuple[ScoreName, ...] = ("node", "edge", "start", "end")
LEAST_CURVATURE = 1e-16
"""Keeps leaves of rows that are all but certain finite where nothing regularises."""


Slopes = tuple[dict[str, FloatArray], dict[str, FloatArray]]
"""Gradient and curvature, by name of the scores."""


class Sums(NamedTuple):
    """What the parts of an evaluation read: sums over all labellings, and over those that agree
    with what is known of the partly labelled.
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

    curvature_kind: Literal["bound", "diagonal", "none"] = "bound"

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
        """Sum over the labellings that agree with what is known, of the partly labelled."""
        part = self.truth.partial
        if part is None:
            return None
        labels, weights = self.truth.labels[part.rows], self.truth.weights
        known = np.flatnonzero(labels != UNKNOWN)
        return summed(
            clamped(problem.cut(part.batch, part.rows), known, labels[known]),
            edges,
            None,
            weights=None if weights is None else weights[part.instances],
            n_jobs=self.n_jobs,
        )

    def _value(self, problem: Problem, free: SumProduct, agreeing: SumProduct | None) -> float:
        weights = self.truth.weights
        value = float(weighted_sum(weights, free.log_z)) - self._known_score(problem)
        if agreeing is not None and self.truth.partial is not None:
            partial = None if weights is None else weights[self.truth.partial.instances]
            value -= float(weighted_sum(partial, agreeing.log_z))
        return value

    def _known_score(self, problem: Problem) -> float:
        """Weighted score of the truth, over the fully labelled instances."""
        return sum(
            self.target.score(name, scores, problem.sharing)
            for name in SCORE_NAMES
            if (scores := getattr(problem.scores, name)) is not None
        )

    # One method per part.

    def _node(self, at: Sums) -> Slopes:
        problem, free, agreeing, curvature = at
        p, truth = free.node, self.truth
        curved: dict[str, FloatArray] = {}
        if curvature is not None:
            gamma = free.node_gamma
            curved = {"node": event_curvature(p, gamma, curvature.factor, self.n_jobs)}
        if agreeing is not None and truth.partial is not None:
            p[truth.partial.rows] -= agreeing.node
        self._weigh(p, *curved.values())
        self.target.subtract_from("node", p, problem.sharing)
        return {"node": p}, curved

    def _weigh(self, *arrays: FloatArray) -> None:
        """Times the weight of each row's instance, in place."""
        weights = self.truth.row_weights
        if weights is not None:
            for array in arrays:
                array *= weights.reshape((-1,) + (1,) * (array.ndim - 1)).astype(array.dtype)

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

    def _each_edge(self, at: Sums) -> Slopes:
        problem, free, agreeing, curvature = at
        assert free.edge is not None
        p, truth = free.edge, self.truth
        curved: dict[str, FloatArray] = {}
        if curvature is not None:
            gamma = free.edge_gamma
            curved = {"edge": event_curvature(p, gamma, curvature.factor, self.n_jobs)}
        if agreeing is not None and truth.partial is not None:
            assert agreeing.edge is not None
            p[truth.partial.rows] -= agreeing.edge
        self._weigh(p, *curved.values())
        self.target.subtract_from("edge", p, problem.sharing)
        return {"edge": p}, curved

    def _ends(self, at: Sums) -> Slopes:
        problem, free, agreeing, curvature = at
        truth = self.truth
        gradient: dict[str, FloatArray] = {}
        curvatures: dict[str, FloatArray] = {}
        for name in END_NAMES:
            if getattr(problem.scores, name) is None:
                continue
            rows = truth.end_rows(name)
            p, weights = free.node.take(rows, axis=0), self._weights_of(rows)
            slope = weighted_sum(weights, p)
            if curvature is not None:
                variance = weighted_sum(weights, p * (1 - p))
                curvatures[name] = curvature.ends_factor * variance
            if agreeing is not None and truth.partial is not None:
                own = truth.rows_with(name, truth.partial.batch)
                known = self._weights_of(truth.partial.rows[own])
                slope -= weighted_sum(known, agreeing.node[own])
            self.target.subtract_from(name, slope, problem.sharing)
            gradient[name] = slope
        return gradient, curvatures

    def _weights_of(self, rows: IntArray) -> FloatArray | None:
        weights = self.truth.row_weights
        return None if weights is None else weights[rows]


def event_curvature(
    p: FloatArray, gamma: FloatArray | None, factor: float, n_jobs: int | None = None
) -> FloatArray:
    """factor * gamma * p * (1 - p), not below ``LEAST_CURVATURE``; gamma by row or by event.

    In place, p becomes 1 where rounding left it above: or a sure event would have a slope and no
    curvature.
    """
    curved = np.empty_like(p)
    _core.event_curvature(p, gamma, factor, LEAST_CURVATURE, curved, thread_count(n_jobs))
    return curved
