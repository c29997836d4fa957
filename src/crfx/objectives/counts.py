"""Parts of the scores by name: how often labellings use them, what they score, what they weigh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from crfx.inference.problem import Problem
from crfx.objectives.base import PartName
from crfx.objectives.truth import SCORE_NAMES, ScoreName, Truth, used_cells
from crfx.scores import FloatArray, IntArray, Sharing

END_NAMES: tuple[Literal["start", "end"], ...] = ("start", "end")
NAMES: dict[PartName, tuple[ScoreName, ...]] = {
    "node": ("node",),
    "edge": ("edge",),
    "each_edge": ("edge",),
    "ends": END_NAMES,
}
"""The scores that a part has."""


class Moved(NamedTuple):
    """Scores that move, with the shape of their gradient.

    ``sharing`` says how edges share them, ``by_row`` whether each row has its own.
    """

    name: ScoreName
    shape: tuple[int, ...]
    sharing: Sharing
    by_row: bool


def moved_scores(problem: Problem, parts: Sequence[PartName]) -> list[Moved]:
    """Return the scores of some parts, as far as the problem has them."""
    moved = []
    for part in parts:
        for name in NAMES[part]:
            if (scores := getattr(problem.scores, name)) is not None:
                # A base model may have scores per edge; the table that moves is shared.
                is_base = part == "edge" and problem.sharing == "each"
                shape = scores.shape[1:] if is_base else scores.shape
                sharing = "shared" if is_base else problem.sharing
                moved.append(Moved(name, shape, sharing, part in ("node", "each_edge")))
    return moved


def zero_slopes(problem: Problem, parts: Sequence[PartName]) -> dict[str, FloatArray]:
    """Return zeros for gradients: of the scores' dtype by row, else float64, as for sums."""
    dtype = problem.scores.dtype
    return {
        moved.name: np.zeros(moved.shape, dtype if moved.by_row else np.float64)
        for moved in moved_scores(problem, parts)
    }


def edges_of(parts: Sequence[PartName]) -> Literal["sum", "each"] | None:
    """Return how inference sums over edges for these parts."""
    return "sum" if "edge" in parts else "each" if "each_edge" in parts else None


def named_slopes(
    truth: Truth,
    problem: Problem,
    parts: Sequence[PartName],
    node: FloatArray,
    edge: FloatArray | None,
    *,
    weigh: bool = False,
) -> dict[str, FloatArray]:
    """Return arrays for nodes (rows, K) and edges by name of the scores; ends are nodes' sums.

    ``weigh`` multiplies what has one entry per row by the weights of instances.
    """
    slopes: dict[str, FloatArray] = {}
    weights = truth.row_weights if weigh else None
    if weights is not None:
        weights = weights.astype(node.dtype)
        node = node * weights[:, None]
    for name, _, _, by_row in moved_scores(problem, parts):
        if name == "node":
            slopes[name] = node
        elif name != "edge":
            slopes[name] = node[truth.end_rows(name)].sum(axis=0, dtype=np.float64)
        elif edge is not None:
            if by_row and weights is not None:
                edge = edge * weights.reshape((-1,) + (1,) * (edge.ndim - 1))
            slopes[name] = edge
    return slopes


def add_counts(
    total: FloatArray,
    truth: Truth,
    name: ScoreName,
    sharing: Sharing,
    labels: IntArray,
    weights: FloatArray | None = None,
    sign: float = 1.0,
) -> None:
    """Add to ``total``, shaped like scores, the parts of a labelling (rows,) of every instance.

    ``weights`` (rows,) of each row's instance, or None for 1; ``sign`` multiplies them.
    """
    rows, cells = used_cells(truth.batch, truth.structure, labels, name, total.shape, sharing)
    flat, added = total.reshape(-1), None if weights is None else weights[rows]
    if name == "node" or (name == "edge" and sharing == "each"):  # every cell once
        flat[cells] += sign if added is None else (sign * added).astype(flat.dtype)
    else:
        flat += (sign * np.bincount(cells, added, minlength=len(flat))).astype(flat.dtype)


def labelling_scores(problem: Problem, labels: IntArray) -> FloatArray:
    """Return (instances,) the score of a labelling (rows,) of each, in float64."""
    batch = problem.batch
    scores = np.zeros(batch.n_instances)
    for name in SCORE_NAMES:
        if (table := getattr(problem.scores, name)) is not None:
            rows, cells = used_cells(
                batch, problem.structure, labels, name, table.shape, problem.sharing
            )
            used = table.reshape(-1)[cells].astype(np.float64)
            scores += np.bincount(batch.instance_of_row[rows], used, minlength=len(scores))
    for piece in problem.pieces() or ():
        if piece.is_short:  # constraints bind its labels too
            scores[piece.instances] = labelling_scores(piece.problem, labels[piece.rows])
    return scores


def unit_curvature(
    truth: Truth, problem: Problem, parts: Sequence[PartName]
) -> dict[str, FloatArray]:
    """Return the curvature of first-order steps, the weight of each part, by name of the scores.

    It is summed where a table is shared.  The weight is that of the instance; where labels have
    weights, times the largest of the true labels'.
    """
    curvature: dict[str, FloatArray] = {}
    for name, shape, _, by_row in moved_scores(problem, parts):
        if name == "node":
            curvature[name] = np.ones_like(problem.scores.node)
            if truth.position_weights is not None:
                curvature[name] *= truth.position_weights[:, None].astype(problem.scores.dtype)
        elif name != "edge":
            total = _at(truth.position_weights, truth.end_rows(name)).sum()
            curvature[name] = np.full(shape, total)
        elif by_row:
            curvature[name] = truth.edge_weights(shape)
        else:
            curvature[name] = np.broadcast_to(_table_weights(truth, problem), shape)
    return curvature


def _table_weights(truth: Truth, problem: Problem) -> FloatArray:
    """Return the total weight of the edges that share a table: one number, or (types, 1, ...)."""
    rows = truth.rows_with("edge", truth.batch)
    weights = _at(truth.edge_row_weights, rows)
    if problem.sharing != "typed" or truth.batch.edge_types is None:
        return np.asarray(weights.sum())
    assert problem.scores.edge is not None
    n_types, n_axes = problem.scores.edge.shape[0], problem.scores.edge.ndim - 1
    totals = np.bincount(truth.batch.edge_types[rows], weights=weights, minlength=n_types)
    return totals.astype(np.float64).reshape(-1, *(1,) * n_axes)


def _at(weights: FloatArray | None, rows: IntArray) -> FloatArray:
    return np.ones(len(rows)) if weights is None else weights[rows]
