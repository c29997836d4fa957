"""Chains: each position after the first ``order`` ones has an edge from the labels before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfx.batch import Batch
from crfx.scores import IntArray
from crfx.structures.base import Structure

MOST_ORDER = 32
"""Most labels before a label: arrays have 64 axes, and two labels then need 2^33 scores."""


@dataclass(frozen=True)
class Chain(Structure):
    """A chain of order ``n``: tables over ``n + 1`` neighbouring labels, from position n on.

    Positions 0 to n - 1 carry node scores only.
    """

    order: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.order, bool) or not isinstance(self.order, (int, np.integer)):
            raise ValueError(f"order must be a whole number, got {self.order!r}")
        if self.order < 1:
            raise ValueError(
                f"order must be 1 or more, got {self.order}: leave out edge scores to make "
                "positions independent"
            )
        if self.order > MOST_ORDER:
            raise ValueError(f"order is {self.order}: it must be at most {MOST_ORDER}")

    @property
    def n_label_axes(self) -> int:
        """Number of label axes of an edge table, ``order + 1``."""
        return self.order + 1

    def check(self, batch: Batch) -> None:
        """Raise ValueError if the batch has parents: it is a forest."""
        if batch.parents is not None:
            raise ValueError("the batch has parents, so it is a forest: use Forest() for it")

    def root_rows(self, batch: Batch) -> IntArray:
        """Return the first row of every instance that has one."""
        return batch.offsets[:-1][batch.lengths > 0]

    def last_rows(self, batch: Batch) -> IntArray:
        """Return the last row of every instance that has one."""
        return batch.offsets[1:][batch.lengths > 0] - 1

    def edge_rows(self, batch: Batch) -> IntArray:
        """Return the rows at position ``order`` or later."""
        return np.flatnonzero(batch.positions >= self.order)

    def contexts(self, batch: Batch) -> IntArray:
        """Return (edge rows, order): the ``order`` rows before each edge row, oldest first."""
        return self.edge_rows(batch)[:, None] + np.arange(-self.order, 0)

    def tree_of(self, batch: Batch) -> IntArray:
        """Return (rows,) the first row of each row's instance."""
        return np.repeat(batch.offsets[:-1], batch.lengths)

    def visit_order(self, batch: Batch) -> IntArray:
        """Return the rows in their order."""
        return np.arange(batch.n_rows)
