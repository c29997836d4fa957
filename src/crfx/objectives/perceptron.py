"""The loss of the structured perceptron (Collins 2002), with or without a margin.

sum_i w_i (max_y [score(y) + margin * (number of wrong labels in y)] - score(truth)): 0 where the
truth wins, by the margin per wrong label.  Its subgradient counts parts of the winner minus parts
of the truth: lowering it one instance at a time, step 1, is the perceptron; with a margin it is
the large-margin perceptron (loss-augmented decoding).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crfx.inference.max_product import best_labels
from crfx.inference.problem import Problem
from crfx.objectives.base import CurvatureKind, Evaluation, Objective, PartName
from crfx.objectives.by_parts import ByLevels
from crfx.objectives.counts import add_counts, labelling_scores, moved_scores
from crfx.objectives.curvature import Curvature
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import FloatArray, IntArray


class PerceptronLoss:
    """Scores in, value and subgradient out.

    Where labels are unknown, the truth is the best labelling that agrees with the known ones.
    """

    curvature_kind: CurvatureKind = "none"

    def __init__(self, truth: Truth, margin: float = 0.0, n_jobs: int | None = None) -> None:
        self.truth, self.margin, self.n_jobs = truth, margin, n_jobs

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores; raise ValueError if asked for curvature."""
        if curvature is not None:
            raise ValueError("the loss of the perceptron has no curvature")
        known = self.truth.labels != UNKNOWN
        true = self._true_labels(problem, known)
        best, top = best_labels(self._augmented(problem, true, known), self.n_jobs)
        losses, weights = top - labelling_scores(problem, true), self.truth.weights
        value = float(np.sum(losses if weights is None else losses * weights))
        gradient: dict[str, FloatArray] = {}
        by_row = self.truth.row_weights
        for name, shape, sharing, _ in moved_scores(problem, parts):
            gradient[name] = np.zeros(shape, problem.scores.dtype)
            for labels, sign in ((best, 1.0), (true, -1.0)):
                add_counts(gradient[name], self.truth, name, sharing, labels, by_row, sign)
        return Evaluation(value, gradient, {})

    def _true_labels(self, problem: Problem, known: IntArray) -> IntArray:
        if known.all():
            return self.truth.labels
        rows = np.flatnonzero(known)
        return best_labels(problem.clamped(rows, self.truth.labels[rows]), self.n_jobs)[0]

    def _augmented(self, problem: Problem, true: IntArray, known: IntArray) -> Problem:
        """Add the margin to every label but the true one, where that is known."""
        if not self.margin:
            return problem
        node = problem.scores.node + self.margin * known[:, None].astype(np.float32)
        rows = np.flatnonzero(known)
        node[rows, true[rows]] = problem.scores.node[rows, true[rows]]
        return replace(problem, scores=replace(problem.scores, node=node))


class WeightedPerceptronLoss(ByLevels):
    """sum_l (v_l - v_{l-1}) of the perceptron's losses: the best labelling that agrees with the
    lighter labels, against the truth.
    """

    curvature_kind: CurvatureKind = "none"

    def __init__(self, truth: Truth, margin: float = 0.0, n_jobs: int | None = None) -> None:
        super().__init__(truth, lambda level: PerceptronLoss(level, margin, n_jobs))
        self.margin = margin


def perceptron_loss_of(truth: Truth, margin: float, n_jobs: int | None = None) -> Objective:
    """Return the loss of the perceptron, weighted if labels have weights."""
    kind = PerceptronLoss if truth.class_weights is None else WeightedPerceptronLoss
    return kind(truth, margin, n_jobs)
