"""Rounds of a trainer that changes the parameters of a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any, TypeAlias

import numpy.typing as npt

from crfx.estimators.model_parameters import get_weights, set_weights
from crfx.model.model import Model
from crfx.objectives.base import Objective
from crfx.trainers.base import Rounds
from crfx.trainers.shared_evaluation import notes_of_all
from crfx.workers import current

Steps: TypeAlias = Generator[tuple[npt.NDArray[Any], float], None, npt.NDArray[Any]]
"""Yields parameters and objective after each iteration or epoch; returns the last parameters."""


class ParameterRounds:
    """The trainer of parameters: ``make_steps`` (this trainer) -> its steps.

    ``best`` are the best parameters of an earlier run that is resumed.
    """

    def __init__(
        self,
        model: Model,
        make_steps: Callable[[ParameterRounds], Steps],
        best: npt.NDArray[Any] | None = None,
    ) -> None:
        self.model, self._make_steps, self.best = model, make_steps, best
        self.objective: Objective | None = None
        """What is lowered, if it notes more than its value."""
        self._last: npt.NDArray[Any] | None = None

    def rounds(self) -> Rounds:
        """Yield a record after each iteration or epoch; the model has its parameters."""
        begin = time.perf_counter()
        with closing(self._make_steps(self)) as steps:
            while True:
                try:
                    self._last, value = next(steps)
                except StopIteration as end:
                    set_weights(self.model, end.value)
                    return
                set_weights(self.model, self._last)
                record = {"objective": value, "seconds": time.perf_counter() - begin}
                yield record | notes_of_all(current(), self.objective)
                self._last = None  # these arrays are large: none is held beside the next
                begin = time.perf_counter()

    def mark(self) -> None:
        """Remember the parameters of the last round."""
        self.best = get_weights(self.model) if self._last is None else self._last

    def keep_best(self, n_done: int) -> None:
        """Return to the parameters that were remembered."""
        if self.best is not None:
            set_weights(self.model, self.best)
