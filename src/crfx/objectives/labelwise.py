"""The label-wise marginal likelihood (Kakade, Teh and Roweis 2002)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from crfx.inference.expectation import expected
from crfx.inference.problem import Problem
from crfx.inference.sum_product import summed
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.counts import edges_of, named_slopes
from crfx.objectives.curvature import Curvature
from crfx.objectives.expected_loss import borrowed_curvature
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import weighted_sum

LEAST_PROBABILITY = {np.dtype(np.float32): 1e-30, np.dtype(np.float64): 1e-280}
"""Smaller ones count as this: messages hardly resolve them, and their inverse must be finite."""


class LabelwiseLikelihood:
    """-sum_t w log p(y_t | x) over the positions whose label is known.

    A smooth function of node marginals: its gradient is that of an expected cost, with the cost of
    a label the derivative in its marginal, -1 / p(y_t) at the true one.  Not convex; no curvature.
    Cost: one sum-product and one expectation pass.
    """

    curvature_kind: Literal["bound", "diagonal", "none"] = "none"

    def __init__(self, truth: Truth, n_jobs: int | None = None) -> None:
        self.truth, self.n_jobs = truth, n_jobs
        self._rows = np.flatnonzero(truth.labels != UNKNOWN)
        weights = truth.row_weights
        self._weights = None if weights is None else weights[self._rows].astype(np.float64)

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        p = summed(problem, None, None, n_jobs=self.n_jobs).node
        at = self._rows, self.truth.labels[self._rows]
        true = np.maximum(p[at], LEAST_PROBABILITY[p.dtype]).astype(np.float64)
        value = -float(weighted_sum(self._weights, np.log(true)))
        if not parts:
            return Evaluation(value, {}, {})
        cost = np.zeros_like(p)
        cost[at] = -1.0 / true if self._weights is None else -self._weights / true
        found = expected(problem, cost, edges_of(parts), self.n_jobs)
        gradient = named_slopes(self.truth, problem, parts, found.node, found.edge)
        return Evaluation(value, gradient, borrowed_curvature(self, problem, parts, curvature))
