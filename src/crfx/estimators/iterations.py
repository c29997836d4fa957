"""What looks on while weights are trained: history, callbacks, early stopping, progress."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from crfx.estimators.evaluation import Evaluator
from crfx.estimators.model_parameters import get_weights, set_weights
from crfx.estimators.watching import is_same
from crfx.objectives.base import Objective
from crfx.trainers.callbacks import Callback, EarlyStopping, Progress, any_stops
from crfx.trainers.communicator import current
from crfx.trainers.progress import ProgressBar
from crfx.trainers.shared_evaluation import notes_of_all

if TYPE_CHECKING:
    from crfx.estimators.parametric import ParametricEstimator


class WatchIterations:
    """Looks on after every iteration: history, callbacks, early stopping, progress."""

    def __init__(
        self, crf: ParametricEstimator, evaluator: Evaluator | None, callbacks: list[Callback]
    ) -> None:
        self.crf, self.evaluator = crf, evaluator
        self.best: npt.NDArray[Any] | None = None
        self.objective: Objective | None = None
        """What is lowered, whose notes are recorded."""
        self.is_over = False
        """Whether an earlier run was stopped early, and only its end was missing."""
        self._stopping = None
        if crf.early_stopping_rounds is not None and evaluator is not None:
            self._stopping = EarlyStopping(
                crf.early_stopping_rounds, larger_is_better=evaluator.larger_is_better
            )
            if crf.n_iter_:
                self._go_on(self._stopping, self._metric(evaluator))
        shows = crf.verbose and current().rank == 0
        self._bar = ProgressBar(crf.n_iter_ + crf._rounds_here) if shows else None
        self._callbacks = [*callbacks, *([] if self._bar is None else [self._bar])]
        self._begin = time.perf_counter()

    def _go_on(self, stopping: EarlyStopping, value: float) -> None:
        """Take over from an earlier run, as if there had been one, where it was cut off and watched
        the same instances; else what there is now, of that ``value``, is the best so far.
        """
        crf = self.crf
        entries = crf.history_.get("eval_metric", [])
        best = None if crf._taken_up is None else crf._taken_up.best
        if best is None or not is_same(entries, crf.n_iter_, value):
            stopping.see(value, crf.n_iter_)
            self.best = get_weights(crf.model_)
            return
        for number, entry in enumerate(entries):
            self.is_over = stopping.see(entry, number + 1)
        self.best, crf.best_iteration_ = best, stopping.best_round - 1

    def __call__(self, weights: npt.NDArray[Any], value: float) -> bool:
        """Note an iteration; whether to stop."""
        crf = self.crf
        set_weights(crf.model_, weights)
        record = {"objective": value, "seconds": time.perf_counter() - self._begin}
        if self.evaluator is not None:
            record["eval_metric"] = self._metric(self.evaluator)
        record |= notes_of_all(current(), self.objective)
        # Together, and after all that takes time: who interrupts finds counts that agree.
        crf.n_iter_ += 1
        for name, entry in record.items():
            crf.history_.setdefault(name, []).append(entry)
        crf.best_iteration_ = crf.n_iter_ - 1
        crf._count_down()
        progress = Progress(crf.n_iter_, crf.history_, crf.save)
        # First, so that what is saved knows of the best.
        stops = self._stopping is not None and self._stopping(progress)
        if self._stopping is not None and self._stopping.best_round == crf.n_iter_:
            self.best = weights
        stops = any_stops(self._callbacks, progress) or stops
        if self._stopping is not None:
            crf.best_iteration_ = self._stopping.best_round - 1
        self._begin = time.perf_counter()
        return stops

    def _metric(self, evaluator: Evaluator) -> float:
        crf = self.crf
        model = crf._decoding_model if evaluator.larger_is_better else crf.model_
        return evaluator.value(model.problem(evaluator.data.batch))

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.close()
