"""Steps of sweeps over models with hidden units, taken by the compiled core.

`crfx.estimators.core_steps` says which it takes.  The others go through Python, one mini-batch
after the other, see `crfx.estimators.mini_batches`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import _core
from crfx.estimators.core_steps import Base, core_chains, core_steps
from crfx.estimators.mini_batches import Dropout
from crfx.model.model import Model
from crfx.objectives.base import Objective
from crfx.objectives.truth import Truth
from crfx.potentials.hidden_unit import HiddenUnitFunction
from crfx.potentials.numbers import compressed
from crfx.trainers.sgd import Steps

Array32 = npt.NDArray[np.float32]

STEPS_AT_ONCE = 1000
"""At the most; fewer where they are slow."""
PARAMETERS_AT_ONCE = 1 << 22
"""Averages are formed in float64, so many at a time."""


class HiddenParameters:
    """Parameters of a model with hidden units, and their average over sweeps, for the core.

    As `crfx.trainers.sgd.AveragedParameters`, but in float32, and caught up with by feature: there
    may be hundreds of millions of them.
    """

    def __init__(self, chains: Any, n_features: int, values: npt.NDArray[Any]) -> None:
        self.chains = chains
        self.values = values.astype(np.float32)
        self.sum = np.zeros(len(values))
        self._product_then = np.ones(n_features + 1)
        self._steps_then = np.zeros(n_features + 1)
        self._product, self._steps, self._n_counted = 1.0, 0.0, 0

    def run(self, chains: Any, asked: Any, **arguments: Any) -> None:
        """Let the core take steps over chains: it changes the arrays, and returns what is counted.

        (Any chains of the same shape will do to catch up.)
        """
        self._product, self._steps, self._n_counted = chains.run(
            asked, n_counted=self._n_counted, **self._arrays, **arguments
        )

    @property
    def _arrays(self) -> dict[str, Any]:
        return {
            "values": self.values,
            "sum": self.sum,
            "product_then": self._product_then,
            "steps_then": self._steps_then,
            "product": self._product,
            "steps": self._steps,
        }

    def average(self) -> Array32:
        """The mean over the sweeps that count; what they are now if none does."""
        self.chains.catch_up(**self._arrays)
        if not self._n_counted:
            return self.values.copy()
        found = np.empty_like(self.values)
        for begin in range(0, len(found), PARAMETERS_AT_ONCE):
            part = slice(begin, begin + PARAMETERS_AT_ONCE)
            found[part] = self.sum[part] / self._n_counted
        return found

    def state(self) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
        """What it takes to go on: numbers and arrays by name."""
        self.chains.catch_up(**self._arrays)
        numbers = {
            "product": self._product,
            "steps": self._steps,
            "n_counted": float(self._n_counted),
        }
        return numbers, {"values": self.values, "sum": self.sum}

    def restore(self, numbers: dict[str, float], arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Go on where `state` was taken."""
        self.values, self.sum = arrays["values"].astype(np.float32), arrays["sum"].copy()
        self._product, self._steps = numbers["product"], numbers["steps"]
        self._n_counted = int(numbers["n_counted"])
        self._product_then[:], self._steps_then[:] = self._product, self._steps


class HiddenSteps:
    """Takes the steps of sweeps over the chains of a batch in the core."""

    def __init__(
        self,
        model: Model,
        truth: Truth,
        loss: Objective,
        base: Base,
        rates: npt.NDArray[np.float64],
        dropout: Dropout,
        n_threads: int,
    ) -> None:
        node = model.node
        assert isinstance(node, HiddenUnitFunction)
        self._n_features = node.shape.n_features
        self._chains = _chains(model, node, truth, loss, base)
        self._n_threads = n_threads
        self._arguments = {"rates": rates, "dropout": dropout.share, "seed": dropout.seed}

    def begin(self, values: npt.NDArray[Any]) -> HiddenParameters:
        """Parameters to take steps with."""
        assert len(values) == self._chains.size
        return HiddenParameters(self._chains, self._n_features, values)

    def __call__(self, steps: Steps, parameters: HiddenParameters) -> None:
        """Take the steps of a sweep."""
        for part in steps.parts(STEPS_AT_ONCE):
            parameters.run(self._chains, core_steps(part, self._n_threads), **self._arguments)


def _chains(
    model: Model, node: HiddenUnitFunction, truth: Truth, loss: Objective, base: Base
) -> Any:
    X = node.checked(truth.batch.X)
    starts, indices, values = compressed(X) if sparse.issparse(X) else (None, None, None)
    return _core.HiddenSweeps(
        core_chains(model, truth, loss, base),
        None if sparse.issparse(X) else np.ascontiguousarray(X),
        starts,
        indices,
        values,
        n_features=node.shape.n_features,
        n_hidden=node.shape.n_hidden,
        activation=node.shape.activation,
        has_skip=node.shape.skip,
    )
