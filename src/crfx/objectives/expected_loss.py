"""The expected loss (Volkovs et al. 2011, Eq. 6 and 7): exact for sums over positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from crfx.inference.expectation import expected
from crfx.inference.problem import Problem
from crfx.objectives.base import CurvatureKind, Evaluation, Objective, PartName
from crfx.objectives.candidates import (
    Candidates,
    Source,
    add_weighted_counts,
    bind_either,
    check_candidates,
)
from crfx.objectives.costs import PositionCosts, WholeLosses
from crfx.objectives.counts import (
    edges_of,
    moved_scores,
    named_slopes,
    unit_curvature,
    zero_slopes,
)
from crfx.objectives.curvature import Curvature
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.task_loss import TaskLoss
from crfx.objectives.truth import Truth
from crfx.scores import Array64, FloatArray, weighted_sum


@dataclass(frozen=True)
class ExpectedLoss:
    """The loss of a labelling drawn from the model.

    Parameters
    ----------
    candidates : "samples" or "kbest", optional
        For a loss of whole labellings ("span_f1", "zero_one"): what it is averaged over; None:
        samples.  For sums over positions the mean is exact, over all labellings.
    n_candidates : int
        Number of candidates of each instance.
    seed : int
        Seed of the samples.
    """

    candidates: Source | None = None
    n_candidates: int = 20
    seed: int = 0
    name: ClassVar[str] = "expected_loss"
    weighs_classes: ClassVar[bool] = True
    uses_loss: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_candidates(self.candidates, self.n_candidates, self.seed)

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """Return the objective for the truth of a batch and either kind of loss."""
        costs = bind_either(loss, truth, self.candidates)
        if isinstance(costs, PositionCosts):
            return ExpectedCost(costs, n_jobs)
        source: Source = self.candidates or "samples"
        return ListedExpectedLoss(costs, source, self.n_candidates, self.seed, n_jobs)


class ExpectedCost:
    """sum_i w_i E_p[loss_i(y)], by one first-order expectation pass.

    If labels have weights, the cost of a position is multiplied by the weight of its true label.
    Unknown labels cost nothing.  Not convex, so no curvature bounds it, see `BorrowedCurvature`.
    Cost: about twice the likelihood.
    """

    curvature_kind: CurvatureKind = "none"

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
        result = expected(problem, cost, edges_of(parts), self.n_jobs)
        gradient = named_slopes(self.truth, problem, parts, result.node, result.edge)
        curved = self._borrowed(problem, parts, curvature)
        return Evaluation(float(result.value.sum()), gradient, curved)


class ListedExpectedLoss:
    """sum_i w_i E[loss_i], the mean over samples, or over the k best as they are probable.

    Of samples the gradient is without bias, Cov(loss, parts); of k-best lists value and gradient
    are exact for the model that knows these labellings alone.
    """

    curvature_kind: CurvatureKind = "none"

    def __init__(
        self, losses: WholeLosses, source: Source, n: int, seed: int, n_jobs: int | None = None
    ) -> None:
        losses.truth.check_no_class_weights('"expected_loss" with a loss of whole labellings')
        self.losses, self.truth, self.n_jobs = losses, losses.truth, n_jobs
        self.source, self.n, self.seed = source, n, seed
        # One mistake costs some share of the whole.
        shares = 1.0 / np.maximum(losses.truth.batch.lengths, 1)
        self._borrowed = BorrowedCurvature(losses.truth, shares, n_jobs)

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        candidates = Candidates.of(problem, self.source, self.n, self.seed, self.n_jobs)
        losses, truth = candidates.losses(self.losses), self.truth
        p = np.full(losses.shape, 1 / self.n)
        if self.source == "kbest":
            p = candidates.shares(problem)
        value = (p * losses).sum(axis=0)
        pull = p * (losses - value)
        if self.source == "samples":
            pull *= self.n / (self.n - 1)
        if truth.weights is not None:
            pull *= truth.weights
        gradient = zero_slopes(problem, parts)
        for name, _, sharing, _ in moved_scores(problem, parts):
            add_weighted_counts(gradient[name], truth, name, sharing, candidates.labels, pull)
        total = float(weighted_sum(truth.weights, value))
        return Evaluation(total, gradient, self._borrowed(problem, parts, curvature))


class BorrowedCurvature:
    """The curvature of the likelihood, times ``scale``, for objectives that have none.

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
        """Return the curvature of the parts; that of first-order steps is 1."""
        if curvature is None:
            return {}
        if curvature.first_order:
            return unit_curvature(self.truth, problem, parts)
        return self._likelihood.evaluate(problem, parts, curvature).curvature
