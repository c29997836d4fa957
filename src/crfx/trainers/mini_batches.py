"""Mini-batches: some instances of a batch, and the loss at the weights that they touch.

Of features that stay on disk one shard is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from crfx.features.matrix import take_rows
from crfx.model.model import Model
from crfx.objectives.base import Objective
from crfx.objectives.truth import Truth
from crfx.potentials.numbers import as_numbers
from crfx.scores import IntArray
from crfx.trainers.core_steps import CoreSteps
from crfx.trainers.parametric import (
    Free,
    ParametricObjective,
    ScoreArrays,
    base_of,
    parameter_blocks,
)
from crfx.trainers.sgd import AveragedParameters, Descent, Steps


@dataclass(frozen=True)
class Dropout:
    """Leaves out a share of the features of every row, others in every step; the rest is larger."""

    share: float
    seed: int

    def __call__(self, X: Any, step: int) -> Any:
        """Return (rows, features), dense or CSR, with some features left out."""
        random = np.random.default_rng([self.seed, step])
        values = X.data if sparse.issparse(X) else X
        kept = random.random(values.shape, np.float32) >= self.share
        left = values * (kept / np.float32(1 - self.share))
        if not sparse.issparse(X):
            return left
        return sparse.csr_matrix((left, X.indices, X.indptr), shape=X.shape)


@dataclass(eq=False)
class MiniBatches:
    """Instances in; the positions of the weights they touch, and their loss at those, out.

    ``bind`` (truth) -> objective; ``free`` as in `parameter_blocks`; ``base`` are scores below
    those of the model, of all rows.  ``core`` takes steps in the core, where it can.
    """

    model: Model
    truth: Truth
    bind: Callable[[Truth], Objective]
    free: Free = None
    base: ScoreArrays | None = None
    core: CoreSteps | None = None
    dropout: Dropout | None = None

    def __post_init__(self) -> None:
        self.X = as_numbers(self.truth.batch.X)

    @property
    def ends(self) -> None:
        """All instances are one group, see `crfx.trainers.sgd.Descent`."""

    def leading(self, n_instances: int = 0, n_positions: int = 0) -> MiniBatches:
        """Return those of the first instances, so many at least: all of them."""
        return self

    def share_of(self, descent: Descent) -> Descent:
        """Return a descent over these instances alone, with their share of the penalty."""
        n_instances = self.truth.batch.n_instances
        l2 = descent.l2 * (n_instances / descent.n_instances)
        return replace(descent, n_instances=n_instances, l2=l2, ends=None)

    def take_steps(self, steps: Steps, parameters: AveragedParameters) -> None:
        """Take steps in the core where it can, else one mini-batch after the other."""
        if self.core is not None:
            self.core(steps, parameters)
        else:
            steps.take(parameters, self)

    def __call__(
        self, instances: IntArray, step: int | None = None
    ) -> tuple[IntArray, ParametricObjective]:
        """Return the parameters that some instances touch, and their loss at those."""
        truth, rows = self.truth.take(instances)
        X = take_rows(self.X, rows)
        if step is not None and self.dropout is not None:
            X = self.dropout(X, step)
        batch = replace(truth.batch, X=X)
        blocks, at = parameter_blocks(self.model, batch, self.free, touched=True)
        base = base_of(self.base, self.model, rows)
        loss, sharing = self.bind(truth), self.model.sharing
        return at, ParametricObjective(loss, blocks, batch, truth.structure, sharing, 0.0, base)


Make = Callable[[Truth, ScoreArrays | None], MiniBatches]
"""Mini-batches of instances that are in memory, and of the scores below those of the model."""


class ShardedMiniBatches:
    """`MiniBatches` for steps whose instances are all of one shard, which is read for them."""

    def __init__(self, truth: Truth, base: ScoreArrays | None, model: Model, make: Make) -> None:
        self._truth, self._base, self._model, self._make = truth, base, model, make
        self.ends: IntArray = truth.batch.chunk_ends()
        self._read: tuple[int, MiniBatches] | None = None

    def take_steps(self, steps: Steps, parameters: AveragedParameters) -> None:
        """Read the shard of the instances, and step."""
        number = int(np.searchsorted(self.ends, steps.order[0], side="right")) - 1
        within = replace(steps, order=steps.order - self.ends[number])
        if self._read is None or self._read[0] != number:
            self._read = None  # which makes room for the next
            self._read = number, self._of([number])
        self._read[1].take_steps(within, parameters)

    def release(self) -> None:
        """Keep no shard in memory: an epoch, which may come back to the last one, has ended."""
        self._read = None

    def leading(self, n_instances: int = 0, n_positions: int = 0) -> MiniBatches:
        """Return those of the first shards that have so many together, or of all."""
        offsets = self._truth.batch.offsets[self.ends]
        enough = (self.ends[1:] >= n_instances) & (offsets[1:] >= n_positions)
        n_shards = int(enough.argmax()) + 1 if enough.any() else len(enough)
        return self._of(range(n_shards))

    def _of(self, numbers: Sequence[int]) -> MiniBatches:
        """Read some shards that follow each other."""
        X: Any = self._truth.batch.X
        instances = np.arange(self.ends[numbers[0]], self.ends[numbers[-1] + 1])
        truth, rows = self._truth.take(instances)
        truth = replace(truth, batch=replace(truth.batch, X=X.joined(numbers)))
        return self._make(truth, base_of(self._base, self._model, rows))
