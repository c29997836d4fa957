"""Whether constraints leave any labelling, and whether they allow the labels that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.scores import IntArray
from crfx.structures.base import Structure
from crfx.structures.chain import Chain
from crfx.structures.mask import BoolArray, Mask


def check_allowed(
    batch: Batch,
    structure: Structure,
    labels: IntArray,
    mask: Mask | None,
    classes: npt.NDArray[Any],
) -> None:
    """Raise ValueError at the first known label, code of ``labels`` (rows,), that is forbidden.

    Negative codes are unknown: some label must be left for them.  O(rows), and K^2 for the rows of
    instances with unknown labels.
    """
    if mask is None and batch.allowed is None:
        return
    _check_positions(batch, labels, classes)
    if mask is not None:
        _check_ends(batch, structure, labels, mask, classes)
        _check_pairs(batch, structure, labels, mask, classes)
    if (labels < 0).any():
        check_possible(batch, structure, mask, labels, len(classes))


def check_possible(
    batch: Batch, structure: Structure, mask: Mask | None, labels: IntArray | None, n_labels: int
) -> None:
    """Raise ValueError at the first instance for which no labelling is left."""
    bad = np.flatnonzero(impossible_rows(batch, structure, mask, labels, n_labels))
    if bad.size:
        where = _where(batch, int(bad[0]))
        known = "" if labels is None else " that agrees with the labels that are known"
        raise ValueError(f"{where}: constraints leave no label here{known}")


def impossible_rows(
    batch: Batch, structure: Structure, mask: Mask | None, labels: IntArray | None, n_labels: int
) -> BoolArray:
    """(rows,) where a walk from the leaves (in chains: from the end) first has no label left.

    An instance has a labelling exactly if it has no such row: what constraints ask for is told by
    neighbours alone, whatever the order.  O(rows K^2), one pass per depth.
    """
    left = np.ones((batch.n_rows, n_labels), bool)
    if batch.allowed is not None:
        left &= batch.allowed
    if labels is not None:
        known = np.flatnonzero(labels >= 0)
        right = left[known, labels[known]]
        left[known] = False
        left[known, labels[known]] = right
    found: BoolArray = np.zeros(batch.n_rows, bool)
    if mask is None:
        return np.asarray(~left.any(axis=1))
    if mask.start is not None:
        left[structure.root_rows(batch)] &= mask.start
    if mask.end is not None and isinstance(structure, Chain):
        left[structure.last_rows(batch)] &= mask.end
    parents, depths = _parents(batch, structure)
    pair = np.ones((n_labels, n_labels)) if mask.pair is None else mask.pair.astype(np.float64)
    order = np.argsort(depths, kind="stable")
    borders = np.searchsorted(depths[order], np.arange(1, depths.max(initial=0) + 2))
    for begin, end in zip(borders[::-1][1:], borders[::-1][:-1], strict=True):
        rows = order[begin:end]
        found[rows] = ~left[rows].any(axis=1)
        # Told once: above a row without labels all goes on as if it had some.
        below = (left[rows] | found[rows, None]).astype(np.float64) @ pair.T > 0
        np.logical_and.at(left, parents[rows], below)
    roots = order[: borders[0]]
    found[roots] = ~left[roots].any(axis=1)
    return found


def _parents(batch: Batch, structure: Structure) -> tuple[IntArray, IntArray]:
    """(rows,) the row before, or above, and how deep a row is: 0 at roots."""
    if isinstance(structure, Chain):
        return np.arange(batch.n_rows) - 1, batch.positions
    first = np.repeat(batch.offsets[:-1], batch.lengths)
    assert batch.parents is not None
    parents = np.where(batch.parents < 0, -1, first + batch.parents)
    depths = np.zeros(batch.n_rows, np.int64)
    for row in structure.visit_order(batch):
        if parents[row] >= 0:
            depths[row] = depths[parents[row]] + 1
    return parents, depths


def _where(batch: Batch, row: int) -> str:
    instance, position = batch.locate(row)
    return f"instance {instance}, position {position}"


def _check_positions(batch: Batch, labels: IntArray, classes: npt.NDArray[Any]) -> None:
    if batch.allowed is None:
        return
    known = np.flatnonzero(labels >= 0)
    bad = known[~batch.allowed[known, labels[known]]]
    if bad.size:
        label = classes.tolist()[labels[bad[0]]]
        raise ValueError(
            f"{_where(batch, int(bad[0]))}: the true label {label!r} is not among those allowed "
            "there"
        )


def _check_ends(
    batch: Batch,
    structure: Structure,
    labels: IntArray,
    mask: Mask,
    classes: npt.NDArray[Any],
) -> None:
    ends = [("first", mask.start, structure.root_rows(batch))]
    if isinstance(structure, Chain):
        ends.append(("last", mask.end, structure.last_rows(batch)))
    for place, allowed, rows in ends:
        if allowed is None:
            continue
        own = labels[rows]
        bad = rows[(own >= 0) & ~allowed[own]]
        if bad.size:
            label = classes.tolist()[labels[bad[0]]]
            raise ValueError(
                f"{_where(batch, int(bad[0]))}: constraints forbid {label!r} as the {place} label, "
                "which it truly is"
            )


def _check_pairs(
    batch: Batch,
    structure: Structure,
    labels: IntArray,
    mask: Mask,
    classes: npt.NDArray[Any],
) -> None:
    if mask.pair is None:
        return
    first_order: Structure = Chain(1) if isinstance(structure, Chain) else structure
    rows = first_order.edge_rows(batch)
    one, other = labels[first_order.contexts(batch)[:, 0]], labels[rows]
    bad = np.flatnonzero((one >= 0) & (other >= 0) & ~mask.pair[one, other])
    if bad.size:
        names = classes.tolist()
        pair = names[one[bad[0]]], names[other[bad[0]]]
        raise ValueError(
            f"{_where(batch, int(rows[bad[0]]))}: constraints forbid the pair {pair!r}, whose "
            "second label is the true one here"
        )
