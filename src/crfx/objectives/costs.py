"""Task losses with data: what labels cost at every position of a batch, or whole labellings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.objectives.task_loss import PositionLoss, TaskLoss, WholeLoss
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import Array64, FloatArray, IntArray
from crfx.threads import thread_count

MOST_REMEMBERED = 1_000_000
"""Losses of whole labellings in the cache."""


@dataclass(frozen=True, eq=False)
class PositionCosts:
    """A loss that is a sum over positions, with the truth of a batch."""

    truth: Truth
    table: Array64
    """(K, K) costs[true, predicted]."""
    normalize: bool = False
    _by_row: dict[Any, FloatArray] = field(default_factory=dict, init=False, repr=False)

    @property
    def scale(self) -> Array64:
        """(instances,) the mean cost of mistakes that cost anything."""
        positive = self.table[self.table > 0]
        lengths = self.truth.batch.lengths
        cost = float(positive.mean()) if positive.size else 1.0
        return cost / np.maximum(lengths, 1) if self.normalize else np.full(len(lengths), cost)

    def added_to(
        self, node: FloatArray, weight: float, out: FloatArray, n_jobs: int | None = None
    ) -> FloatArray:
        """Write node scores (rows, K) plus ``weight`` times the cost of each label to ``out``."""
        table = np.ascontiguousarray(weight * self.table, node.dtype)
        factor = None if self._share is None else self._share.astype(node.dtype)
        _core.add_table_rows(node, table, self._which, factor, out, thread_count(n_jobs))
        return out

    @cached_property
    def _which(self) -> npt.NDArray[np.int32]:
        return np.ascontiguousarray(self.truth.labels, np.int32)

    @cached_property
    def _share(self) -> Array64 | None:
        """(rows,) 1 / length of the row's instance if losses are normalised, else None."""
        lengths = self.truth.batch.lengths
        return 1.0 / np.repeat(lengths, lengths) if self.normalize else None

    def kept_by_row(self, dtype: npt.DTypeLike) -> FloatArray:
        """Return `by_row` from a cache: a read-only array."""
        if dtype not in self._by_row:
            self._by_row[dtype] = self.by_row(dtype)
        return self._by_row[dtype]

    def by_row(self, dtype: npt.DTypeLike = np.float64) -> FloatArray:
        """Return (rows, K) what each label costs there; 0 where the truth is unknown."""
        padded = np.concatenate([self.table, np.zeros((1, self.table.shape[1]))])
        costs = padded.astype(dtype)[self.truth.labels]  # UNKNOWN is the last
        if self._share is not None:
            costs *= self._share[:, None].astype(dtype)
        return costs


@dataclass(frozen=True, eq=False)
class WholeLosses:
    """A loss of whole labellings, with the truth of a batch and the labels behind codes."""

    truth: Truth
    loss: WholeLoss
    _known: dict[tuple[int, bytes], float] = field(default_factory=dict, init=False, repr=False)

    def of_instance(self, instance: int, candidates: IntArray) -> Array64:
        """Return (candidates,) the losses of (candidates, length) label codes, from a cache."""
        keys = [(instance, codes.tobytes()) for codes in candidates]
        if len(self._known) > MOST_REMEMBERED:
            self._known.clear()
        new = [k for k, key in enumerate(keys) if key not in self._known]
        if new:
            losses = self._losses(instance, candidates[new])
            self._known.update(
                (keys[k], loss) for k, loss in zip(new, losses.tolist(), strict=True)
            )
        return np.array([self._known[key] for key in keys])

    def _losses(self, instance: int, candidates: IntArray) -> Array64:
        classes = self.truth.classes
        assert classes is not None
        true = self.truth.labels[self.truth.batch.slice_of(instance)]
        known = true != UNKNOWN
        labels = classes[candidates]
        if known.all():
            return self.loss.losses(classes[true], list(labels))
        # Unknown labels count as predicted: they cost nothing.
        filled = np.where(known, classes[np.where(known, true, 0)], labels)
        pairs = zip(filled, labels, strict=True)
        return np.array([self.loss.losses(true, [predicted])[0] for true, predicted in pairs])


def bind(task_loss: TaskLoss, truth: Truth) -> PositionCosts | WholeLosses:
    """Return the loss with the truth of a batch, which must know its ``classes``."""
    if truth.classes is None:
        raise ValueError("the truth has no classes: a task loss must know what labels are called")
    if isinstance(task_loss, PositionLoss):
        return PositionCosts(truth, task_loss.costs(truth.classes), task_loss.normalize)
    return WholeLosses(truth, task_loss)


def bind_position_costs(task_loss: TaskLoss, truth: Truth, objective: str) -> PositionCosts:
    """Return a loss that is a sum over positions with the truth; raise ValueError for others."""
    costs = bind(task_loss, truth)
    if not isinstance(costs, PositionCosts):
        raise ValueError(
            f'objective "{objective}" needs a task_loss that is a sum over positions: "hamming" '
            'or a CostMatrix; losses of whole labellings are for "expected_loss" and "kl"'
        )
    return costs
