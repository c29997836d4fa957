"""Some documents of a query, drawn anew each time it is visited (Volkovs et al. 2011, section 6).

Sums over orders are exact for few documents only.  So a visit of a query with more than ``size``
documents draws ``size`` of them, at least one of every relevance level that the query has: the
first of each level in a random order, then the first of those left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.errors import BadInstance
from crfx.scores import IntArray

Array64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Documents drawn: subset k has ``rows[offsets[k]:offsets[k + 1]]``, of query ``query[k]``.

    ``first`` is the number of the first of them among those that all workers have drawn.
    """

    rows: IntArray
    offsets: IntArray
    query: IntArray
    first: int = 0

    def take(self, subsets: IntArray) -> Drawn:
        """Return some of the subsets, in the order given."""
        counts = self.offsets[subsets + 1] - self.offsets[subsets]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[subsets] - offsets[:-1], counts)
        return Drawn(self.rows[at], offsets, self.query[subsets])


class Subsets:
    """Draws of the queries of a batch, which have a relevance (documents,) each.

    ``learnable`` are the queries that an order can be learned from: those with two levels of
    relevance or more.  The others say nothing of orders.
    """

    def __init__(self, batch: Batch, relevance: Array64, size: int) -> None:
        self.size = size
        query = batch.instance_of_row
        # Rows by query, those of one level beside each other: so a level is a range.
        self._rows = np.lexsort((relevance, query))
        sorted_query, sorted_relevance = query[self._rows], relevance[self._rows]
        new_level = np.ones(batch.n_rows, bool)
        new_level[1:] = (np.diff(sorted_query) != 0) | (np.diff(sorted_relevance) != 0)
        self._level = np.cumsum(new_level) - 1
        self._offsets = batch.offsets
        n_levels = np.bincount(sorted_query[new_level], minlength=batch.n_instances)
        self.learnable = np.flatnonzero(n_levels > 1)
        lengths = batch.lengths
        crowded = self.learnable[
            (n_levels[self.learnable] > size) & (lengths[self.learnable] > size)
        ]
        if crowded.size:
            first = int(crowded[0])
            reason = (
                f"it has {n_levels[first]} relevance levels, more than subset_size, {size}: a "
                "subset has a document of every level, so make it larger"
            )
            raise BadInstance(first, reason, unit="query")

    def lengths(self, queries: IntArray) -> IntArray:
        """Return how many documents some queries have."""
        return self._offsets[queries + 1] - self._offsets[queries]

    def draw(self, queries: IntArray, random: np.random.Generator, first: int = 0) -> Drawn:
        """Draw a subset of each of the queries, which may occur more than once.  O(n log n).

        A number is taken from ``random`` for every document of each, in their order.  The subsets
        are number ``first`` and on.
        """
        lengths = self.lengths(queries)
        ends = np.cumsum(lengths)
        visit = np.repeat(np.arange(first, first + len(queries)), lengths)
        at = np.arange(len(visit)) + np.repeat(self._offsets[queries] - (ends - lengths), lengths)
        key = random.random(len(visit))
        level = self._level[at]
        begins = np.flatnonzero(
            np.concatenate([[True], (np.diff(level) != 0) | (np.diff(visit) != 0)])[: len(visit)]
        )
        least = np.minimum.reduceat(key, begins) if len(begins) else key
        widths = np.diff(np.append(begins, len(visit)))
        is_first = key == np.repeat(least, widths)
        # Firsts of levels come first.  How far keys are rounded here depends on the number of the
        # visit: with that among all, draws are the same however queries are shared out.
        order = np.argsort(2 * visit + ~is_first + key)
        kept = np.arange(len(visit)) - np.repeat(ends - lengths, lengths) < self.size
        offsets = np.concatenate([[0], np.cumsum(np.minimum(lengths, self.size))])
        return Drawn(self._rows[at[order[kept]]], offsets, queries, first)
