"""The loss of the structured perceptron (Collins 2002), with or without a margin.

sum_i w_i (max_y [score(y) + margin * (number of wrong labels in y)] - score(truth)): 0 where the
truth wins, by the margin per wrong label.  Its subgradient counts parts of the winner minus parts
of the truth: lowering it one instance at a time, step 1, is the perceptron; with a margin it is
the large-margin perceptron (loss-augmented decoding).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from crfx.inference.clamping import clamped
from crfx.inference.max_product import best_labels
from crfx.inference.problem import Problem
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.counts import add_counts, labelling_scores, moved_scores, sharing_of
from crfx.objectives.curvature import Curvature
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import FloatArray, IntArray


class PerceptronLoss:
    """Scores in, value and subgradient out.

    Where labels are unknown, the truth is the best labelling that agrees with the known ones.
    """

    curvature_kind: Literal["bound", "diagonal", "none"] = "none"

    def __init__(self, truth: Truth, margin: float = 0.0, n_jobs: int | None = None) -> None:
        self.truth, self.margin, self.n_jobs = truth, margin, n_jobs

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores; there is no curvature to ask for."""
        if curvature is not None:
            raise ValueError("the loss of the perceptron has no curvature")
        known = self.truth.labels != UNKNOWN
        true = self._true_labels(problem, known)
        best, top = best_labels(self._augmented(problem, true, known), self.n_jobs)
        value = self._weighted(top - labelling_scores(problem, true))
        gradient: dict[str, FloatArray] = {}
        weights = self.truth.row_weights
        for part in parts:
            sharing = sharing_of(part, problem.sharing)
            for name, shape in moved_scores(problem, part).items():
                gradient[name] = np.zeros(shape, problem.scores.node.dtype)
                add_counts(gradient[name], self.truth, name, sharing, best, weights)
                add_counts(gradient[name], self.truth, name, sharing, true, weights, -1.0)
        return Evaluation(value, gradient, {})

    def _true_labels(self, problem: Problem, known: IntArray) -> IntArray:
        if known.all():
            return self.truth.labels
        rows = np.flatnonzero(known)
        return best_labels(clamped(problem, rows, self.truth.labels[rows]), self.n_jobs)[0]

    def _augmented(self, problem: Problem, true: IntArray, known: IntArray) -> Problem:
        """Every label but the true one gains the margin, where the truth is known."""
        if not self.margin:
            return problem
        node = problem.scores.node + self.margin * known[:, None].astype(np.float32)
        rows = np.flatnonzero(known)
        node[rows, true[rows]] = problem.scores.node[rows, true[rows]]
        return replace(problem, scores=replace(problem.scores, node=node))

    def _weighted(self, values: FloatArray) -> float:
        weights = self.truth.weights
        return float(np.sum(values if weights is None else values * weights))
