"""The loss-inspired divergence (Volkovs et al. 2011, Eq. 8 and 9): exact for sums over positions.

q(y) is proportional to exp(-loss(y) / T).  Where the loss is a sum over positions, q is a product
over positions: label smoothing that knows what mistakes cost, done right for structures.  What
scores of -inf forbid has no part in q, which then is a chain or forest of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crfx.inference.problem import Problem
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.bound_losses import PositionCosts
from crfx.objectives.constrained_target import ConstrainedTarget, Spread, forbids
from crfx.objectives.curvature import Curvature
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.soft_target import SoftTarget
from crfx.scores import weighted_sum


class Divergence(Likelihood):
    """sum_i w_i KL(q_i || p_i) = log Z - E_q[score] - H(q): linear in the scores but for log Z.

    So it has the curvature of the likelihood, and becomes it as the temperature falls to 0.
    All labels must be known: what is not known has no loss to spread it by.
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
            self._spread(problem)
        found = super().evaluate(problem, parts, curvature)
        return Evaluation(
            found.value - self._entropy, found.gradient, found.curvature, found.mean_gamma
        )

    def _spread(self, problem: Problem) -> None:
        """Find the target and its entropy, once: what is forbidden stays so in training."""
        dtype, weights = problem.scores.dtype, self.truth.weights
        if forbids(problem.scores):
            spread = Spread.over(problem, self._exponents)
            self._entropy = spread.entropy(weights)
            self.target = ConstrainedTarget.of(self.truth, spread, dtype, self.n_jobs)
            return
        q = np.exp(self._exponents)
        totals = q.sum(axis=1, keepdims=True)
        q /= totals
        log_q = self._exponents - np.log(totals)
        # 0 log 0 is 0, and exp has made 0 of what is far below any precision.
        rows = -(q * np.maximum(log_q, -1e3)).sum(axis=1)
        own = None if weights is None else np.repeat(weights, self.truth.batch.lengths)
        self._entropy = float(weighted_sum(own, rows))
        self.target = SoftTarget(self.truth, q.astype(dtype), self.n_jobs)
