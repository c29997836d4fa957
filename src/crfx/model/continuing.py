"""Models to train further: with more labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.model.model import Model
from crfx.potentials.context_trees import ContextTrees
from crfx.potentials.transitions import Tables
from crfx.scores import IntArray


def with_labels(model: Model, codes: IntArray, n_labels: int) -> Model:
    """Return the model with ``n_labels`` labels, its base model too.

    Old label k becomes ``codes[k]`` and scores what it did; new labels start at 0.
    """
    entries = table_codes(model.table, codes, n_labels)

    def wider(name: str, table: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        if name == "weights":  # of linear edges: (types, features, entries of a table)
            weights = np.zeros((*table.shape[:2], n_labels ** (model.order + 1)), np.float32)
            weights[..., entries] = table
            return weights
        n_axes = model.order + 1 if name == "edge" else 1
        return widened(table, n_axes, codes, n_labels)

    def tables(part: Tables | None) -> Tables | None:
        return None if part is None else part.changed(wider)

    node: Any = model.node
    edges: Any = model.edge_functions
    by_context = isinstance(node, ContextTrees)
    wide_table = n_labels ** (model.order + 1)
    return replace(
        model,
        n_labels=n_labels,
        node=(node.with_labels if by_context else node.with_outputs)(codes, n_labels),
        edge=tables(model.edge),
        edge_functions=edges and [edge.with_outputs(entries, wide_table) for edge in edges],
        ends=tables(model.ends),
        base=None if model.base is None else with_labels(model.base, codes, n_labels),
    )


def widened(
    table: npt.NDArray[Any], n_axes: int, codes: IntArray, n_labels: int
) -> npt.NDArray[Any]:
    """Return an array whose last ``n_axes`` axes, which are labels, have room for more; 0 there."""
    front = table.shape[: table.ndim - n_axes]
    wide = np.zeros(front + (n_labels,) * n_axes, table.dtype)
    index: Any = (..., *np.ix_(*[codes] * n_axes))
    wide[index] = table
    return wide


def table_codes(table: tuple[int, ...], codes: IntArray, n_labels: int) -> IntArray:
    """Return (old entries,) the places of the entries of an old table in one of the new labels."""
    index = np.unravel_index(np.arange(int(np.prod(table))), table)
    return np.ravel_multi_index(tuple(codes[axis] for axis in index), (n_labels,) * len(table))
