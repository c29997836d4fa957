"""Conditional herding: every sweep votes on the labels (Gelfand et al. 2010)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.estimators.model_parameters import copied, get_weights, set_weights
from crfx.inference.problem import Problem
from crfx.model.model import Model
from crfx.scores import IntArray


def grown(values: npt.NDArray[Any], origin: IntArray) -> npt.NDArray[Any]:
    """Parameters in another order, ``origin`` being where they were; 0 where it is -1."""
    return np.where(origin >= 0, values[origin], values.dtype.type(0))


@dataclass(eq=False)
class Votes:
    """The parameters at the end of each sweep, flat."""

    sweeps: list[npt.NDArray[np.float32]] = field(default_factory=list)

    def grown(self, origin: IntArray) -> Votes:
        """With more parameters, 0 so far."""
        return Votes([grown(values, origin) for values in self.sweeps])

    def shares(
        self, model: Model, batch: Batch, decode: Callable[[Problem], npt.NDArray[Any]]
    ) -> npt.NDArray[np.float32]:
        """(rows, labels): how many of the sweeps hold a label best; where none has voted, what the
        parameters of the model do.
        """
        votes = np.zeros((batch.n_rows, model.n_labels), np.float32)
        rows, own = np.arange(batch.n_rows), copied(model)
        voters: list[npt.NDArray[Any]] = [*self.sweeps] or [get_weights(model)]
        for values in voters:
            set_weights(own, values)
            votes[rows, decode(own.problem(batch))] += 1
        return votes / np.float32(len(voters))
