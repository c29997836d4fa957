"""Labels added to a fitted model: old labels score what they did, new ones start at 0."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.assembly import check_table_size
from crfx.estimators.labelling import LabellingEstimator
from crfx.inputs.label_codes import find_classes, read_classes
from crfx.model.model import Model
from crfx.potentials.transitions import Tables
from crfx.scores import IntArray


def with_classes(start: LabellingEstimator, classes: Any) -> LabellingEstimator:
    """A fitted estimator that knows these labels too; itself where it does already.

    A copy: the one that is given stays as it is.
    """
    before = start.classes_.tolist()
    if classes is None or not set(read_classes(classes)) - set(before):
        return start
    distinct = find_classes([*before, *read_classes(classes)])
    place_of = {label: code for code, label in enumerate(distinct.tolist())}
    codes = np.array([place_of[label] for label in before])
    check_table_size(start, len(distinct), start.model_.n_types)
    found = copy(start)
    found.classes_ = distinct
    found.model_ = with_labels(start.model_, codes, len(distinct))
    found._take_labels(start, codes)
    return found


def with_labels(model: Model, codes: IntArray, n_labels: int) -> Model:
    """The model with ``n_labels`` labels: old label k becomes ``codes[k]``; a base model too."""
    entries = table_codes(model.table, codes, n_labels)

    def wider(name: str, table: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        if name == "weights":  # of linear edges: (types, features, entries of a table)
            found = np.zeros((*table.shape[:2], n_labels ** (model.order + 1)), np.float32)
            found[..., entries] = table
            return found
        n_axes = model.order + 1 if name == "edge" else 1
        return widened(table, n_axes, codes, n_labels)

    def tables(part: Tables | None) -> Tables | None:
        return None if part is None else part.changed(wider)

    node: Any = model.node
    edges: Any = model.edge_functions
    wide_table = n_labels ** (model.order + 1)
    return replace(
        model,
        n_labels=n_labels,
        node=node.with_outputs(codes, n_labels),
        edge=tables(model.edge),
        edge_functions=edges and [own.with_outputs(entries, wide_table) for own in edges],
        ends=tables(model.ends),
        base=None if model.base is None else with_labels(model.base, codes, n_labels),
    )


def widened(
    table: npt.NDArray[Any], n_axes: int, codes: IntArray, n_labels: int
) -> npt.NDArray[Any]:
    """An array whose last ``n_axes`` axes are labels, with room for more of them, 0 there."""
    front = table.shape[: table.ndim - n_axes]
    found = np.zeros(front + (n_labels,) * n_axes, table.dtype)
    index: Any = (..., *np.ix_(*[codes] * n_axes))
    found[index] = table
    return found


def table_codes(table: tuple[int, ...], codes: IntArray, n_labels: int) -> IntArray:
    """(old entries,) the places of the entries of an old table in one of the new labels."""
    index = np.unravel_index(np.arange(int(np.prod(table))), table)
    return np.ravel_multi_index(tuple(codes[axis] for axis in index), (n_labels,) * len(table))
