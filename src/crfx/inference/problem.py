"""A problem: the checked and normalised arguments of every inference function.

Parts of a problem are problems too: some of its instances, the labellings that agree with given
labels, or the chains that are too short for an edge of their order.  A table of order n scores
n + 1 labels; a chain of 2 to n positions has no edge.  Where constraints forbid neighbours
(`Scores.pairs`), such chains are a problem of order 1 with these pairs as edge scores, and
inference runs on the two kinds of chains separately.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.scores import LARGEST_SCORE, Array64, FloatArray, IntArray, Scores, Sharing
from crfx.structures import Chain, Forest
from crfx.structures.forest import NO_LAST_POSITION


@dataclass(frozen=True, eq=False, slots=True)
class Problem:
    """Scores over a batch with a structure: all that inference needs.

    ``sharing`` says how edges share tables: "none", "shared", "typed" or "each".
    """

    batch: Batch
    scores: Scores
    structure: Chain | Forest
    sharing: Sharing

    @property
    def order(self) -> int:
        """Number of labels that come before an edge's own; 1 in a forest."""
        return self.structure.n_label_axes - 1

    def cut(self, part: Part) -> Problem:
        """Return the problem of some instances."""
        scores, edge = self.scores, self.scores.edge
        if edge is not None and self.sharing == "each":
            edge = edge[part.rows]
        scores = replace(scores, node=scores.node[part.rows], edge=edge)
        return replace(self, batch=part.batch, scores=scores)

    def clamped(self, rows: IntArray, labels: IntArray) -> Problem:
        """Return the problem in which ``labels`` (n,) are the only ones allowed at ``rows`` (n,).

        Their scores stay, all others are -inf there.  A copy: O(rows K).
        """
        node = self.scores.node.copy()
        kept = node[rows, labels]
        node[rows] = -np.inf
        node[rows, labels] = kept
        return replace(self, scores=replace(self.scores, node=node))

    def pieces(self) -> list[Piece] | None:
        """Split chains with edges from those too short for one; None if all are of one kind."""
        if self.scores.pairs is None:
            return None
        is_short = short_chains(self.batch, self.order)
        if not is_short.any():
            return None
        return [self._piece(np.flatnonzero(is_short == which), which) for which in (False, True)]

    def _piece(self, instances: IntArray, is_short: bool) -> Piece:
        part = Part.of(self.batch, instances)
        problem = self.cut(part)
        if is_short:
            scores = replace(problem.scores, edge=self.scores.pairs, pairs=None)
            problem = Problem(part.batch, scores, Chain(1), "shared")
        return Piece(part.batch, instances, part.rows, problem, is_short)


@dataclass(frozen=True, eq=False)
class Part:
    """Some instances of a batch as a batch; ``rows`` are their rows in the whole."""

    batch: Batch
    instances: IntArray
    rows: IntArray

    @classmethod
    def of(cls, whole: Batch, instances: IntArray) -> Part:
        """Cut instances out, in the order given."""
        lengths = whole.lengths[instances]
        starts = np.repeat(whole.offsets[:-1][instances], lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = starts + within
        batch = Batch.from_lengths(
            lengths,
            parents=None if whole.parents is None else whole.parents[rows],
            edge_types=None if whole.edge_types is None else whole.edge_types[rows],
            allowed=None if whole.allowed is None else whole.allowed[rows],
        )
        return cls(batch, instances, rows)


@dataclass(frozen=True, eq=False)
class Piece(Part):
    """The chains of a problem with edges, or those too short for one, as a problem."""

    problem: Problem
    is_short: bool


def short_chains(batch: Batch, order: int) -> npt.NDArray[np.bool_]:
    """Return (instances,) whether a chain has neighbours and no edge of that order."""
    return (batch.lengths > 1) & (batch.lengths <= order)


def prepare(
    node: npt.ArrayLike,
    edge: npt.ArrayLike | None,
    offsets: npt.ArrayLike,
    parents: npt.ArrayLike | None = None,
    edge_types: npt.ArrayLike | None = None,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
    order: int = 1,
) -> Problem:
    """Check shapes, dtypes and counts of the arguments of an inference function.

    O(instances), and O(rows) for edge types; there is no pass over ``node``.  NaN and +inf scores,
    and parents that are out of range or form a cycle, are found by inference itself on its way.
    """
    structure = _structure(parents, end, order)
    batch = Batch(
        cast(IntArray, offsets),
        parents=cast("IntArray | None", parents),
        edge_types=cast("IntArray | None", edge_types),
    )
    scores = Scores(*(cast("Array64", table) for table in (node, edge, start, end)))
    if scores.n_rows != batch.n_rows:
        raise ValueError(
            f"offsets end at {batch.n_rows} but node has {scores.n_rows} rows: the lengths of "
            f"the {batch.n_instances} instances must add up to the rows of node"
        )
    if batch.edge_types is not None and scores.edge is None:
        raise ValueError("edge_types are given without edge scores: pass edge, or drop edge_types")
    sharing = scores.sharing(structure.n_label_axes - 1, typed=batch.edge_types is not None)
    if batch.edge_types is not None and scores.edge is not None:
        _check_edge_types(batch, batch.edge_types, scores.edge.shape[0], structure)
    return Problem(batch, scores, structure, sharing)


def _structure(
    parents: npt.ArrayLike | None, end: npt.ArrayLike | None, order: int
) -> Chain | Forest:
    chain = Chain(order)
    if parents is None:
        return chain
    if order != 1:
        raise ValueError(
            f"parents are given with order {order}, but a forest has edges of order 1 only: a node "
            "has one parent and no sequence of labels before it; drop parents or set order=1"
        )
    if end is not None:
        raise ValueError(NO_LAST_POSITION)
    return Forest()


def _check_edge_types(
    batch: Batch, types: IntArray, n_types: int, structure: Chain | Forest
) -> None:
    """Raise at the first edge whose type has no table.  Rows without an edge are free."""
    # Viewed as unsigned, a negative type is a huge one: a single pass settles the usual case.
    if not types.size or types.view(np.uint32).max() < n_types:
        return
    rows = structure.edge_rows(batch)
    bad = rows[(types[rows] < 0) | (types[rows] >= n_types)]
    if bad.size:
        raise batch.bad_row(
            bad[0],
            f"edge type {types[bad[0]]} is out of range, edge has {n_types} tables (types 0 to "
            f"{n_types - 1})",
        )


def checked_cost(cost: npt.ArrayLike, problem: Problem, dtype: npt.DTypeLike) -> FloatArray:
    """Return ``cost`` (rows, K) as ``dtype``, or raise at the first that is not finite."""
    try:
        array = np.asarray(cost)
    except ValueError:
        raise ValueError("cost has rows of unequal lengths") from None
    if array.shape != problem.scores.node.shape or array.dtype.kind not in "fiub":
        raise ValueError(
            f"cost has shape {array.shape} and dtype {array.dtype}: it must hold a real number "
            f"for every node score, {problem.scores.node.shape}"
        )
    costs: FloatArray = np.ascontiguousarray(array, dtype=dtype)
    bad = np.argwhere(~(np.abs(costs) <= LARGEST_SCORE))
    if bad.size:
        raise problem.batch.bad_row(
            bad[0, 0],
            f"the cost of label {bad[0, 1]} is {costs[tuple(bad[0])]}; costs must be finite "
            f"(within ±{LARGEST_SCORE:g})",
        )
    return costs
