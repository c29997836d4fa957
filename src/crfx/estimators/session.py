"""A session: one call of ``fit``, from reading callbacks to the last round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from crfx.estimators.base import Estimator, counter_of, rounds_done
from crfx.inputs.training_set import Start
from crfx.trainers.base import Trainer
from crfx.trainers.callbacks import Callback
from crfx.trainers.monitor import Metric, Monitor
from crfx.trainers.progress import ProgressBar
from crfx.workers import current


@contextmanager
def as_before_unless(learned: Callable[[], bool], estimator: Any) -> Iterator[None]:
    """Leave the estimator as if never called if fitting fails before anything is learned."""
    arguments = estimator.get_params(deep=False)
    before = {name: value for name, value in vars(estimator).items() if name not in arguments}
    try:
        yield
    except BaseException:
        if not learned():
            for name in [name for name in vars(estimator) if name not in arguments]:
                delattr(estimator, name)
            for name, value in before.items():
                setattr(estimator, name, value)
        raise


def start_of(estimator: Any) -> Start:
    """Return what is known of a fitted estimator that training starts from; None: nothing."""
    if estimator is None:
        return Start()
    return Start(estimator.model_, estimator.classes_, estimator.columns_)


def run_rounds(
    estimator: Estimator,
    trainer: Trainer,
    metric: Metric | None,
    callbacks: Sequence[Callback],
    *,
    can_restore: bool = True,
) -> int:
    """Run all rounds of a trainer and return to the best one; return its number.

    Counts, history and ``best_iteration_`` of the estimator follow every round, so that a callback
    can save it.  ``can_restore``: the best of the rounds that were there before can be restored.
    """
    counter, n_done = counter_of(estimator), rounds_done(estimator)
    monitor = Monitor(
        estimator.history_, metric, estimator.early_stopping_rounds, callbacks, estimator.save
    )
    if monitor.take_over(n_done, can_restore=can_restore):
        trainer.mark()
    if estimator.verbose and current().rank == 0:
        bar = ProgressBar(n_done + estimator._rounds_here)
        monitor.callbacks = [*callbacks, bar]
    else:
        bar = None
    try:
        with closing(trainer.rounds()) as rounds:
            for record in () if monitor.is_over else rounds:
                measured = monitor.measured(record)
                # Together, and after all that takes time: counts agree wherever it is interrupted.
                n_done += 1
                setattr(estimator, counter, n_done)
                estimator.best_iteration_ = n_done - 1
                estimator._count_down()
                stops = monitor.note(measured, n_done, trainer.mark)
                estimator.best_iteration_ = monitor.best_round(n_done) - 1
                if stops:
                    break
    finally:
        if bar is not None:
            bar.close()
    best = monitor.best_round(n_done)
    if monitor.stops_early:
        trainer.keep_best(best)
    estimator.best_iteration_ = max(best - 1, 0)
    return best
