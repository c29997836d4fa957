"""The expected loss (Volkovs et al. 2011, Eq. 6 and 7): exact for sums over positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from crfx.inference.expectation import expected
from crfx.inference.problem import Problem
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.bound_losses import PositionCosts
from crfx.objectives.counts import edges_of, named_slopes
from crfx.objectives.curvature import Curvature
from crfx.objectives.first_order import unit_curvature
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.truth import Truth
from crfx.scores import FloatArray

Array64 = npt.NDArray[np.float64]


class ExpectedCost:
    """sum_i w_i E_p[loss_i(y)], by one first-order expectation pass.

    What a position costs is multiplied by the weight of its true label, where labels have weights.

    Not convex, so no curvature bounds it, see `BorrowedCurvature`.  Where labels are unknown they
    cost nothing.  Cost: about twice the likelihood.
    """

    curvature_kind: Literal["bound", "diagonal", "none"] = "none"

    def __init__(self, costs: PositionCosts, n_jobs: int | None = None) -> None:
        self.costs, self.truth, self.n_jobs = costs, costs.truth, n_jobs
        self._borrowed = BorrowedCurvature(costs.truth.by_instance(), costs.scale, n_jobs)

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        cost, weights = self.costs.kept_by_row(problem.scores.dtype), self.truth.position_weights
        if weights is not None:
            cost = cost * weights[:, None].astype(cost.dtype)
        found = expected(problem, cost, edges_of(parts), self.n_jobs)
        gradient = named_slopes(self.truth, problem, parts, found.node, found.edge)
        curved = self._borrowed(problem, parts, curvature)
        return Evaluation(float(found.value.sum()), gradient, curved)


class BorrowedCurvature:
    """For objectives without a curvature of their own: that of the likelihood, times ``scale``.

    No bound, but the right size: p (1 - p) is Fisher's information, so steps are those of a natural
    gradient, which do not fade where the model is sure.  ``scale`` (instances,) is what a mistake
    costs, so that the unit of a loss changes nothing.  Trainers halve what would raise the
    objective.
    """

    def __init__(self, truth: Truth, scale: Array64 | None, n_jobs: int | None) -> None:
        self.truth = truth
        weights = truth.weights
        if scale is not None:
            weights = scale if weights is None else scale * weights
        self._likelihood = Likelihood(replace(truth, weights=weights), n_jobs)

    def __call__(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None
    ) -> dict[str, FloatArray]:
        """The curvature of the parts; that of first-order steps is 1."""
        if curvature is None:
            return {}
        if curvature.first_order:
            return unit_curvature(self.truth, problem, parts)
        return self._likelihood.evaluate(problem, parts, curvature).curvature
