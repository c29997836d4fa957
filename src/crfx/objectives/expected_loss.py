"""The expected loss (Volkovs et al. 2011, Eq. 6 and 7): exact for sums over positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from crfx.inference.expectation import expected
from crfx.inference.problem import Problem
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.counts import edges_of, named_slopes
from crfx.objectives.curvature import Curvature
from crfx.objectives.first_order import unit_curvature
from crfx.objectives.task_loss import PositionCosts
from crfx.scores import FloatArray


class ExpectedCost:
    """sum_i w_i E_p[loss_i(y)], by one first-order expectation pass.

    Not convex, so there is no curvature that bounds it: steps are of first order, halved where they
    would raise it.  Where labels are unknown they cost nothing.  Cost: about twice the likelihood.
    """

    curvature_kind: Literal["bound", "diagonal", "none"] = "none"

    def __init__(self, costs: PositionCosts, n_jobs: int | None = None) -> None:
        self.costs, self.truth, self.n_jobs = costs, costs.truth, n_jobs

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        cost, weights = self.costs.kept_by_row(problem.scores.dtype), self.truth.row_weights
        if weights is not None:
            cost = cost * weights[:, None].astype(cost.dtype)
        found = expected(problem, cost, edges_of(parts), self.n_jobs)
        gradient = named_slopes(self.truth, problem, parts, found.node, found.edge)
        return Evaluation(
            float(found.value.sum()), gradient, units(self, problem, parts, curvature)
        )


def units(
    objective: Any, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None
) -> dict[str, FloatArray]:
    """The curvature of an objective that has none: that of first-order steps."""
    if curvature is None:
        return {}
    if not curvature.first_order:
        raise ValueError("this objective has no curvature: steps are of first order")
    return unit_curvature(objective.truth, problem, parts)
