"""The loss-inspired divergence (Volkovs et al. 2011, Eq. 8 and 9): exact for sums over positions.

q(y) is proportional to exp(-loss(y) / T).  Where the loss is a sum over positions, q is a product
over positions: label smoothing by the costs of mistakes, exact for structures.  Labellings that
scores of -inf forbid have no part in q, which then is a chain or forest itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from crfx.inference.problem import Problem
from crfx.objectives.base import Evaluation, Objective, PartName, is_number
from crfx.objectives.candidates import Candidates, Source, bind_either, check_candidates, softmax
from crfx.objectives.costs import PositionCosts, WholeLosses
from crfx.objectives.curvature import Curvature
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.targets import ConstrainedTarget, ListedTarget, SoftTarget, Spread, forbids
from crfx.objectives.task_loss import TaskLoss
from crfx.objectives.truth import Truth
from crfx.scores import weighted_sum


@dataclass(frozen=True)
class KL:
    """The divergence of the model from a target that spreads by the loss, exp(-loss / T).

    Parameters
    ----------
    temperature : float
        T.  Towards 0 it is the likelihood; 0.2 gives a mistake exp(-5) of the truth's weight.
    candidates, n_candidates, seed
        As in `ExpectedLoss`: what the target spreads over for a loss of whole labellings.
    """

    temperature: float = 0.2
    candidates: Source | None = None
    n_candidates: int = 20
    seed: int = 0
    name: ClassVar[str] = "kl"
    uses_loss: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not is_number(self.temperature) or not 0 < self.temperature < np.inf:
            raise ValueError(f"temperature is {self.temperature!r}: it must be above 0")
        check_candidates(self.candidates, self.n_candidates, self.seed)

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """Return the objective for the truth of a batch and either kind of loss."""
        costs = bind_either(loss, truth, self.candidates)
        if isinstance(costs, PositionCosts):
            return Divergence(costs, self.temperature, n_jobs)
        source: Source = self.candidates or "samples"
        candidates = source, self.n_candidates, self.seed
        return ListedDivergence(costs, self.temperature, *candidates, n_jobs)


class Divergence(Likelihood):
    """sum_i w_i KL(q_i || p_i) = log Z - E_q[score] - H(q): linear in the scores but for log Z.

    So it has the curvature of the likelihood, and becomes it as the temperature falls to 0.
    All labels must be known: an unknown one has no loss to spread by.
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
        result = super().evaluate(problem, parts, curvature)
        return replace(result, value=result.value - self._entropy)

    def _spread(self, problem: Problem) -> None:
        """Set the target and its entropy, once: constraints do not change in training."""
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
        self._entropy = float(weighted_sum(self.truth.row_weights, rows))
        self.target = SoftTarget(self.truth, q.astype(dtype), self.n_jobs)


class ListedDivergence(Likelihood):
    """sum_i w_i KL(q_i || p_i), with q proportional to exp(-loss / T) on the truth and candidates.

    log Z is exact, over all labellings, so the curvature of the likelihood holds.
    """

    def __init__(
        self,
        losses: WholeLosses,
        temperature: float,
        source: Source,
        n: int,
        seed: int,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(losses.truth, n_jobs)
        losses.truth.check_all_known("kl")
        losses.truth.check_no_class_weights('"kl"')
        self.losses, self.temperature = losses, temperature
        self.source: Source = source
        self.n, self.seed = n, seed

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        candidates = Candidates.of(problem, self.source, self.n, self.seed, self.n_jobs)
        candidates = candidates.with_truth(self.truth)
        losses = candidates.losses(self.losses)
        q = softmax(np.where(candidates.exist, losses / -self.temperature, -np.inf))
        entropy = -(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=0)
        if self.truth.weights is not None:
            q, entropy = q * self.truth.weights, entropy * self.truth.weights
        self.target = ListedTarget(self.truth, candidates.labels, q)
        result = super().evaluate(problem, parts, curvature)
        return replace(result, value=result.value - float(entropy.sum()))
