"""A model on a few instances at a time: the parameters they touch, and their loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.estimators.model_parameters import parameter_blocks
from crfx.features.matrix import take_rows
from crfx.model.model import Model
from crfx.objectives.base import Objective
from crfx.objectives.truth import Truth
from crfx.potentials.numbers import as_numbers
from crfx.scores import FloatArray, IntArray
from crfx.trainers.parametric import ParametricObjective
from crfx.trainers.sgd import Steps


@dataclass(frozen=True)
class Dropout:
    """Leaves out a share of the features of every row, others in every step; the rest is larger."""

    share: float
    seed: int

    def __call__(self, X: Any, step: int) -> Any:
        """(rows, features), dense or CSR."""
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

    ``loss`` (truth) -> objective; ``free`` as in `parameter_blocks`; ``base`` are scores below
    those of the model, of all rows.  ``quick`` takes steps in the core, where it can.
    """

    model: Model
    truth: Truth
    loss: Callable[[Truth], Objective]
    free: dict[str, npt.NDArray[np.bool_]] | None = None
    base: dict[str, FloatArray] | None = None
    quick: Callable[[Steps, Any], None] | None = None
    dropout: Dropout | None = None

    def __post_init__(self) -> None:
        self._X = as_numbers(self.truth.batch.X)

    @property
    def ends(self) -> None:
        """All instances are one group, see `crfx.trainers.sgd.Descent`."""

    def leading(self, n_instances: int) -> MiniBatches:
        """Those of the first instances, so many at least: all of them."""
        return self

    def take_steps(self, steps: Steps, parameters: Any) -> None:
        """In the core where it can, else one mini-batch after the other."""
        if self.quick is not None:
            self.quick(steps, parameters)
        else:
            steps.take(parameters, self)

    def __call__(
        self, instances: IntArray, step: int | None = None
    ) -> tuple[IntArray, ParametricObjective]:
        """Cut the instances out; in a step, some of their features."""
        truth, rows = self.truth.take(instances)
        X = take_rows(self._X, rows)
        if step is not None and self.dropout is not None:
            X = self.dropout(X, step)
        batch = replace(truth.batch, X=X)
        blocks, at = parameter_blocks(self.model, batch, self.free, touched=True)
        objective = ParametricObjective(
            self.loss(truth),
            blocks,
            batch,
            truth.structure,
            self.model.sharing,
            0.0,
            base_of(self.base, self.model, rows),
        )
        return at, objective


def base_of(
    base: dict[str, FloatArray] | None, model: Model, rows: IntArray
) -> dict[str, FloatArray] | None:
    """The scores below those of a model, of some rows."""
    if base is None:
        return None
    by_row = {"node", "edge"} if model.sharing == "each" else {"node"}
    return {name: scores[rows] if name in by_row else scores for name, scores in base.items()}
