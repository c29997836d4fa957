"""The learned table of transitions, with the labels of its rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_ROWS = 100
"""Beyond that nobody reads a table; the strongest entries say more."""


@dataclass(frozen=True)
class TransitionTable:
    """``values`` (rows, columns): how well the label of a column goes after those of a row.

    A row has the ``order`` labels before, oldest first.  NaN where constraints forbid it.
    """

    rows: list[tuple[Any, ...]]
    columns: list[Any]
    values: npt.NDArray[np.float64]

    @property
    def largest(self) -> float:
        """The greatest size of an entry, at least a little above 0."""
        sizes = np.abs(self.values[np.isfinite(self.values)])
        return max(float(sizes.max(initial=0.0)), 1e-12)


def transition_table(model: Any, edge_type: int | None = None) -> TransitionTable:
    """Of a fitted model; of edges of one type, where edges have types.

    ValueError where the model has no such table, or one that is too large to be read.
    """
    table = model.transitions_
    if table is None:
        why = "has no edges" if model.model_.edge_family is None else "has edges that depend on X"
        raise ValueError(f"there is no table of transitions: the {type(model).__name__} {why}")
    table, order = np.array(table, dtype=np.float64), model.model_.order
    table = _of_type(table, order, edge_type)
    names = model.classes_.tolist()
    if len(names) ** order > MOST_ROWS:
        raise ValueError(
            f"the table of transitions has {len(names) ** order} rows, {MOST_ROWS} can be read: "
            "crfx.report.description.strongest_transitions lists its foremost entries"
        )
    mask = model.model_.mask
    if mask is not None:
        table = np.where(np.isneginf(mask.tables(order).get("edge", 0.0)), np.nan, table)
    rows = list(product(names, repeat=order))
    return TransitionTable(rows, names, table.reshape(len(rows), len(names)))


def transition_tables(model: Any) -> dict[str, TransitionTable]:
    """All of a model by what they are of; ValueError as `transition_table`."""
    edges = model.transitions_
    if edges is None or edges.ndim == model.model_.order + 1:
        return {"Scores of transitions": transition_table(model)}
    return {
        f"Scores of transitions, edges of type {kind}": transition_table(model, kind)
        for kind in range(len(edges))
    }


def _of_type(table: npt.NDArray[Any], order: int, edge_type: int | None) -> npt.NDArray[Any]:
    if table.ndim == order + 1:
        if edge_type is not None:
            raise ValueError(f"edge_type is {edge_type!r}, but edges of this model have no types")
        return table
    if edge_type is None:
        raise ValueError(f"edges have {len(table)} types: say which one by edge_type=")
    whole = isinstance(edge_type, int | np.integer) and not isinstance(edge_type, bool)
    if not whole or not 0 <= edge_type < len(table):
        raise ValueError(f"edge_type is {edge_type!r}: it must be from 0 to {len(table) - 1}")
    found: npt.NDArray[Any] = table[edge_type]
    return found
