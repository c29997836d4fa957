"""The label-wise marginal likelihood (Kakade, Teh and Roweis 2002)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from crfx.inference.expectation import expected
from crfx.inference.problem import Part, Problem
from crfx.inference.sum_product import summed
from crfx.objectives.base import CurvatureKind, Evaluation, PartName
from crfx.objectives.counts import edges_of, named_slopes
from crfx.objectives.curvature import Curvature
from crfx.objectives.expected_loss import BorrowedCurvature
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import Array64, FloatArray, IntArray, weighted_sum

RESOLVED = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-80}
"""Marginals that messages resolve well enough to divide by: small ones are held at a floor, see
docs/decisions/0003.  The few labels below are summed over one by one."""
COPIES_AT_ONCE = 1000
"""Instances in a batch of copies."""


class LabelwiseLikelihood:
    """-sum_t w_t log p(y_t | x) over the positions whose label is known.

    w_t is the weight of the instance times that of the true label.

    A smooth function of node marginals: its gradient is that of an expected cost, with the cost of
    a label the derivative in its marginal, -1 / p(y_t) at the true one.  Not convex, see
    `BorrowedCurvature`.  Cost: one sum-product and one expectation pass.
    """

    curvature_kind: CurvatureKind = "none"

    def __init__(self, truth: Truth, n_jobs: int | None = None) -> None:
        self.truth, self.n_jobs = truth, n_jobs
        self._rows = np.flatnonzero(truth.labels != UNKNOWN)
        self._borrowed = BorrowedCurvature(truth.by_instance(), None, n_jobs)

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        p = summed(problem, None, None, n_jobs=self.n_jobs).node
        true = p[self._rows, self.truth.labels[self._rows]].astype(np.float64)
        is_resolved = true > RESOLVED[p.dtype]
        rows, true = self._rows[is_resolved], true[is_resolved]
        weights = self._weights_of(rows)
        value = -float(weighted_sum(weights, np.log(true)))
        gradient: dict[str, FloatArray] = {}
        if parts:
            cost, pull = np.zeros_like(p), -1.0 / true
            cost[rows, self.truth.labels[rows]] = pull if weights is None else weights * pull
            result = expected(problem, cost, edges_of(parts), self.n_jobs)
            gradient = named_slopes(self.truth, problem, parts, result.node, result.edge)
        for part, term in self._one_by_one(problem, parts, self._rows[~is_resolved]):
            value += term.value
            for name, slope in term.gradient.items():
                if name == "node" or ("each_edge" in parts and name == "edge"):
                    np.add.at(gradient[name], part.rows, slope)
                else:
                    gradient[name] = gradient[name] + slope
        return Evaluation(value, gradient, self._borrowed(problem, parts, curvature))

    def _weights_of(self, rows: IntArray) -> Array64 | None:
        weights = self.truth.position_weights
        return None if weights is None else weights[rows]

    def _one_by_one(
        self, problem: Problem, parts: Sequence[PartName], rows: IntArray
    ) -> Iterator[tuple[Part, Evaluation]]:
        """Yield -log p(y_t), the likelihood of an instance with no other label known."""
        truth = self.truth
        for begin in range(0, len(rows), COPIES_AT_ONCE):
            chosen = rows[begin : begin + COPIES_AT_ONCE]
            instances = truth.batch.instance_of_row[chosen]
            part = Part.of(truth.batch, instances)
            labels = np.full(part.batch.n_rows, UNKNOWN, truth.labels.dtype)
            within = chosen - truth.batch.offsets[:-1][instances]
            labels[part.batch.offsets[:-1] + within] = truth.labels[chosen]
            weights = self._weights_of(chosen)
            alone = Likelihood(Truth(part.batch, truth.structure, labels, weights), self.n_jobs)
            yield part, alone.evaluate(problem.cut(part), parts)
