"""What all structures have in common: the parts of a batch, and the score of a labelling."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.scores import IntArray, Scores, table_index


class Structure(ABC):
    """The parts of a batch; call `check` once before the other methods."""

    __slots__ = ()

    @property
    @abstractmethod
    def n_label_axes(self) -> int:
        """Number of label axes of an edge table, ``order + 1``."""

    @abstractmethod
    def check(self, batch: Batch) -> None:
        """Raise ValueError, with instance and position, if the batch does not fit."""

    @abstractmethod
    def root_rows(self, batch: Batch) -> IntArray:
        """Return the rows at which a walk over the structure starts, in row order."""

    @abstractmethod
    def last_rows(self, batch: Batch) -> IntArray:
        """Return the rows that carry the ``end`` scores."""

    @abstractmethod
    def edge_rows(self, batch: Batch) -> IntArray:
        """Return the rows at which an edge ends, in row order."""

    @abstractmethod
    def contexts(self, batch: Batch) -> IntArray:
        """Return (edge rows, order): the rows whose labels come before, oldest first."""

    @abstractmethod
    def tree_of(self, batch: Batch) -> IntArray:
        """Return (rows,) the root row of the connected part that each row belongs to."""

    @abstractmethod
    def visit_order(self, batch: Batch) -> IntArray:
        """Return all rows, instance by instance, each after the rows its edge comes from."""

    def unary(self, batch: Batch, scores: Scores) -> npt.NDArray[np.float64]:
        """Return (rows, K) node scores with ``start`` and ``end`` added where they apply."""
        total = scores.node.astype(np.float64)
        if scores.start is not None:
            total[self.root_rows(batch)] += scores.start
        if scores.end is not None:
            total[self.last_rows(batch)] += scores.end
        return total

    def score(self, batch: Batch, scores: Scores, labels: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return (instances,) the total score of the labelling ``labels`` (rows,).

        O(rows * K) for the copy of the node scores, in float64 whatever the scores' dtype.
        """
        if scores.n_rows != batch.n_rows:
            raise ValueError(f"node has {scores.n_rows} rows but the batch has {batch.n_rows}")
        codes = batch.check_labels(labels, scores.n_labels)
        per_row = self.unary(batch, scores)[np.arange(batch.n_rows), codes]
        sharing = scores.sharing(self.n_label_axes - 1, typed=batch.edge_types is not None)
        if scores.edge is not None:
            rows = self.edge_rows(batch)
            label_index = (*codes[self.contexts(batch)].T, codes[rows])
            per_row[rows] += scores.edge[
                (*table_index(sharing, rows, batch.edge_types), *label_index)
            ]
        totals = np.bincount(batch.instance_of_row, weights=per_row, minlength=batch.n_instances)
        return totals.astype(np.float64)
