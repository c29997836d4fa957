"""Task losses tied to the truth of a batch: what labels cost at every position, or labellings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.objectives.task_loss import PositionLoss, TaskLoss, WholeLoss
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import FloatArray, IntArray
from crfx.threads import thread_count

Array64 = npt.NDArray[np.float64]

MOST_REMEMBERED = 1_000_000
"""Losses of whole labellings."""


@dataclass(frozen=True, eq=False)
class PositionCosts:
    """A loss that is a sum over positions, tied to the truth of a batch."""

    truth: Truth
    table: Array64
    """(K, K) costs[true, predicted]."""
    normalize: bool = False
    _made: dict[Any, FloatArray] = field(default_factory=dict, init=False, repr=False)

    @property
    def scale(self) -> Array64:
        """(instances,) what a mistake costs, on the average of those that cost anything."""
        some = self.table[self.table > 0]
        lengths = self.truth.batch.lengths
        cost = float(some.mean()) if some.size else 1.0
        return cost / np.maximum(lengths, 1) if self.normalize else np.full(len(lengths), cost)

    def added_to(
        self, node: FloatArray, weight: float, out: FloatArray, n_jobs: int | None = None
    ) -> FloatArray:
        """Node scores (rows, K) plus ``weight`` times what each label costs, in ``out``."""
        table = np.ascontiguousarray(weight * self.table, node.dtype)
        factor = None if self._share is None else self._share.astype(node.dtype)
        _core.add_table_rows(node, table, self._which, factor, out, thread_count(n_jobs))
        return out

    @cached_property
    def _which(self) -> npt.NDArray[np.int32]:
        return np.ascontiguousarray(self.truth.labels, np.int32)

    @cached_property
    def _share(self) -> Array64 | None:
        """(rows,) what a position is of its instance, where losses are shares; else None."""
        lengths = self.truth.batch.lengths
        return 1.0 / np.repeat(lengths, lengths) if self.normalize else None

    def kept_by_row(self, dtype: npt.DTypeLike) -> FloatArray:
        """As `by_row`, made once: not to be written to."""
        if dtype not in self._made:
            self._made[dtype] = self.by_row(dtype)
        return self._made[dtype]

    def by_row(self, dtype: npt.DTypeLike = np.float64) -> FloatArray:
        """(rows, K) what each label costs there; 0 where the truth is unknown."""
        padded = np.concatenate([self.table, np.zeros((1, self.table.shape[1]))])
        found = padded.astype(dtype)[self.truth.labels]  # UNKNOWN is the last
        if self._share is not None:
            found *= self._share[:, None].astype(dtype)
        return found


@dataclass(frozen=True, eq=False)
class WholeLosses:
    """A loss of whole labellings, tied to the truth of a batch and the labels behind codes."""

    truth: Truth
    loss: WholeLoss
    _known: dict[tuple[int, bytes], float] = field(default_factory=dict, init=False, repr=False)

    def of_instance(self, instance: int, candidates: IntArray) -> Array64:
        """(candidates,) losses of (candidates, length) label codes; each is found once."""
        keys = [(instance, own.tobytes()) for own in candidates]
        new = [k for k, key in enumerate(keys) if key not in self._known]
        if new:
            if len(self._known) > MOST_REMEMBERED:
                self._known.clear()
                new = list(range(len(keys)))
            found = self._losses(instance, candidates[new])
            self._known.update((keys[k], loss) for k, loss in zip(new, found.tolist(), strict=True))
        return np.array([self._known[key] for key in keys])

    def _losses(self, instance: int, candidates: IntArray) -> Array64:
        classes = self.truth.classes
        assert classes is not None
        true = self.truth.labels[self.truth.batch.slice_of(instance)]
        known = true != UNKNOWN
        labels = classes[candidates]
        if known.all():
            return self.loss.losses(classes[true], list(labels))
        # What is not known is as predicted: it costs nothing.
        filled = np.where(known, classes[np.where(known, true, 0)], labels)
        pairs = zip(filled, labels, strict=True)
        return np.array([self.loss.losses(own, [other])[0] for own, other in pairs])


def bound(task_loss: TaskLoss, truth: Truth) -> PositionCosts | WholeLosses:
    """Tie a loss to the truth of a batch, which must know its ``classes``."""
    if truth.classes is None:
        raise ValueError("the truth has no classes: a task loss must know what labels are called")
    if isinstance(task_loss, PositionLoss):
        return PositionCosts(truth, task_loss.costs(truth.classes), task_loss.normalize)
    return WholeLosses(truth, task_loss)
