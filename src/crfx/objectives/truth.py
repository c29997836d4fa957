"""The truth that an objective compares with: labels, some of them unknown, and weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.inference.problem import Part
from crfx.scores import Array64, FloatArray, IntArray, Sharing, table_index, weighted_sum
from crfx.structures import Chain, Forest

UNKNOWN = -1
ScoreName = Literal["node", "edge", "start", "end"]
SCORE_NAMES: tuple[ScoreName, ...] = ("node", "edge", "start", "end")


class Target(Protocol):
    """What the scores should favour: one labelling of each instance, or a mixture of many."""

    def score(self, name: ScoreName, scores: FloatArray, sharing: Sharing) -> float:
        """Return its score, times the weights of instances."""
        ...

    def subtract_from(self, name: ScoreName, expected: FloatArray, sharing: Sharing) -> None:
        """Subtract its counts from expected counts, in place: the gradient."""
        ...


@dataclass(frozen=True, eq=False)
class Truth:
    """Label codes (rows,), ``UNKNOWN`` where not known, and a weight per instance or None for 1.

    ``classes`` (K,) are the labels behind the codes, for task losses.  ``class_weights`` (K,) are
    weights of the labels, or None for 1; `crfx.objectives.by_parts` explains them.
    """

    batch: Batch
    structure: Chain | Forest
    labels: IntArray
    weights: Array64 | None = None
    classes: npt.NDArray[Any] | None = None
    class_weights: Array64 | None = None
    _counts: dict[Any, tuple[IntArray, Array64 | None]] = field(
        default_factory=dict, init=False, repr=False
    )
    _end_rows: dict[ScoreName, IntArray] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def row_weights(self) -> Array64 | None:
        """(rows,) the weight of each row's instance; None for 1."""
        return None if self.weights is None else np.repeat(self.weights, self.batch.lengths)

    @cached_property
    def position_weights(self) -> Array64 | None:
        """(rows,) the weight of each row's instance times that of its label; None for 1.

        A row whose label is unknown has the weight of the heaviest label of its instance.
        """
        if self.class_weights is None:
            return self.row_weights
        known, owner = self.labels != UNKNOWN, self.batch.instance_of_row
        of_labels = np.where(known, self.class_weights[self.labels], 0.0)
        heaviest = np.zeros(self.batch.n_instances)
        np.maximum.at(heaviest, owner, of_labels)
        of_labels = np.where(known, of_labels, heaviest[owner])
        return of_labels if self.weights is None else of_labels * self.weights[owner]

    @cached_property
    def edge_row_weights(self) -> Array64 | None:
        """(rows,) the largest weight of the positions that the edge which ends there joins."""
        weights = self.position_weights
        if weights is None or self.class_weights is None:
            return weights
        rows, heaviest = self.structure.edge_rows(self.batch), weights.copy()
        before = weights[self.structure.contexts(self.batch)].max(axis=1, initial=0.0)
        heaviest[rows] = np.maximum(heaviest[rows], before)
        return heaviest

    @property
    def taught_labels(self) -> IntArray:
        """Label codes, ``UNKNOWN`` also where the weight is 0, so that nothing is learned."""
        weights = self.position_weights
        return self.labels if weights is None else np.where(weights > 0, self.labels, UNKNOWN)

    def by_instance(self) -> Truth:
        """Return the truth with the mean weight of its positions per instance, none of labels."""
        if self.class_weights is None:
            return self
        weights, owner = self.position_weights, self.batch.instance_of_row
        totals = np.bincount(owner, weights, self.batch.n_instances).astype(np.float64)
        means = totals / np.maximum(self.batch.lengths, 1)
        return replace(self, weights=means, class_weights=None)

    def check_no_class_weights(self, objective: str) -> None:
        """Raise ValueError if labels have weights, for objectives that do not support them."""
        if self.class_weights is not None:
            raise ValueError(
                f"objective {objective} has no weights of labels: leave out class_weight"
            )

    @cached_property
    def is_partial(self) -> npt.NDArray[np.bool_]:
        """(instances,) whether some label is unknown."""
        rows = np.flatnonzero(self.labels == UNKNOWN)
        partial = np.zeros(self.batch.n_instances, dtype=bool)
        partial[self.batch.instance_of_row[rows]] = True
        return partial

    def check_all_known(self, objective: str) -> None:
        """Raise ValueError at the first label that is unknown."""
        unknown = np.flatnonzero(self.labels == UNKNOWN)
        if unknown.size:
            raise self.batch.bad_row(
                unknown[0], f'objective "{objective}" needs every label, and this one is unknown'
            )

    def score(self, name: ScoreName, scores: FloatArray, sharing: Sharing) -> float:
        """Return the score of the truth, times the weights of instances."""
        cells, counts = self._counted(name, scores.shape, sharing)
        return float(weighted_sum(counts, scores.reshape(-1).take(cells)))

    def subtract_from(self, name: ScoreName, expected: FloatArray, sharing: Sharing) -> None:
        """Subtract the counts of the truth from expected counts, in place: the gradient."""
        cells, counts = self._counted(name, expected.shape, sharing)
        expected.reshape(-1)[cells] -= 1 if counts is None else counts.astype(expected.dtype)

    def _counted(
        self, name: ScoreName, shape: tuple[int, ...], sharing: Sharing
    ) -> tuple[IntArray, Array64 | None]:
        """Return the cells of scores that fully labelled instances use, each once, and how often.

        Counts are times the weights of instances, None where all are 1.  Cached for every shape:
        training asks several times a round.
        """
        key = (name, shape, sharing)
        if key not in self._counts:
            known = ~self.is_partial[self.batch.instance_of_row]
            at = self.batch, self.structure, self.labels
            rows, cells = used_cells(*at, *key, known)
            counts = None if self.row_weights is None else self.row_weights[rows]
            if name in ("start", "end") or (name == "edge" and sharing != "each"):
                cells, place = np.unique(cells, return_inverse=True)
                counts = np.bincount(place, counts, minlength=len(cells)).astype(np.float64)
            is_one = counts is None or bool((counts == 1.0).all())
            self._counts[key] = cells, None if is_one else counts
        return self._counts[key]

    def end_rows(self, name: Literal["start", "end"]) -> IntArray:
        """Return the rows that start, or end, scores belong to; cached."""
        if name not in self._end_rows:
            self._end_rows[name] = self.rows_with(name, self.batch)
        return self._end_rows[name]

    def rows_with(self, name: ScoreName, batch: Batch) -> IntArray:
        """Return the rows of a batch that scores of a name belong to; edges end there."""
        return rows_with(name, batch, self.structure)

    def edge_weights(self, shape: tuple[int, ...]) -> FloatArray:
        """Return (rows, K, ..., K): the weight of each row's instance, 0 where no edge ends.

        A read-only view of one number per row.
        """
        rows = self.rows_with("edge", self.batch)
        weights, by_row = np.zeros(self.batch.n_rows, np.float32), self.edge_row_weights
        weights[rows] = 1.0 if by_row is None else by_row[rows]
        return np.broadcast_to(weights.reshape((-1,) + (1,) * (len(shape) - 1)), shape)

    def take(self, instances: IntArray) -> tuple[Truth, IntArray]:
        """Return the truth of some instances, in the order given, and their rows in the whole."""
        part = Part.of(self.batch, instances)
        weights = None if self.weights is None else self.weights[instances]
        labels = self.labels[part.rows]
        kept = self.classes, self.class_weights
        return Truth(part.batch, self.structure, labels, weights, *kept), part.rows

    @cached_property
    def partial(self) -> Part | None:
        """The instances with unknown labels, as a batch; None if there are none."""
        chosen = np.flatnonzero(self.is_partial)
        return Part.of(self.batch, chosen) if len(chosen) else None


def used_cells(
    batch: Batch,
    structure: Chain | Forest,
    labels: IntArray,
    name: ScoreName,
    shape: tuple[int, ...],
    sharing: Sharing,
    among: npt.NDArray[np.bool_] | None = None,
) -> tuple[IntArray, IntArray]:
    """Return the rows that scores of a name apply to, and the cell that a labelling uses at each.

    ``labels`` (rows,); cells are flat indices into scores of a shape.  ``among`` (rows,) selects
    rows; None: all.
    """
    rows = rows_with(name, batch, structure)
    kept = slice(None) if among is None else among[rows]
    rows = rows[kept]
    index: tuple[IntArray, ...] = (labels[rows],)
    if name == "node":
        index = (rows, *index)
    elif name == "edge":
        before = labels[structure.contexts(batch)[kept]]
        index = (*table_index(sharing, rows, batch.edge_types), *before.T, *index)
    return rows, np.ravel_multi_index(index, shape)


def rows_with(name: ScoreName, batch: Batch, structure: Chain | Forest) -> IntArray:
    """Return the rows that scores of a name belong to; edges to those where they end."""
    if name == "node":
        return np.arange(batch.n_rows)
    methods = {
        "edge": structure.edge_rows,
        "start": structure.root_rows,
        "end": structure.last_rows,
    }
    return methods[name](batch)
