"""Feasibility: whether constraints leave any labelling, and whether they allow known labels."""

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

    Negative codes are unknown: some label must be left for them.  O(rows), and O(rows K^2) if
    labels are unknown.
    """
    if mask is None and batch.allowed is None:
        return
    names, known = classes.tolist(), labels >= 0
    rows: IntArray
    if batch.allowed is not None:
        rows = np.flatnonzero(known)
        rows = rows[~batch.allowed[rows, labels[rows]]]
        if rows.size:
            label = names[labels[rows[0]]]
            _raise_at(batch, rows, f"the true label {label!r} is not among those allowed there")
    mask = mask or Mask()
    for place, allowed, find_rows in (
        ("first", mask.start, structure.root_rows),
        ("last", mask.end if isinstance(structure, Chain) else None, structure.last_rows),
    ):
        if allowed is None:
            continue
        rows = find_rows(batch)
        rows = rows[known[rows] & ~allowed[labels[rows]]]
        if rows.size:
            label = names[labels[rows[0]]]
            what = f"constraints forbid {label!r} as the {place} label, which it truly is"
            _raise_at(batch, rows, what)
    if mask.pair is not None:
        first_order: Structure = Chain(1) if isinstance(structure, Chain) else structure
        rows, before = first_order.edge_rows(batch), first_order.contexts(batch)[:, 0]
        bad = known[before] & known[rows] & ~mask.pair[labels[before], labels[rows]]
        if bad.any():
            pair = names[labels[before[bad][0]]], names[labels[rows[bad][0]]]
            what = f"constraints forbid the pair {pair!r}, whose second label is the true one here"
            _raise_at(batch, rows[bad], what)
    if not known.all():
        check_possible(batch, structure, mask, labels, len(classes))


def _raise_at(batch: Batch, rows: IntArray, what: str) -> None:
    raise batch.bad_row(rows[0], what)


def check_possible(
    batch: Batch,
    structure: Structure,
    mask: Mask | None,
    labels: IntArray | None,
    n_labels: int,
    n_jobs: int | None = None,
) -> None:
    """Raise ValueError at the first instance for which no labelling is left.

    Without labels and ``batch.allowed`` the lengths are checked first, which costs next to nothing
    if the mask leaves a labelling of every length, as those of schemes do.
    """
    is_free = labels is None and batch.allowed is None
    if is_free and _allows_every_length(batch, structure, mask, n_labels):
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
    """Return (rows,) where the labelling that breaks the fewest constraints breaks some.

    An instance has a labelling exactly if it has no such row.  Every constraint that is broken
    costs 1, and max-product finds the least sum.  Constraints bind neighbours only, so order 1
    suffices.  O(rows K^2), in the core.
    """
    is_chain = isinstance(structure, Chain)
    first_order: Chain | Forest = Chain(1) if is_chain else Forest()
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
    problem = Problem(plain, scores, first_order, "none" if pair is None else "shared")
    best, _ = best_labels(problem, n_jobs)
    is_broken = node[np.arange(batch.n_rows), best] < 0
    if pair is not None:
        rows = first_order.edge_rows(plain)
        is_broken[rows] |= pair[best[first_order.contexts(plain)[:, 0]], best[rows]] < 0
    if start is not None:
        rows = first_order.root_rows(plain)
        is_broken[rows] |= start[best[rows]] < 0
    if end is not None:
        rows = Chain(1).last_rows(plain)
        is_broken[rows] |= end[best[rows]] < 0
    return np.asarray(is_broken)


def _allows_every_length(
    batch: Batch, structure: Structure, mask: Mask | None, n_labels: int
) -> bool:
    """Return whether a mask leaves a labelling of every length up to the longest, or forest.

    The label of a node in a forest must only begin walks as long as its tallest branch: one exists
    if chains that may end in any label have one.  Walks back from the end soon repeat themselves,
    after K steps at most if any label may be the last.
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
