"""What looks on while rounds are added: its own count of rounds, early stopping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crfx.model import Model
from crfx.trainers.blocks import Block
from crfx.trainers.callbacks import EarlyStopping, History

if TYPE_CHECKING:
    from crfx.estimators.boosted import BoostedEstimator


SAME_NUMBER = 1e-4
"""How close, relatively, a metric measured again comes to what it was."""


def forget_other_sets(history: History, n_rounds: int, value: float) -> None:
    """Drop the numbers of an earlier run if they are of another eval_set, or another metric.

    They are if the last is not the ``value`` that the model has now.
    """
    entries = history.get("eval_metric", [])[:n_rounds]
    if len(entries) == n_rounds and np.isnan(entries[-1]):
        return  # not watched in the end; such numbers are not compared with
    if entries and not np.isclose(entries[-1], value, rtol=SAME_NUMBER):
        del history["eval_metric"]


def is_same(entries: Sequence[float], n_rounds: int, value: float) -> bool:
    """Whether an earlier run has a number of every round, and of the same instances: the last is
    the ``value`` that the model has now.
    """
    if len(entries) != n_rounds or np.isnan(entries).any():
        return False
    return bool(np.isclose(entries[-1], value, rtol=SAME_NUMBER))


@dataclass(eq=False)
class CountRounds:
    """Keeps the estimator's own count up to date, so that it can be saved between rounds."""

    estimator: BoostedEstimator

    def __call__(self, progress: Any) -> None:
        """Count."""
        self.estimator.n_rounds_ = progress.n_rounds
        self.estimator.best_iteration_ = progress.n_rounds - 1
        self.estimator._count_down()


@dataclass(eq=False)
class RestoreBest:
    """Early stopping that can give back the best round."""

    stopping: EarlyStopping
    blocks: Sequence[Block]
    is_over: bool = False

    def __call__(self, progress: Any) -> bool:
        """Compare with the best so far; let blocks note a new best."""
        self._see(progress.history[self.stopping.name][-1], progress.n_rounds)
        return self.is_over

    def _see(self, value: float, n_rounds: int) -> None:
        self.is_over = self.stopping.see(value, n_rounds)
        if self.stopping.best_round == n_rounds:
            for block in self.blocks:
                block.mark(n_rounds)

    def go_on(self, history: History, model: Model, n_rounds: int, value: float) -> None:
        """Take over after ``n_rounds`` rounds of an earlier run, which may have been enough.

        As if there had been one run, where that run watched the same metric of the same instances
        (`forget_other_sets` comes before) and its best round can be restored.  Else the model as it
        is, of that ``value``, is the best so far.
        """
        entries = history.get(self.stopping.name, [])[:n_rounds]
        if len(entries) == n_rounds and not np.isnan(entries).any() and model.can_be_cut:
            for number, entry in enumerate(entries):
                self.is_over = self.stopping.see(entry, number + 1)
        else:
            self.stopping.best_round = n_rounds
            self._see(value, n_rounds)
