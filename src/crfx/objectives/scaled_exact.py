"""The loss-scaled objective, summed exactly by counting errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from crfx import _core
from crfx.inference.native import EdgeOutput, native_problem
from crfx.inference.problem import Problem
from crfx.inference.short_chains import Piece, pieces
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.bound_losses import PositionCosts
from crfx.objectives.counts import edges_of, named_slopes
from crfx.objectives.curvature import Curvature
from crfx.objectives.first_order import END_NAMES, unit_curvature
from crfx.objectives.likelihood import LEAST_CURVATURE
from crfx.scores import FloatArray, weighted_sum
from crfx.threads import thread_count


class ExactLossScaled:
    """sum_i w_i log sum_y exp(l_i(y) (1 + score(y) - score(truth))), by counting errors."""

    curvature_kind: Literal["bound", "diagonal", "none"] = "bound"

    def __init__(self, costs: PositionCosts, unit: float = 1.0, n_jobs: int | None = None) -> None:
        self.costs, self.truth, self.n_jobs = costs, costs.truth, n_jobs
        self.unit = unit
        counted = replace(costs, table=costs.table / unit, normalize=False)
        self._cost = counted.by_row(np.float64).round().astype(np.int32)
        self._labels = np.ascontiguousarray(costs.truth.labels, np.int32)
        lengths = np.maximum(costs.truth.batch.lengths, 1)
        self._unit = unit / lengths if costs.normalize else np.full(len(lengths), unit)

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        bounded = curvature is not None and not curvature.first_order
        value, node, curved, edges, curved_edges = self._sums(problem, parts, bounded)
        gradient = named_slopes(self.truth, problem, parts, node, edges, weigh=True)
        bounds: dict[str, FloatArray] = {}
        if bounded:
            found = curved, curved_edges
            bounds = positive(named_slopes(self.truth, problem, parts, *found, weigh=True))
        elif curvature is not None:
            bounds = unit_curvature(self.truth, problem, parts)
        return Evaluation(float(weighted_sum(self.truth.weights, value)), gradient, bounds)

    def _sums(
        self, problem: Problem, parts: Sequence[PartName], bounded: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None, FloatArray | None]:
        """Values (instances,), then gradient and curvature of nodes, and of edges."""
        value = np.empty(problem.batch.n_instances)
        edges, curved_edges = (EdgeOutput(problem, edges_of(parts)) for _ in range(2))
        node, curved = np.zeros_like(problem.scores.node), np.zeros_like(problem.scores.node)
        everything = np.arange(problem.batch.n_instances), np.arange(problem.batch.n_rows)
        for part in pieces(problem) or [Piece(problem, *everything, False)]:
            own = self._of_piece(part, parts, bounded)
            value[part.instances], node[part.rows], curved[part.rows] = own[:3]
            if part.is_short:
                continue
            for total, found in ((edges, own[3]), (curved_edges, own[4])):
                if total.each is not None:
                    total.each[part.rows] = found.each
                elif total.sum is not None and found.sum is not None:
                    total.sum += found.sum
        return value, node, curved, edges.result, curved_edges.result

    def _of_piece(
        self, part: Piece, parts: Sequence[PartName], bounded: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray, EdgeOutput, EdgeOutput]:
        problem, weights = part.problem, self.truth.weights
        value = np.empty(problem.batch.n_instances)
        how = None if part.is_short else edges_of(parts)
        edges, curved_edges = (EdgeOutput(problem, how) for _ in range(2))
        node, curved = np.zeros_like(problem.scores.node), np.zeros_like(problem.scores.node)
        _core.loss_scaled(
            native_problem(problem),
            self._cost[part.rows],
            self._labels[part.rows],
            self._unit[part.instances],
            None if weights is None else weights[part.instances],
            value,
            node if parts else None,
            curved if parts and bounded else None,
            edges.each,
            curved_edges.each if bounded else None,
            edges.sum,
            curved_edges.sum if bounded else None,
            thread_count(self.n_jobs),
        )
        return value, node, curved, edges, curved_edges


def positive(bounds: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Curvatures from those of nodes and edges: start and end are four parts at most, as many as
    two wrong positions have, so theirs is at most twice that of their nodes.
    """
    return {
        name: np.maximum(2.0 * bound if name in END_NAMES else bound, LEAST_CURVATURE)
        for name, bound in bounds.items()
    }
