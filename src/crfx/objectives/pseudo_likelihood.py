"""The negative log pseudo-likelihood (Besag 1975; Dietterich et al. 2004, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crfx.inference.problem import Problem
from crfx.objectives.base import CurvatureKind, Evaluation, PartName
from crfx.objectives.counts import moved_scores, unit_curvature
from crfx.objectives.curvature import LEAST_CURVATURE, Curvature
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import Array64, FloatArray, IntArray, table_index


class PseudoLikelihood:
    """-sum_t w_t log p(y_t | all other labels, x): every label given the true ones around it.

    w_t is the weight of the instance times that of the true label.

    Only the positions count whose own label and whose neighbours' labels are all known.  No sum
    over labellings is needed: O(rows * K) beside the reading of the scores.

    The score of label y at t is the sum of the parts that it takes part in, M_t of them, so the
    Hessian in the parts is at most 2 M_t p (1 - p): a bound, whatever moves at once.
    """

    curvature_kind: CurvatureKind = "bound"

    def __init__(self, truth: Truth) -> None:
        self.truth = truth

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        scores = problem.structure.unary(problem.batch, problem.scores)
        if problem.scores.edge is not None:
            for axis, rows in enumerate(self._edges.T):
                np.add.at(scores, rows, problem.scores.edge[self._cells(problem, axis)])
        self._add_pairs(problem, scores)
        scores[~self._counts] = 0.0  # -inf there would give 0 times infinity
        top = scores.max(axis=1, keepdims=True)
        p = np.exp(scores - top)
        totals = p.sum(axis=1, keepdims=True)
        p /= totals
        at_truth = np.where(self._counts, self.truth.labels, 0)
        rows = np.arange(len(p))
        log_p = scores[rows, at_truth] - (top + np.log(totals))[:, 0]
        value = -float(np.sum(self._weights * log_p))
        variance = self._weights[:, None] * p * (1 - p)
        p[rows, at_truth] -= 1.0
        slope = self._weights[:, None] * p
        gradient = self._spread(problem, parts, slope)
        curved = {} if curvature is None else self._curvature(problem, parts, curvature, variance)
        return Evaluation(value, gradient, curved)

    def _add_pairs(self, problem: Problem, scores: Array64) -> None:
        """Add what constraints say of neighbours in chains that are too short for an edge."""
        for piece in problem.pieces() or ():
            table = piece.problem.scores.edge
            if not piece.is_short or table is None:
                continue
            labels = self.truth.labels[piece.rows]
            rows = piece.problem.structure.edge_rows(piece.batch)
            known = rows[(labels[rows - 1] != UNKNOWN) & (labels[rows] != UNKNOWN)]
            np.add.at(scores, piece.rows[known], table[labels[known - 1]])
            np.add.at(scores, piece.rows[known - 1], table[:, labels[known]].T)

    @property
    def is_empty(self) -> bool:
        """Whether no position counts."""
        return not self._counts.any()

    @cached_property
    def _edges(self) -> IntArray:
        """(edges, order + 1) the rows whose labels edges join, oldest first."""
        ends = self.truth.structure.edge_rows(self.truth.batch)
        before = self.truth.structure.contexts(self.truth.batch)
        return np.concatenate([before, ends[:, None]], axis=1)

    def _cells(self, problem: Problem, axis: int) -> tuple[IntArray, ...]:
        """Return an index of (edges, K) cells: every label at one axis, the truth at others."""
        known = np.maximum(self.truth.labels, 0)  # unknown labels read some score: it is not used
        labels = [known[rows][:, None] for rows in self._edges.T]
        labels[axis] = np.arange(problem.scores.n_labels)[None, :]
        front = table_index(problem.sharing, self._edges[:, -1], self.truth.batch.edge_types)
        return (*(part[:, None] for part in front), *labels)

    @cached_property
    def _counts(self) -> npt.NDArray[np.bool_]:
        """(rows,) whether the label and those of all neighbours are known."""
        counts: npt.NDArray[np.bool_] = self.truth.labels != UNKNOWN
        counts[self._edges[~counts[self._edges].all(axis=1)]] = False
        return counts

    @cached_property
    def _weights(self) -> Array64:
        counts, weights = self._counts.astype(np.float64), self.truth.position_weights
        return counts if weights is None else counts * weights

    def _curvature(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature, variance: Array64
    ) -> dict[str, FloatArray]:
        if curvature.first_order:
            return unit_curvature(self.truth, problem, parts)
        n_parts = np.ones(len(variance))
        np.add.at(n_parts, self._edges, 1.0)
        if "ends" in parts:
            n_parts += 2.0
        factor = 2.0 if curvature.bound is not None else curvature.factor
        bounds = self._spread(problem, parts, factor * n_parts[:, None] * variance)
        return {name: np.maximum(array, LEAST_CURVATURE) for name, array in bounds.items()}

    def _spread(
        self, problem: Problem, parts: Sequence[PartName], by_row: Array64
    ) -> dict[str, FloatArray]:
        """Add (rows, K), of every label given the others, to the parts that it takes part in."""
        spread: dict[str, FloatArray] = {}
        for name, _, sharing, is_by_row in moved_scores(problem, parts):
            if name == "node":
                spread[name] = by_row.astype(problem.scores.dtype)
            elif name != "edge":
                spread[name] = by_row[self.truth.end_rows(name)].sum(axis=0)
            elif problem.scores.edge is not None:
                dtype = problem.scores.dtype if is_by_row else np.float64
                edge = np.zeros(problem.scores.edge.shape, dtype)
                for axis, rows in enumerate(self._edges.T):
                    np.add.at(edge, self._cells(problem, axis), by_row[rows])
                # A base model may have scores per edge; the table that moves is shared.
                spread[name] = edge if sharing == problem.sharing else edge.sum(axis=0)
        return spread
