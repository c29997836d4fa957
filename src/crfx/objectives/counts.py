"""Parts of the scores by name: how often labellings use each entry, and what they score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crfx.inference.problem import Problem
from crfx.inference.short_chains import pieces
from crfx.objectives.base import PartName
from crfx.objectives.first_order import END_NAMES
from crfx.objectives.truth import ScoreName, Truth
from crfx.scores import FloatArray, IntArray, Sharing, table_index

NAMES: dict[PartName, tuple[ScoreName, ...]] = {
    "node": ("node",),
    "edge": ("edge",),
    "each_edge": ("edge",),
    "ends": ("start", "end"),
}
"""The scores that a part has."""


def moved_scores(problem: Problem, part: PartName) -> dict[ScoreName, tuple[int, ...]]:
    """Shapes of the gradients of a part, by name of the scores."""
    found: dict[ScoreName, tuple[int, ...]] = {}
    for name in NAMES[part]:
        if (scores := getattr(problem.scores, name)) is not None:
            # Scores may differ by edge, those of a base model do; the table that moves is shared.
            is_base = part == "edge" and problem.sharing == "each"
            found[name] = scores.shape[1:] if is_base else scores.shape
    return found


def sharing_of(part: PartName, sharing: Sharing) -> Sharing:
    """How the edges share the scores that move."""
    return "shared" if part == "edge" and sharing == "each" else sharing


def edges_of(parts: Sequence[PartName]) -> str | None:
    """How inference is to sum over edges for these parts."""
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
    """What the parts asked for are of arrays for nodes (rows, K) and edges; ends are nodes' sums.

    ``weigh``: what has a row of its own does not count the weights of instances yet.
    """
    found: dict[str, FloatArray] = {}
    weights = truth.row_weights if weigh else None
    if weights is not None:
        weights = weights.astype(node.dtype)
        node = node * weights[:, None]
    if "node" in parts:
        found["node"] = node
    if edge is not None and {"edge", "each_edge"} & set(parts):
        if "each_edge" in parts and weights is not None:
            edge = edge * weights.reshape((-1,) + (1,) * (edge.ndim - 1))
        found["edge"] = edge
    if "ends" in parts:
        for name in END_NAMES:
            if getattr(problem.scores, name) is not None:
                found[name] = node[truth.end_rows(name)].sum(axis=0, dtype=np.float64)
    return found


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
    batch, structure = truth.batch, truth.structure
    rows = truth.rows_with(name, batch)
    index: tuple[IntArray, ...] = (labels[rows],)
    if name == "node":
        index = (rows, *index)
    elif name == "edge":
        place = table_index(sharing, rows, batch.edge_types)
        index = (*place, *labels[structure.contexts(batch)].T, *index)
    cells = np.ravel_multi_index(index, total.shape)
    flat, own = total.reshape(-1), None if weights is None else weights[rows]
    if name == "node" or (name == "edge" and sharing == "each"):  # every cell once
        flat[cells] += sign if own is None else (sign * own).astype(flat.dtype)
    else:
        flat += (sign * np.bincount(cells, own, minlength=len(flat))).astype(flat.dtype)


def labelling_scores(problem: Problem, labels: IntArray) -> FloatArray:
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
    for part in pieces(problem) or ():
        if part.is_short and (table := part.problem.scores.edge) is not None:
            rows = part.problem.structure.edge_rows(part.problem.batch)
            own = labels[part.rows]
            add(part.rows[rows], table[own[rows - 1], own[rows]])
    if scores.start is not None:
        rows = problem.structure.root_rows(batch)
        add(rows, scores.start[labels[rows]])
    if scores.end is not None:
        rows = problem.structure.last_rows(batch)
        add(rows, scores.end[labels[rows]])
    return found
