"""The loss-scaled objective, summed exactly by counting errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from crfx import _core
from crfx.inference.native import EdgeOutput, native_problem, thread_count
from crfx.inference.problem import Problem
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.bound_losses import PositionCosts
from crfx.objectives.counts import edges_of, named_slopes
from crfx.objectives.curvature import Curvature
from crfx.objectives.first_order import END_NAMES, unit_curvature
from crfx.objectives.likelihood import LEAST_CURVATURE
from crfx.scores import FloatArray, weighted_sum


class ExactLossScaled:
    """sum_i w_i log sum_y exp(l_i(y) (1 + score(y) - score(truth))), by counting errors."""

    curvature_kind: Literal["bound", "diagonal", "none"] = "bound"

    def __init__(self, costs: PositionCosts, unit: float = 1.0, n_jobs: int | None = None) -> None:
        self.truth, self.n_jobs = costs.truth, n_jobs
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
        value = np.empty(problem.batch.n_instances)
        edges, curved_edges = (EdgeOutput(problem, edges_of(parts)) for _ in range(2))
        node, curved = np.zeros_like(problem.scores.node), np.zeros_like(problem.scores.node)
        _core.loss_scaled(
            native_problem(problem),
            self._cost,
            self._labels,
            self._unit,
            self.truth.weights,
            value,
            node if parts else None,
            curved if parts and bounded else None,
            edges.each,
            curved_edges.each if bounded else None,
            edges.sum,
            curved_edges.sum if bounded else None,
            thread_count(self.n_jobs),
        )
        gradient = named_slopes(self.truth, problem, parts, node, edges.result, weigh=True)
        bounds: dict[str, FloatArray] = {}
        if bounded:
            found = curved, curved_edges.result
            bounds = positive(named_slopes(self.truth, problem, parts, *found, weigh=True))
        elif curvature is not None:
            bounds = unit_curvature(self.truth, problem, parts)
        return Evaluation(float(weighted_sum(self.truth.weights, value)), gradient, bounds)


def positive(bounds: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Curvatures from those of nodes and edges: start and end are four parts at most, as many as
    two wrong positions have, so theirs is at most twice that of their nodes.
    """
    return {
        name: np.maximum(2.0 * bound if name in END_NAMES else bound, LEAST_CURVATURE)
        for name, bound in bounds.items()
    }
