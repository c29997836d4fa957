"""A linear model on a few instances at a time: the weights they touch, and their loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from crfx.estimators.linear_assembly import parameter_blocks
from crfx.estimators.quick_steps import quick_steps
from crfx.features import take_rows
from crfx.model import Model
from crfx.objectives.base import Objective
from crfx.objectives.truth import Truth
from crfx.potentials.linear import as_numbers
from crfx.scores import FloatArray, IntArray
from crfx.trainers.parametric import ParametricObjective
from crfx.trainers.sgd import AveragedParameters, Steps


@dataclass(eq=False)
class MiniBatches:
    """Instances in; the positions of the weights they touch, and their loss at those, out.

    ``loss`` (truth) -> objective; ``free`` as in `parameter_blocks`; ``base`` are scores below
    those of the model, of all rows.
    """

    model: Model
    truth: Truth
    loss: Callable[[Truth], Objective]
    free: dict[str, npt.NDArray[np.bool_]] | None = None
    base: dict[str, FloatArray] | None = None

    def __post_init__(self) -> None:
        self._X = as_numbers(self.truth.batch.X)
        self._quick = None
        if self.base is None:
            loss = self.loss(self.truth)
            self._quick = quick_steps(self.model, self.truth, loss, self.free, self._X)

    def take_steps(self, steps: Steps, parameters: AveragedParameters) -> None:
        """In the core where it can, else one mini-batch after the other."""
        if self._quick is not None:
            self._quick(steps, parameters)
        else:
            steps.take(parameters, self)

    def __call__(self, instances: IntArray) -> tuple[IntArray, ParametricObjective]:
        """Cut the instances out."""
        truth, rows = self.truth.take(instances)
        batch = replace(truth.batch, X=take_rows(self._X, rows))
        blocks, at = parameter_blocks(self.model, batch, self.free, touched=True)
        objective = ParametricObjective(
            self.loss(truth),
            blocks,
            batch,
            truth.structure,
            self.model.sharing,
            0.0,
            self._base(rows),
        )
        return at, objective

    def _base(self, rows: IntArray) -> dict[str, FloatArray] | None:
        if self.base is None:
            return None
        by_row = {"node", "edge"} if self.model.sharing == "each" else {"node"}
        return {
            name: scores[rows] if name in by_row else scores for name, scores in self.base.items()
        }
