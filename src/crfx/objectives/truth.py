"""The truth that an objective compares with: labels, some of them unknown, and weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.scores import IntArray
from crfx.structures import Chain, Forest

UNKNOWN = -1
Array64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Truth:
    """Label codes (rows,), ``UNKNOWN`` where not known, and a weight per instance or None for 1."""

    batch: Batch
    structure: Chain | Forest
    labels: IntArray
    weights: Array64 | None = None

    @cached_property
    def row_weights(self) -> npt.NDArray[np.float32] | None:
        """(rows, 1) the weight of each row's instance; None for 1."""
        if self.weights is None:
            return None
        return np.repeat(self.weights, self.batch.lengths).astype(np.float32)[:, None]

    @cached_property
    def instance_weights(self) -> Array64:
        """(instances,) the weights, ones included."""
        return np.ones(self.batch.n_instances) if self.weights is None else self.weights

    @cached_property
    def is_partial(self) -> npt.NDArray[np.bool_]:
        """(instances,) whether some label is unknown."""
        rows = np.flatnonzero(self.labels == UNKNOWN)
        partial = np.zeros(self.batch.n_instances, dtype=bool)
        partial[self.batch.instance_of_row[rows]] = True
        return partial

    @cached_property
    def known_rows(self) -> IntArray:
        """Rows of the instances whose labels are all known."""
        return np.flatnonzero(~np.repeat(self.is_partial, self.batch.lengths))

    @cached_property
    def edges(self) -> tuple[IntArray, tuple[IntArray, ...]]:
        """Rows where an edge of a fully known instance ends, and the labels along it."""
        rows, before = self.structure.edge_rows(self.batch), self.structure.contexts(self.batch)
        if self.is_partial.any():
            keep = ~np.repeat(self.is_partial, self.batch.lengths)[rows]
            rows, before = rows[keep], before[keep]
        return rows, (*self.labels[before].T, self.labels[rows])

    @cached_property
    def partial(self) -> Part | None:
        """The instances with unknown labels, as a batch of their own; None where there are none."""
        chosen = np.flatnonzero(self.is_partial)
        return Part.of(self.batch, chosen) if len(chosen) else None


@dataclass(frozen=True, eq=False)
class Part:
    """Some instances of a batch as a batch; ``rows`` are theirs in the whole."""

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
        )
        return cls(batch, instances, rows)
