"""Mini-batches of instances whose features stay on disk: one shard is in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crfx.estimators.mini_batches import MiniBatches, base_of
from crfx.features.matrix import is_on_disk
from crfx.model.model import Model
from crfx.objectives.truth import Truth
from crfx.scores import FloatArray, IntArray
from crfx.trainers.sgd import Steps

Base = dict[str, FloatArray] | None
Make = Callable[[Truth, Base], MiniBatches]
"""Mini-batches of instances that are in memory, and of the scores below those of the model."""


def mini_batches_of(truth: Truth, base: Base, model: Model, make: Make) -> Any:
    """What ``make`` gives, shard by shard where features stay on disk."""
    if is_on_disk(truth.batch.X):
        return ShardedMiniBatches(truth, base, model, make)
    return make(truth, base)


class ShardedMiniBatches:
    """As `MiniBatches`, for steps whose instances are all of one shard, which is read for them."""

    def __init__(self, truth: Truth, base: Base, model: Model, make: Make) -> None:
        self._truth, self._base, self._model, self._make = truth, base, model, make
        self.ends: IntArray = truth.batch.chunk_ends()
        self._read: tuple[int, MiniBatches] | None = None

    def take_steps(self, steps: Steps, parameters: Any) -> None:
        """Read the shard of the instances, and step."""
        number = int(np.searchsorted(self.ends, steps.order[0], side="right")) - 1
        own = replace(steps, order=steps.order - self.ends[number])
        if self._read is None or self._read[0] != number:
            self._read = None  # which makes room for the next
            self._read = number, self._of([number])
        self._read[1].take_steps(own, parameters)

    def release(self) -> None:
        """Keep no shard in memory: a sweep, which may come back to the last one, has ended."""
        self._read = None

    def leading(self, n_instances: int) -> MiniBatches:
        """Those of the first shards, which have so many instances or are all."""
        return self._of(leading_shards(np.diff(self.ends), n_instances))

    def _of(self, numbers: Sequence[int]) -> MiniBatches:
        truth, rows = loaded(self._truth, numbers)
        return self._make(truth, base_of(self._base, self._model, rows))


def leading_shards(sizes: Sequence[int] | IntArray, least: int) -> range:
    """As many of the first shards as have ``least`` together, or all."""
    enough = int(np.searchsorted(np.cumsum(sizes), least)) + 1
    return range(min(enough, len(sizes)))


def loaded(truth: Truth, numbers: Sequence[int]) -> tuple[Truth, IntArray]:
    """The instances of some shards that follow each other, their features read; their rows."""
    X = truth.batch.X
    assert is_on_disk(X)
    ends = truth.batch.chunk_ends()
    part, rows = truth.take(np.arange(ends[numbers[0]], ends[numbers[-1] + 1]))
    return replace(part, batch=replace(part.batch, X=X.joined(numbers))), rows
