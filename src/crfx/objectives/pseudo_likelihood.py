"""The negative log pseudo-likelihood (Besag 1975; Dietterich et al. 2004, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from crfx.inference.problem import Problem
from crfx.inference.short_chains import pieces
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.curvature import Curvature
from crfx.objectives.first_order import END_NAMES, unit_curvature
from crfx.objectives.likelihood import LEAST_CURVATURE
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import FloatArray, IntArray, table_index

Array64 = npt.NDArray[np.float64]


class PseudoLikelihood:
    """-sum_t w_t log p(y_t | all other labels, x): every label given the true ones around it.

    w_t is the weight of the instance times that of the true label.

    Only the positions count whose own label and whose neighbours' labels are all known.  No sum
    over labellings is needed: O(rows * K) beside the reading of the scores.

    The score of label y at t is the sum of the parts that it takes part in, M_t of them, so the
    Hessian in the parts is at most 2 M_t p (1 - p): a bound, whatever moves at once.
    """

    curvature_kind: Literal["bound", "diagonal", "none"] = "bound"

    def __init__(self, truth: Truth) -> None:
        self.truth = truth

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        edges = self._edges
        scores = problem.structure.unary(problem.batch, problem.scores)
        if problem.scores.edge is not None:
            for axis in range(edges.n_axes):
                np.add.at(
                    scores, edges.rows_at(axis), problem.scores.edge[edges.cells(problem, axis)]
                )
        self._add_pairs(problem, scores)
        scores[~self._counts] = 0.0  # or what is forbidden there would give 0 times infinity
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
        """What constraints say of neighbours in chains that are too short for an edge."""
        for part in pieces(problem) or ():
            table = part.problem.scores.edge
            if not part.is_short or table is None:
                continue
            labels = self.truth.labels[part.rows]
            rows = part.problem.structure.edge_rows(part.problem.batch)
            known = rows[(labels[rows - 1] != UNKNOWN) & (labels[rows] != UNKNOWN)]
            np.add.at(scores, part.rows[known], table[labels[known - 1]])
            np.add.at(scores, part.rows[known - 1], table[:, labels[known]].T)

    @property
    def is_empty(self) -> bool:
        """Whether no position counts."""
        return not self._counts.any()

    @cached_property
    def _edges(self) -> _Edges:
        return _Edges.of(self.truth)

    @cached_property
    def _counts(self) -> npt.NDArray[np.bool_]:
        """(rows,) whether the label and those of all neighbours are known."""
        counts: npt.NDArray[np.bool_] = self.truth.labels != UNKNOWN
        edges = self._edges
        for axis in range(edges.n_axes):
            counts[edges.rows_at(axis)[~edges.known]] = False
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
        for axis in range(self._edges.n_axes):
            np.add.at(n_parts, self._edges.rows_at(axis), 1.0)
        if "ends" in parts:
            n_parts += 2.0
        factor = 2.0 if curvature.bound is not None else curvature.factor
        found = self._spread(problem, parts, factor * n_parts[:, None] * variance)
        return {name: np.maximum(array, LEAST_CURVATURE) for name, array in found.items()}

    def _ends(self, problem: Problem, by_row: Array64) -> dict[str, FloatArray]:
        return {
            name: by_row[self.truth.end_rows(name)].sum(axis=0)
            for name in END_NAMES
            if getattr(problem.scores, name) is not None
        }

    def _spread(
        self, problem: Problem, parts: Sequence[PartName], by_row: Array64
    ) -> dict[str, FloatArray]:
        """(rows, K) of every label given the others, added to the parts that it takes part in."""
        found: dict[str, FloatArray] = {}
        dtype = problem.scores.node.dtype
        if "node" in parts:
            found["node"] = by_row.astype(dtype)
        edge = problem.scores.edge
        if edge is not None and {"edge", "each_edge"} & set(parts):
            added = np.zeros(edge.shape, dtype if "each_edge" in parts else np.float64)
            for axis in range(self._edges.n_axes):
                rows = self._edges.rows_at(axis)
                np.add.at(added, self._edges.cells(problem, axis), by_row[rows])
            # Scores may differ by edge, those of a base model do; the table that moves is shared.
            shared = "edge" in parts and problem.sharing == "each"
            found["edge"] = added.sum(axis=0) if shared else added
        if "ends" in parts:
            found |= self._ends(problem, by_row)
        return found


@dataclass(frozen=True, eq=False)
class _Edges:
    """All edges of the truth: the rows whose labels they join, (edges, order + 1), own row last."""

    rows: IntArray
    labels: IntArray
    known: npt.NDArray[np.bool_]
    edge_types: IntArray | None

    @classmethod
    def of(cls, truth: Truth) -> _Edges:
        own = truth.structure.edge_rows(truth.batch)
        rows = np.concatenate([truth.structure.contexts(truth.batch), own[:, None]], axis=1)
        labels = truth.labels[rows]
        known = (labels != UNKNOWN).all(axis=1)
        # Unknown labels read some score, which then counts for nothing.
        return cls(rows, np.where(labels == UNKNOWN, 0, labels), known, truth.batch.edge_types)

    @property
    def n_axes(self) -> int:
        return int(self.rows.shape[1])

    def rows_at(self, axis: int) -> IntArray:
        """(edges,) the rows whose label stands at an axis of the table."""
        return self.rows[:, axis]

    def cells(self, problem: Problem, axis: int) -> tuple[IntArray, ...]:
        """Index of (edges, K): the cells of every label at one axis, and the truth at others."""
        labels = [column[:, None] for column in self.labels.T]
        labels[axis] = np.arange(problem.scores.n_labels)[None, :]
        front = table_index(problem.sharing, self.rows[:, -1], self.edge_types)
        return (*(part[:, None] for part in front), *labels)
