"""Forests: every node but the roots has an edge from its parent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfx.batch import Batch
from crfx.scores import IntArray
from crfx.structures.base import Structure

NO_LAST_POSITION = (
    "end scores are for chains: a forest has no last position (it has many leaves); "
    "drop `end`, or add the scores to the nodes you mean"
)


@dataclass(frozen=True)
class Forest(Structure):
    """Trees by parent index, in any order; an instance may have many roots.

    Edge tables are of order 1: ``edge[y_parent, y_node]``.
    """

    @property
    def n_label_axes(self) -> int:
        """Number of label axes of an edge table: parent and node."""
        return 2

    def check(self, batch: Batch) -> None:
        """Raise if a parent is out of range, the node itself, or on a cycle.  O(rows log rows)."""
        parents = self._parents(batch)
        lengths = np.repeat(batch.lengths, batch.lengths)
        for row in np.flatnonzero((parents < -1) | (parents >= lengths))[:1]:
            raise batch.bad_row(
                row,
                f"parent {parents[row]} is out of range; parents count within the instance, 0 to "
                f"{lengths[row] - 1}, and -1 marks a root",
            )
        for row in np.flatnonzero(parents == batch.positions)[:1]:
            raise batch.bad_row(row, "the node is its own parent; use -1 to mark a root")
        top, _ = self._climb(batch)
        for row in top[parents[top] != -1][:1]:
            raise batch.bad_row(
                row,
                "the node is its own ancestor (a cycle of parents); some node on the cycle must be "
                "a root, with parent -1",
            )

    def root_rows(self, batch: Batch) -> IntArray:
        """Return the rows whose parent is -1."""
        return np.flatnonzero(self._parents(batch) == -1)

    def last_rows(self, batch: Batch) -> IntArray:
        """Raise ValueError: only chains have a last position."""
        raise ValueError(NO_LAST_POSITION)

    def edge_rows(self, batch: Batch) -> IntArray:
        """Return the rows that have a parent."""
        return np.flatnonzero(self._parents(batch) != -1)

    def contexts(self, batch: Batch) -> IntArray:
        """Return (edge rows, 1): the row of each edge row's parent."""
        return self._absolute_parents(batch)[self.edge_rows(batch)][:, None]

    def tree_of(self, batch: Batch) -> IntArray:
        """Return (rows,) the root row above each row (a root's is its own).  O(rows log rows)."""
        return self._climb(batch)[0]

    def visit_order(self, batch: Batch) -> IntArray:
        """Return the rows by (instance, depth, position): parents first.  O(rows log rows)."""
        _, depth = self._climb(batch)
        return np.lexsort((depth, batch.instance_of_row))

    def _parents(self, batch: Batch) -> IntArray:
        if batch.parents is None:
            raise ValueError(
                "a forest needs parents, one per row, -1 at roots; use Chain() for a batch without"
            )
        return batch.parents

    def _absolute_parents(self, batch: Batch) -> IntArray:
        """Return (rows,) the parent's row; a root is its own parent, so that walks stay there."""
        parents = self._parents(batch)
        first = np.repeat(batch.offsets[:-1], batch.lengths)
        return np.where(parents == -1, np.arange(batch.n_rows), first + parents)

    def _climb(self, batch: Batch) -> tuple[IntArray, IntArray]:
        """Walk up from all rows at once, doubling the stride; return rows reached, steps taken.

        The stride ends at or above the length of the longest instance, so a walk that has not
        reached a root by then is on a cycle.
        """
        reached = self._absolute_parents(batch)
        steps = (reached != np.arange(batch.n_rows)).astype(np.int64)
        for _ in range(int(batch.lengths.max(initial=0)).bit_length()):
            steps = steps + steps[reached]
            reached = reached[reached]
        return reached, steps
