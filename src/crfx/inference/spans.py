"""Spans and their exact probabilities, from the probabilities of edges.

Given x, the labels of a chain of order n are a Markov chain of order n, whose steps follow from the
marginals of edges: P(y_t | n labels before).  A span (s, e, type) is there where y_s opens one of
its type, each label to y_{e-1} continues it and y_e does not: all depend on neighbours only.
Walking along these paths sums all labellings that have the span.  Marginals are formed in float64;
the results agree with enumeration to 1e-9.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfx.inference.problem import Piece, Problem
from crfx.inference.sum_product import summed
from crfx.metrics import spans
from crfx.scores import Array64, FloatArray, IntArray, Scores
from crfx.structures import Chain
from crfx.structures.label_schemes import OUTSIDE, continuing, tag_and_type


class Span(NamedTuple):
    """Positions from ``start`` up to ``stop``, exclusive, their type and its probability."""

    start: int
    stop: int
    label: str
    probability: float


@dataclass(frozen=True, eq=False)
class SpanTags:
    """The number of the type of each label (-1 for O), and which label continues which."""

    classes: npt.NDArray[Any]
    types: list[str]
    type_of: IntArray
    goes_on: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, classes: npt.NDArray[Any]) -> SpanTags:
        """Read the labels; raise ValueError at the first that marks no span."""
        parts_of: list[tuple[str, str]] = []
        for label in classes.tolist():
            if (parts := tag_and_type(label)) is None:
                raise ValueError(
                    f"the label {label!r} marks no span: labels are 'O', 'B-TYPE', 'I-TYPE', "
                    "'E-TYPE' or 'S-TYPE'"
                )
            parts_of.append(parts)
        types = sorted({kind for tag, kind in parts_of if tag != OUTSIDE})
        numbers = [-1 if tag == OUTSIDE else types.index(kind) for tag, kind in parts_of]
        return cls(classes, types, np.array(numbers, np.int64), continuing(classes.tolist()))

    def by_type(self, weights: Array64) -> Array64:
        """Return (types,) sums of (K,) weights of labels."""
        inside, n_types = self.type_of >= 0, len(self.types)
        return np.bincount(self.type_of[inside], weights[inside], n_types).astype(np.float64)


def probable_spans(
    problem: Problem,
    tags: SpanTags,
    codes: IntArray | None,
    least: float | None,
    n_jobs: int | None = None,
) -> list[list[Span]]:
    """Return per chain the spans of the labelling ``codes`` (rows,), or all of ``least`` or more.

    O(K^(n+1)) for every position of a walk; walks end where less than ``least`` continues.
    """
    chains: list[list[Span]] = [[] for _ in range(problem.batch.n_instances)]
    for piece in _with_edges(problem):
        sums = summed(piece.problem, "each", None, n_jobs=n_jobs)
        assert sums.edge is not None
        for number, instance in enumerate(piece.instances):
            rows = piece.batch.slice_of(number)
            walks = _Walks(sums.node[rows], sums.edge[rows], piece.problem.order, tags)
            if codes is None:
                assert least is not None
                chains[instance] = sorted(walks.all(least))
            else:
                labels = tags.classes[codes[piece.rows[rows]]]
                chains[instance] = [walks.span(*span) for span in sorted(spans(labels))]
    return chains


def _with_edges(problem: Problem) -> list[Piece]:
    """Return float64 pieces in which every chain of two positions or more has edges.

    Chains without any, or too short for theirs, get a table of zeros, of order 1.
    """
    scores = problem.scores
    none = np.zeros((scores.n_labels,) * 2)
    named = {name: getattr(scores, name) for name in ("node", "edge", "start", "end", "pairs")}
    wide: dict[str, Any] = {
        name: None if table is None else table.astype(np.float64) for name, table in named.items()
    }
    if scores.edge is None:
        wide["edge"], order_one = none, Chain(1)
        problem = replace(problem, structure=order_one, sharing="shared")
    elif problem.order > 1 and scores.pairs is None:
        wide["pairs"] = none
    problem = replace(problem, scores=Scores(**wide))
    batch = problem.batch
    everything = np.arange(batch.n_instances), np.arange(batch.n_rows)
    return problem.pieces() or [Piece(batch, *everything, problem, is_short=False)]


class _Walks:
    """Walks along the labels of one chain: ``node`` (N, K) and ``edge`` (N, K, ..., K) marginals.

    At position t the state is over the last min(n, t + 1) labels, y_t last.
    """

    def __init__(self, node: FloatArray, edge: FloatArray, order: int, tags: SpanTags) -> None:
        self.node, self.edge, self.order, self.tags = node, edge, order, tags

    def span(self, first: int, last: int, kind: str) -> Span:
        """Return one span by its ends, both inclusive, with its probability."""
        number, probability = self.tags.types.index(kind), 0.0
        for t, ends, _ in self._walk(first):
            if t == last:
                probability = float(ends[number])
                break
        return Span(first, last + 1, kind, probability)

    def all(self, least: float) -> Iterator[Span]:
        """Return all spans that are as probable as ``least``."""
        for first in range(len(self.node)):
            for t, ends, on in self._walk(first):
                for number in np.flatnonzero(ends >= least):
                    yield Span(first, t + 1, self.tags.types[number], float(ends[number]))
                if not (on >= least).any():  # spans that end later are no more probable
                    break

    def _walk(self, first: int) -> Iterator[tuple[int, Array64, Array64]]:
        """Yield (t, P(span from ``first`` to t), P(it continues beyond t)), by type, t >= first."""
        goes_on, state = self.tags.goes_on, self._begun(first)
        for t in range(first, len(self.node)):
            if t + 1 == len(self.node):
                ends = self.tags.by_type(_over(state, -1))
                yield t, ends, np.zeros_like(ends)
                return
            step = state[..., None] * self._next(t + 1)
            on = np.where(goes_on, step, 0.0)
            ends = self.tags.by_type(_over(step - on, -2))
            yield t, ends, self.tags.by_type(_over(on, -2))
            state = self._forget(on)

    def _begun(self, t: int) -> Array64:
        """Return the state at t if a span begins there."""
        joint = np.where(self.tags.type_of >= 0, self._joint(t), 0.0)
        if t:
            joint = np.where(self.tags.goes_on, 0.0, joint)
        return self._forget(joint)

    def _forget(self, joint: Array64) -> Array64:
        """Sum out what no later label depends on."""
        return np.asarray(joint.sum(axis=0)) if joint.ndim > self.order else joint

    def _joint(self, t: int) -> Array64:
        """Return P of the labels up to y_t that the edge at t joins, or of all if fewer."""
        if len(self.node) == 1:
            return np.asarray(self.node[0], np.float64)
        if t >= self.order:
            return np.asarray(self.edge[t], np.float64)
        later: Sequence[int] = range(t + 1, self.order + 1)
        return np.asarray(self.edge[self.order].sum(axis=tuple(later)), np.float64)

    def _next(self, t: int) -> Array64:
        """Return P(y_t | the state at t - 1); 0 after impossible states."""
        joint = self._joint(t)
        before = joint.sum(axis=-1, keepdims=True)
        return np.asarray(np.divide(joint, before, out=np.zeros_like(joint), where=before > 0))


def _over(values: Array64, axis: int) -> Array64:
    """Return (K,) sums over all other axes."""
    kept = np.moveaxis(values, axis, -1)
    return np.asarray(kept.reshape(-1, kept.shape[-1]).sum(axis=0))
