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
    ``note`` says what is not in it, if anything.
    """

    rows: list[tuple[Any, ...]]
    columns: list[Any]
    values: npt.NDArray[np.float64]
    note: str = ""

    @property
    def largest(self) -> float:
        """The greatest size of an entry, at least a little above 0."""
        sizes = np.abs(self.values[np.isfinite(self.values)])
        return max(float(sizes.max(initial=0.0)), 1e-12)


def learned_edges(model: Any) -> tuple[npt.NDArray[np.float64] | None, str]:
    """The edge table of a model and those underneath together, one per type where edges have types,
    and what is not in it, in words; None where edges are no tables.

    Where edges underneath depend on X, it is the last model's alone.
    """
    with_edges = [own for own in model.model_.layers if own.edge_family is not None]
    tables = [own for own in with_edges if own.edge_family == "table"]
    note = ""
    if len(tables) < len(with_edges):
        tables = [own for own in tables if own is model.model_]
        note = "of the last model only: the one underneath has edges that depend on X"
    if not tables:
        return None, ""
    return sum(own.edge.tables["edge"].astype(np.float64) for own in tables), note


def transition_table(model: Any, edge_type: int | None = None) -> TransitionTable:
    """Of a fitted model; of edges of one type, where edges have types.

    ValueError where the model has no such table, or one that is too large to be read.
    """
    table, note = learned_edges(model)
    if table is None:
        why = "has edges that depend on X" if model.model_.has_edges else "has no edges"
        raise ValueError(f"there is no table of transitions: the {type(model).__name__} {why}")
    order = model.model_.order
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
    return TransitionTable(rows, names, table.reshape(len(rows), len(names)), note)


def transition_tables(model: Any) -> dict[str, TransitionTable]:
    """All of a model by what they are of; ValueError as `transition_table`."""
    edges, _ = learned_edges(model)
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
