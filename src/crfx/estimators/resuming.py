"""Training that is taken up where it was cut off: what is left of it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

import numpy as np

from crfx.estimators.base import Estimator
from crfx.trainers.callbacks import Progress, any_stops, checked_callbacks

Kind = TypeVar("Kind", bound=Estimator)


def resumed(
    estimator: Kind,
    arguments: dict[str, Any],
    checkpoint: Kind | None,
    keep: Callable[[Progress], None],
) -> Kind:
    """Train an estimator with the arguments of ``fit``, to the end; return the one that is trained.

    ``checkpoint`` is what ``keep`` has saved of an earlier run of the same training, which ended
    before its time, or None: then it begins.  The model is the one of a run that was never cut off,
    to the bit, given the same ``arguments``; an ``init_model`` among them is where the *whole*
    training began, and is not looked at where there is a checkpoint.

    ``keep(progress)`` is called after every round, of several workers by the first, after the
    user's callbacks, which may have said that it was the last; ``progress.save(path)`` writes the
    next checkpoint.
    """
    if checkpoint is None:
        return _fitted(estimator, arguments, keep)
    if checkpoint._to_go is None:  # its training has ended
        return checkpoint
    if callable(estimator.eval_metric):  # which no file can hold
        checkpoint = copy(checkpoint).set_params(eval_metric=estimator.eval_metric)
    estimator._limit = checkpoint._to_go
    try:
        return _fitted(estimator, {**arguments, "init_model": checkpoint}, keep)
    finally:
        estimator._limit = None


def _fitted(estimator: Kind, arguments: dict[str, Any], keep: Callable[[Progress], None]) -> Kind:
    others = dict(arguments)
    callbacks = checked_callbacks(others.pop("callbacks", None))

    def after_round(progress: Progress) -> bool:
        stops = any_stops(callbacks, progress)
        if stops:
            estimator._to_go = 0
        keep(progress)
        return stops

    found: Kind = estimator.fit(**others, callbacks=[after_round])
    return found


def check_same_settings(estimator: Estimator, checkpoint: Estimator) -> None:
    """Raise ValueError where a training that was cut off had other arguments."""
    before = checkpoint.get_params(deep=False)
    for name, value in estimator.get_params(deep=False).items():
        if name in ("n_jobs", "verbose") or callable(value) or callable(before[name]):
            continue  # of functions files know nothing
        if not np.array_equal(before[name], value) and before[name] != value:
            raise ValueError(
                f"{name} is {value!r}, but the run that was interrupted had {before[name]!r}"
            )
