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

from crfx.inference.max_product import best_labels
from crfx.inference.problem import Problem
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.curvature import Curvature
from crfx.objectives.truth import UNKNOWN, ScoreName, Truth
from crfx.scores import FloatArray, IntArray, Sharing, table_index

NAMES: dict[PartName, tuple[ScoreName, ...]] = {
    "node": ("node",),
    "edge": ("edge",),
    "each_edge": ("edge",),
    "ends": ("start", "end"),
}


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
        value = self._weighted(top - _labelling_scores(problem, true))
        gradient: dict[str, FloatArray] = {}
        for part in parts:
            sharing = _sharing_of(part, problem.sharing)
            for name in NAMES[part]:
                if (scores := getattr(problem.scores, name)) is not None:
                    shape = scores.shape
                    if part == "edge" and problem.sharing == "each":
                        shape = shape[1:]  # the table that moves is shared
                    gradient[name] = self._difference(problem, name, shape, sharing, best, true)
        return Evaluation(value, gradient, {})

    def _true_labels(self, problem: Problem, known: IntArray) -> IntArray:
        if known.all():
            return self.truth.labels
        node = problem.scores.node.copy()
        rows = np.flatnonzero(known)
        allowed = node[rows, self.truth.labels[rows]]
        node[rows] = -np.inf
        node[rows, self.truth.labels[rows]] = allowed
        clamped = replace(problem, scores=replace(problem.scores, node=node))
        return best_labels(clamped, self.n_jobs)[0]

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

    def _difference(
        self,
        problem: Problem,
        name: ScoreName,
        shape: tuple[int, ...],
        sharing: Sharing,
        best: IntArray,
        true: IntArray,
    ) -> FloatArray:
        """How often the winner uses an entry of the scores, minus how often the truth does."""
        batch, structure = problem.batch, problem.structure
        rows = self.truth.rows_with(name, batch)
        contexts = structure.contexts(batch) if name == "edge" else None
        weights = self.truth.row_weights
        total = np.zeros(int(np.prod(shape)), problem.scores.node.dtype)
        own = None if weights is None else weights[rows]
        for labels, sign in ((best, 1.0), (true, -1.0)):
            index: tuple[IntArray, ...] = (labels[rows],)
            if name == "node":
                index = (rows, *index)
            elif contexts is not None:
                place = table_index(sharing, rows, batch.edge_types)
                index = (*place, *labels[contexts].T, *index)
            cells = np.ravel_multi_index(index, shape)
            if name == "node" or (name == "edge" and sharing == "each"):  # every cell once
                total[cells] += sign if own is None else sign * own
            else:
                total += sign * np.bincount(cells, own, minlength=len(total))
        return total.reshape(shape)


def _sharing_of(part: PartName, sharing: Sharing) -> Sharing:
    if part == "edge" and sharing == "each":
        return "shared"
    return sharing


def _labelling_scores(problem: Problem, labels: IntArray) -> FloatArray:
    """(instances,) the score of a labelling of each, in float64."""
    batch, scores = problem.batch, problem.scores
    found = np.zeros(batch.n_instances)
    owner = batch.instance_of_row

    def add(rows: IntArray, values: FloatArray) -> None:
        found[:] += np.bincount(owner[rows], values.astype(np.float64), minlength=len(found))

    everywhere = np.arange(batch.n_rows)
    add(everywhere, scores.node[everywhere, labels])
    if scores.edge is not None:
        rows = problem.structure.edge_rows(batch)
        place = table_index(problem.sharing, rows, batch.edge_types)
        before = labels[problem.structure.contexts(batch)]
        add(rows, scores.edge[(*place, *before.T, labels[rows])])
    if scores.start is not None:
        rows = problem.structure.root_rows(batch)
        add(rows, scores.start[labels[rows]])
    if scores.end is not None:
        rows = problem.structure.last_rows(batch)
        add(rows, scores.end[labels[rows]])
    return found
