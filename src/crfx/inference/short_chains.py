"""Chains too short for an edge of their order, which constraints still bind.

A table of order n speaks of n + 1 labels; a chain of 2 to n positions has none.  Where constraints
forbid neighbours (`Scores.pairs`), such chains are a problem of order 1 with these as edge scores,
and everything is asked of the two kinds of chains apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfx.batch import Batch
from crfx.inference.problem import Problem
from crfx.scores import IntArray, Scores
from crfx.structures import Chain


@dataclass(frozen=True, eq=False)
class Piece:
    """Some instances of a problem as a problem; ``rows`` are theirs in the whole."""

    problem: Problem
    instances: IntArray
    rows: IntArray
    is_short: bool


def has_short_chains(batch: Batch, order: int) -> bool:
    """Whether a chain has neighbours and no edge of that order."""
    return order > 1 and bool(((batch.lengths > 1) & (batch.lengths <= order)).any())


def pieces(problem: Problem) -> list[Piece] | None:
    """Chains with edges, then those without; None where there is no need to tell them apart."""
    batch, order = problem.batch, problem.order
    if problem.scores.pairs is None or not has_short_chains(batch, order):
        return None
    short = (batch.lengths > 1) & (batch.lengths <= order)
    return [_piece(problem, np.flatnonzero(short == which), bool(which)) for which in (0, 1)]


def _piece(problem: Problem, instances: IntArray, is_short: bool) -> Piece:
    whole, scores = problem.batch, problem.scores
    lengths = whole.lengths[instances]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows = np.repeat(whole.offsets[:-1][instances], lengths) + within
    types = None if whole.edge_types is None or is_short else whole.edge_types[rows]
    batch = Batch.from_lengths(lengths, edge_types=types)
    if is_short:
        first = Scores(scores.node[rows], scores.pairs, scores.start, scores.end)
        return Piece(Problem(batch, first, Chain(1), "shared"), instances, rows, is_short)
    edge = scores.edge[rows] if scores.edge is not None and problem.sharing == "each" else None
    own = Scores(scores.node[rows], scores.edge if edge is None else edge, scores.start, scores.end)
    return Piece(Problem(batch, own, problem.structure, problem.sharing), instances, rows, is_short)
