"""The curvature of first-order steps: 1 for every part, times its weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from crfx.inference.problem import Problem
from crfx.objectives.base import PartName
from crfx.objectives.truth import Truth
from crfx.scores import FloatArray, IntArray

END_NAMES: tuple[Literal["start", "end"], ...] = ("start", "end")


def unit_curvature(
    truth: Truth, problem: Problem, parts: Sequence[PartName]
) -> dict[str, FloatArray]:
    """The weight of each part, summed where a table is shared; by name of the scores.

    It is that of its instance; where labels have weights, times the largest of its true labels'.
    """
    found: dict[str, FloatArray] = {}
    scores = problem.scores
    if "node" in parts:
        found["node"] = np.ones_like(scores.node)
        if truth.position_weights is not None:
            found["node"] *= truth.position_weights[:, None].astype(scores.dtype)
    if scores.edge is not None and "each_edge" in parts:
        found["edge"] = truth.edge_weights(scores.edge.shape)
    if scores.edge is not None and "edge" in parts:
        # Scores may differ by edge, those of a base model do; the table that moves is shared.
        shape = scores.edge.shape[1:] if problem.sharing == "each" else scores.edge.shape
        found["edge"] = np.broadcast_to(_table_weights(truth, problem), shape)
    if "ends" in parts:
        for name in END_NAMES:
            if getattr(scores, name) is not None:
                total = _at(truth.position_weights, truth.end_rows(name)).sum()
                found[name] = np.full(scores.n_labels, total)
    return found


def _table_weights(truth: Truth, problem: Problem) -> FloatArray:
    """Total weight of the edges that share a table: one number, or (types, 1, ...)."""
    rows = truth.rows_with("edge", truth.batch)
    weights = _at(truth.edge_row_weights, rows)
    if problem.sharing != "typed" or truth.batch.edge_types is None:
        return np.asarray(weights.sum())
    assert problem.scores.edge is not None
    n_types, n_axes = problem.scores.edge.shape[0], problem.scores.edge.ndim - 1
    totals = np.bincount(truth.batch.edge_types[rows], weights=weights, minlength=n_types)
    return totals.astype(np.float64).reshape(-1, *(1,) * n_axes)


def _at(weights: npt.NDArray[np.float64] | None, rows: IntArray) -> FloatArray:
    return np.ones(len(rows)) if weights is None else weights[rows]
