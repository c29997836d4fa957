"""The loss-augmented likelihood (Volkovs et al. 2011, Eq. 4): exact for sums over positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from crfx.inference.problem import Problem
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.bound_losses import PositionCosts
from crfx.objectives.class_weights import likelihood_of
from crfx.objectives.curvature import Curvature
from crfx.scores import FloatArray


class AugmentedLikelihood:
    """-log p(truth), with every labelling's score raised by ``weight`` times its loss.

    The likelihood at node scores that are shifted by the costs of their labels, so its gradient and
    its curvature hold at those scores.  With weight 1 it bounds the loss of the best labelling;
    with weight 0 it is the likelihood.  Cost: that of the likelihood.
    """

    curvature_kind: Literal["bound", "diagonal", "none"] = "bound"

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
        augmented = replace(problem, scores=replace(problem.scores, node=node))
        return self._likelihood.evaluate(augmented, parts, curvature)
