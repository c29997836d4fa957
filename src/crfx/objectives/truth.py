"""The truth that an objective compares with: labels, some of them unknown, and weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.scores import FloatArray, IntArray, Sharing, table_index, weighted_sum
from crfx.structures import Chain, Forest

UNKNOWN = -1
Array64 = npt.NDArray[np.float64]
ScoreName = Literal["node", "edge", "start", "end"]


@dataclass(frozen=True, eq=False)
class Uses:
    """Cells of a score array that the truth uses, each once, and how often, weights counted."""

    cells: IntArray
    counts: Array64

    @classmethod
    def counted(cls, cells: IntArray, weights: Array64 | None) -> Uses:
        """Count cells that occur many times, as those of shared tables do."""
        distinct, place = np.unique(cells, return_inverse=True)
        return cls(distinct, np.bincount(place, weights, minlength=len(distinct)).astype(float))

    @cached_property
    def _weights(self) -> Array64 | None:
        """The counts, or None if all of them are 1."""
        return None if (self.counts == 1.0).all() else self.counts

    def score(self, scores: FloatArray) -> float:
        """Return the score of the truth."""
        return float(weighted_sum(self._weights, scores.reshape(-1).take(self.cells)))

    def subtract_from(self, expected: FloatArray) -> None:
        """Subtract the counts of the truth from expected counts, in place: the gradient."""
        counts = 1 if self._weights is None else self.counts.astype(expected.dtype)
        expected.reshape(-1)[self.cells] -= counts


class Target(Protocol):
    """What the scores are to favour: one labelling of each instance, or a mixture of many."""

    def score(self, name: ScoreName, scores: FloatArray, sharing: Sharing) -> float:
        """What it scores, weights counted."""
        ...

    def subtract_from(self, name: ScoreName, expected: FloatArray, sharing: Sharing) -> None:
        """Expected counts minus its own, in place: the gradient."""
        ...


@dataclass(frozen=True, eq=False)
class Truth:
    """Label codes (rows,), ``UNKNOWN`` where not known, and a weight per instance or None for 1.

    ``classes`` (K,) are the labels behind the codes, for losses that ask.  ``class_weights`` (K,)
    are weights of the labels, or None for 1: what they mean, `crfx.objectives.class_weights` says.
    """

    batch: Batch
    structure: Chain | Forest
    labels: IntArray
    weights: Array64 | None = None
    classes: npt.NDArray[Any] | None = None
    class_weights: Array64 | None = None
    _uses: dict[tuple[ScoreName, tuple[int, ...], Sharing], Uses] = field(
        default_factory=dict, init=False, repr=False
    )

    @cached_property
    def row_weights(self) -> Array64 | None:
        """(rows,) the weight of each row's instance; None for 1."""
        if self.weights is None:
            return None
        return np.repeat(self.weights, self.batch.lengths)

    @cached_property
    def position_weights(self) -> Array64 | None:
        """(rows,) the weight of each row's instance times that of its label; None for 1.

        Of a row whose label is unknown, that of the heaviest label of its instance.
        """
        if self.class_weights is None:
            return None if self.weights is None else np.repeat(self.weights, self.batch.lengths)
        known, owner = self.labels != UNKNOWN, self.batch.instance_of_row
        own = np.where(known, self.class_weights[self.labels], 0.0)
        heaviest = np.zeros(self.batch.n_instances)
        np.maximum.at(heaviest, owner, own)
        own = np.where(known, own, heaviest[owner])
        return own if self.weights is None else own * self.weights[owner]

    @cached_property
    def edge_row_weights(self) -> Array64 | None:
        """(rows,) the largest weight of the positions that the edge which ends there joins."""
        weights = self.position_weights
        if weights is None or self.class_weights is None:
            return weights
        rows, found = self.structure.edge_rows(self.batch), weights.copy()
        before = weights[self.structure.contexts(self.batch)].max(axis=1, initial=0.0)
        found[rows] = np.maximum(found[rows], before)
        return found

    @property
    def taught_labels(self) -> IntArray:
        """Label codes, ``UNKNOWN`` also where nothing is learned from them: of weight 0."""
        weights = self.position_weights
        return self.labels if weights is None else np.where(weights > 0, self.labels, UNKNOWN)

    def by_instance(self) -> Truth:
        """The same where an instance has the mean weight of its positions, and labels have none."""
        if self.class_weights is None:
            return self
        weights, owner = self.position_weights, self.batch.instance_of_row
        totals = np.bincount(owner, weights, self.batch.n_instances).astype(np.float64)
        means = totals / np.maximum(self.batch.lengths, 1)
        return replace(self, weights=means, class_weights=None)

    def check_no_class_weights(self, objective: str) -> None:
        """Raise ValueError where labels have weights, for objectives that know none."""
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

    def uses(self, name: ScoreName, scores: FloatArray, sharing: Sharing) -> Uses:
        """What the truth uses of an array of scores; of fully labelled instances only.

        Found once for every shape: training asks several times a round.
        """
        key = (name, scores.shape, sharing)
        if key not in self._uses:
            self._uses[key] = self._find_uses(*key)
        return self._uses[key]

    def score(self, name: ScoreName, scores: FloatArray, sharing: Sharing) -> float:
        """What the truth scores, weights counted."""
        return self.uses(name, scores, sharing).score(scores)

    def subtract_from(self, name: ScoreName, expected: FloatArray, sharing: Sharing) -> None:
        """Expected counts minus those of the truth, in place: the gradient."""
        self.uses(name, expected, sharing).subtract_from(expected)

    def _find_uses(self, name: ScoreName, shape: tuple[int, ...], sharing: Sharing) -> Uses:
        batch, structure = self.batch, self.structure
        rows = self.rows_with(name, batch)
        known = ~self.is_partial[batch.instance_of_row[rows]]
        rows = rows[known]
        index: tuple[IntArray, ...] = (self.labels[rows],)
        if name == "node":
            index = (rows, *index)
        elif name == "edge":
            before = self.labels[structure.contexts(batch)[known]]
            index = (*table_index(sharing, rows, batch.edge_types), *before.T, *index)
        cells = np.ravel_multi_index(index, shape)
        weights = None
        if self.weights is not None:
            weights = self.weights[batch.instance_of_row[rows]]
        if name == "node" or (name == "edge" and sharing == "each"):
            return Uses(cells, np.ones(len(cells)) if weights is None else weights)
        return Uses.counted(cells, weights)

    def end_rows(self, name: Literal["start", "end"]) -> IntArray:
        """The rows that start, or end, scores belong to; found once."""
        return self._starts if name == "start" else self._ends

    @cached_property
    def _starts(self) -> IntArray:
        return self.rows_with("start", self.batch)

    @cached_property
    def _ends(self) -> IntArray:
        return self.rows_with("end", self.batch)

    def rows_with(self, name: ScoreName, batch: Batch) -> IntArray:
        """The rows of a batch that scores of that name belong to; edges to those where they end."""
        if name == "node":
            return np.arange(batch.n_rows)
        found = {
            "edge": self.structure.edge_rows,
            "start": self.structure.root_rows,
            "end": self.structure.last_rows,
        }
        return found[name](batch)

    def edge_weights(self, shape: tuple[int, ...]) -> FloatArray:
        """(rows, K, ..., K) of that shape: the weight of each row's instance, 0 where no edge ends.

        A view of one number per row: not to be written to.
        """
        rows = self.rows_with("edge", self.batch)
        weights, by_row = np.zeros(self.batch.n_rows, np.float32), self.edge_row_weights
        weights[rows] = 1.0 if by_row is None else by_row[rows]
        return np.broadcast_to(weights.reshape((-1,) + (1,) * (len(shape) - 1)), shape)

    def take(self, instances: IntArray) -> tuple[Truth, IntArray]:
        """The truth of some instances, in the order given, and their rows in the whole."""
        part = Part.of(self.batch, instances)
        weights = None if self.weights is None else self.weights[instances]
        labels = self.labels[part.rows]
        kept = self.classes, self.class_weights
        return Truth(part.batch, self.structure, labels, weights, *kept), part.rows

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
            allowed=None if whole.allowed is None else whole.allowed[rows],
        )
        return cls(batch, instances, rows)
