"""Monitor: follow training round by round, and say when to stop."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from crfx.trainers.base import Record
from crfx.trainers.callbacks import Callback, EarlyStopping, History, Progress, any_stops

METRIC = "eval_metric"
SAME_NUMBER = 1e-4
"""Relative difference up to which two measurements of a metric count as one."""


class Metric(NamedTuple):
    """The metric of the eval_set: ``value()`` measures it for the model as it is now."""

    value: Callable[[], float]
    larger_is_better: bool


@dataclass(eq=False)
class Monitor:
    """Records every round in ``history``, and asks early stopping and callbacks, in this order.

    Every name in the history has one entry per round, NaN where nothing was measured.  Early
    stopping comes first, so that a callback that saves the model knows the best round.
    """

    history: History
    metric: Metric | None = None
    patience: int | None = None
    """``early_stopping_rounds``."""
    callbacks: Sequence[Callback] = ()
    save: Callable[[str | os.PathLike[str]], None] | None = None
    is_over: bool = field(default=False, init=False)
    """Whether an earlier run was stopped early, so that no round may follow."""
    _stopping: EarlyStopping | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.patience is not None and self.metric is not None:
            larger_is_better = self.metric.larger_is_better
            self._stopping = EarlyStopping(self.patience, larger_is_better=larger_is_better)

    def take_over(self, n_done: int, *, can_restore: bool) -> bool:
        """Take over after ``n_done`` rounds of an earlier run, as if there had been one run.

        If that run measured the same metric on the same instances, and its best round can be
        restored, its measurements are replayed.  Otherwise the model as it is now is the best so
        far: then this returns True, and the trainer should `mark` it.
        """
        entries = self.history.get(METRIC, [])[:n_done]
        if self.metric is None or not n_done or not (entries or self._stopping):
            return False
        value = self.metric.value()
        is_complete = len(entries) == n_done and not np.isnan(entries).any()
        is_same = bool(entries) and np.isclose(entries[-1], value, rtol=SAME_NUMBER)
        if entries and not is_same and not np.isnan(entries[-1]):
            del self.history[METRIC]  # of another eval_set, or another metric
        if self._stopping is None:
            return False
        if is_complete and is_same and can_restore:
            for number, entry in enumerate(entries):
                self.is_over = self._stopping.see(entry, number + 1)
            return False
        self._stopping.best_round = n_done
        self.is_over = self._stopping.see(value, n_done)
        return True

    def measured(self, record: Record) -> Record:
        """Return the record with the metric of the eval_set."""
        return record if self.metric is None else record | {METRIC: self.metric.value()}

    def record(self, record: Record, n_done: int) -> History:
        """Return the history with round ``n_done``: a new one, the old one stays as it is."""
        history = {}
        for name in {**self.history, **record}:
            entries = self.history.get(name, [])
            gap = [np.nan] * (n_done - 1 - len(entries))
            history[name] = [*entries, *gap, record.get(name, np.nan)]
        self.history = history
        return history

    def ask(self, n_done: int, mark: Callable[[], None]) -> bool:
        """Return whether to stop after round ``n_done``; ``mark`` it if it is the best so far."""
        stops = False
        if self._stopping is not None:
            stops = self._stopping.see(self.history[METRIC][-1], n_done)
            if self._stopping.best_round == n_done:
                mark()
        return any_stops(self.callbacks, Progress(n_done, self.history, self.save)) or stops

    @property
    def stops_early(self) -> bool:
        """Whether early stopping follows the training, so that its best round is kept."""
        return self._stopping is not None

    def best_round(self, n_done: int) -> int:
        """Return the round to keep: the best of early stopping, or the last."""
        return n_done if self._stopping is None else self._stopping.best_round
