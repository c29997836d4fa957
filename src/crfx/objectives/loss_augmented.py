"""The loss-augmented likelihood (Volkovs et al. 2011, Eq. 4): exact for sums over positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from crfx.inference.problem import Problem
from crfx.objectives.base import CurvatureKind, Evaluation, Objective, PartName
from crfx.objectives.costs import PositionCosts, bind_position_costs
from crfx.objectives.curvature import Curvature
from crfx.objectives.likelihood import likelihood_of
from crfx.objectives.task_loss import MOST, TaskLoss, is_number
from crfx.objectives.truth import Truth
from crfx.scores import FloatArray


@dataclass(frozen=True)
class LossAugmented:
    """The likelihood, with every labelling's score raised by ``weight`` times its loss.

    A margin that grows with the loss; exact.  Weight 0 is the likelihood.
    """

    weight: float = 1.0
    name: ClassVar[str] = "loss_augmented"
    weighs_classes: ClassVar[bool] = True
    uses_loss: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not is_number(self.weight) or not 0 <= self.weight <= MOST:
            raise ValueError(f"weight is {self.weight!r}: it must lie between 0 and {MOST:g}")

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """Return the objective for the truth of a batch and a loss that sums over positions."""
        return AugmentedLikelihood(bind_position_costs(loss, truth, self.name), self.weight, n_jobs)


class AugmentedLikelihood:
    """-log p(truth), with every labelling's score raised by ``weight`` times its loss.

    The likelihood at node scores that are shifted by the costs of their labels, so its gradient and
    its curvature hold at those scores.  With weight 1 it bounds the loss of the best labelling;
    with weight 0 it is the likelihood.  Cost: that of the likelihood.
    """

    curvature_kind: CurvatureKind = "bound"

    def __init__(self, costs: PositionCosts, weight: float, n_jobs: int | None = None) -> None:
        self.costs, self.weight, self.n_jobs = costs, weight, n_jobs
        self._likelihood = likelihood_of(costs.truth, n_jobs)
        self._shifted: FloatArray | None = None

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        scores = problem.scores
        if self._shifted is None or self._shifted.dtype != scores.dtype:
            self._shifted = np.empty_like(scores.node)  # kept: fresh memory costs more than sums
        node = self.costs.added_to(scores.node, self.weight, self._shifted, self.n_jobs)
        augmented = replace(problem, scores=replace(scores, node=node))
        return self._likelihood.evaluate(augmented, parts, curvature)
