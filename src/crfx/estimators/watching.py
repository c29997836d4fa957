"""What looks on while an estimator is trained: counts, history, early stopping, progress."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.evaluation import Evaluator
from crfx.estimators.linear_assembly import set_weights
from crfx.model import Model
from crfx.trainers.blocks import Block
from crfx.trainers.callbacks import Callback, EarlyStopping, History, Progress, any_stops
from crfx.trainers.progress import ProgressBar

if TYPE_CHECKING:
    from crfx.estimators.gbcrf import GBCRF
    from crfx.estimators.linear import LinearCRF

Array64 = npt.NDArray[np.float64]


@dataclass(eq=False)
class CountRounds:
    """Keeps the estimator's own count up to date, so that it can be saved between rounds."""

    estimator: GBCRF

    def __call__(self, progress: Any) -> None:
        """Count."""
        self.estimator.n_rounds_ = progress.n_rounds
        self.estimator.best_iteration_ = progress.n_rounds - 1


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

        As if there had been one run, where that run watched the same metric and its best round can
        be restored.  Else the model as it is, of that ``value``, is the best so far.
        """
        entries = history.get(self.stopping.name, [])[:n_rounds]
        if len(entries) == n_rounds and not np.isnan(entries).any() and model.can_be_cut:
            for number, entry in enumerate(entries):
                self.is_over = self.stopping.see(entry, number + 1)
        else:
            self.stopping.best_round = n_rounds
            self._see(value, n_rounds)


class WatchIterations:
    """Looks on after every iteration: history, callbacks, early stopping, progress."""

    def __init__(
        self, crf: LinearCRF, evaluator: Evaluator | None, callbacks: list[Callback]
    ) -> None:
        self.crf, self.evaluator = crf, evaluator
        self.best: Array64 | None = None
        self._stopping = None
        if crf.early_stopping_rounds is not None and evaluator is not None:
            self._stopping = EarlyStopping(
                crf.early_stopping_rounds, larger_is_better=evaluator.larger_is_better
            )
        self._bar = (
            ProgressBar(crf.max_iter if crf.trainer == "lbfgs" else crf.sweeps)
            if crf.verbose
            else None
        )
        self._callbacks = [*callbacks, *([] if self._bar is None else [self._bar])]
        self._begin = time.perf_counter()

    def __call__(self, weights: Array64, value: float) -> bool:
        """Note an iteration; whether to stop."""
        crf = self.crf
        set_weights(crf.model_, weights)
        crf.n_iter_ += 1
        record = {"objective": value, "seconds": time.perf_counter() - self._begin}
        if self.evaluator is not None:
            record["eval_metric"] = self.evaluator.value(
                crf.model_.problem(self.evaluator.data.batch)
            )
        for name, entry in record.items():
            crf.history_.setdefault(name, []).append(entry)
        crf.best_iteration_ = crf.n_iter_ - 1
        progress = Progress(crf.n_iter_, crf.history_, crf.save)
        stops = any_stops(self._callbacks, progress)
        if self._stopping is not None:
            stops = self._stopping(progress) or stops
            crf.best_iteration_ = self._stopping.best_round - 1
            if self._stopping.best_round == crf.n_iter_:
                self.best = weights
        self._begin = time.perf_counter()
        return stops

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.close()
