"""Whether constraints leave any labelling, and whether they allow the labels that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.inference.max_product import best_labels
from crfx.inference.problem import Problem
from crfx.scores import IntArray, Scores
from crfx.structures import Chain, Forest, Mask
from crfx.structures.base import Structure
from crfx.structures.mask import BoolArray


def check_allowed(
    batch: Batch,
    structure: Structure,
    labels: IntArray,
    mask: Mask | None,
    classes: npt.NDArray[Any],
) -> None:
    """Raise ValueError at the first known label, code of ``labels`` (rows,), that is forbidden.

    Negative codes are unknown: some label must be left for them.  O(rows), and O(rows K^2) where
    labels are unknown.
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
    batch: Batch,
    structure: Structure,
    mask: Mask | None,
    labels: IntArray | None,
    n_labels: int,
    n_jobs: int | None = None,
) -> None:
    """Raise ValueError at the first instance for which no labelling is left.

    Without labels and ``batch.allowed`` a mask is judged by lengths alone, which costs next to
    nothing where it leaves a labelling of every length, as those of schemes do.
    """
    is_free = labels is None and batch.allowed is None
    if is_free and _any_shape_will_do(batch, structure, mask, n_labels):
        return
    bad = np.flatnonzero(impossible_rows(batch, structure, mask, labels, n_labels, n_jobs))
    if bad.size:
        known = "" if labels is None else " that agrees with the labels that are known"
        raise batch.bad_row(bad[0], f"constraints leave no label here{known}")


def impossible_rows(
    batch: Batch,
    structure: Structure,
    mask: Mask | None,
    labels: IntArray | None,
    n_labels: int,
    n_jobs: int | None = None,
) -> BoolArray:
    """(rows,) where the labelling that breaks the fewest constraints breaks some.

    An instance has a labelling exactly if it has no such row.  Every constraint that is broken
    costs 1, and max-product finds the least sum.  What constraints ask for is told by neighbours
    alone, so order 1 will do.  O(rows K^2), in the core.
    """
    is_chain = isinstance(structure, Chain)
    own: Chain | Forest = Chain(1) if is_chain else Forest()
    mask = mask or Mask()
    node = np.zeros((batch.n_rows, n_labels), np.float32)
    if batch.allowed is not None:
        node -= ~batch.allowed
    if labels is not None:
        known = np.flatnonzero(labels >= 0)
        node[known] -= 1
        node[known, labels[known]] += 1
    pair, start, end = (
        None if table is None else table.astype(np.float32) - 1
        for table in (mask.pair, mask.start, mask.end if is_chain else None)
    )
    plain = Batch(batch.offsets, parents=batch.parents)
    scores = Scores(node, pair, start, end)
    problem = Problem(plain, scores, own, "none" if pair is None else "shared")
    best, _ = best_labels(problem, n_jobs)
    found = node[np.arange(batch.n_rows), best] < 0
    if pair is not None:
        rows = own.edge_rows(plain)
        found[rows] |= pair[best[own.contexts(plain)[:, 0]], best[rows]] < 0
    if start is not None:
        rows = own.root_rows(plain)
        found[rows] |= start[best[rows]] < 0
    if end is not None:
        rows = Chain(1).last_rows(plain)
        found[rows] |= end[best[rows]] < 0
    return np.asarray(found)


def _any_shape_will_do(
    batch: Batch, structure: Structure, mask: Mask | None, n_labels: int
) -> bool:
    """Whether a mask leaves a labelling of every length up to the longest, and so of every forest.

    A node of a forest needs of its label only that walks as long as its tallest branch begin there:
    it has one if chains that may end in any label have.  Walks back from the end repeat themselves
    soon, after K steps at most where any label may be the last.
    """
    if mask is None or not batch.n_rows:
        return True
    is_chain = isinstance(structure, Chain)
    every = np.ones(n_labels, bool)
    pair = np.ones((n_labels, n_labels), bool) if mask.pair is None else mask.pair
    start = every if mask.start is None else mask.start
    left = mask.end if is_chain and mask.end is not None else every
    seen: set[bytes] = set()
    for _ in range(int(batch.lengths.max())):
        if left.tobytes() in seen:
            return True
        if not (left & start).any():
            return False
        seen.add(left.tobytes())
        left = np.asarray((pair & left).any(axis=1))
    return True


def _check_positions(batch: Batch, labels: IntArray, classes: npt.NDArray[Any]) -> None:
    if batch.allowed is None:
        return
    known = np.flatnonzero(labels >= 0)
    bad = known[~batch.allowed[known, labels[known]]]
    if bad.size:
        label = classes.tolist()[labels[bad[0]]]
        raise batch.bad_row(bad[0], f"the true label {label!r} is not among those allowed there")


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
            raise batch.bad_row(
                bad[0], f"constraints forbid {label!r} as the {place} label, which it truly is"
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
        raise batch.bad_row(
            rows[bad[0]],
            f"constraints forbid the pair {pair!r}, whose second label is the true one here",
        )
