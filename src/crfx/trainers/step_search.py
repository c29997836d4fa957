"""The size of the first step of an epoch trainer, found by trials on a part of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from crfx._core import InputError
from crfx.messages import warn
from crfx.scores import IntArray
from crfx.trainers.sgd import Array64, AveragedParameters, Descent, MiniBatch

TRIAL_INSTANCES = 500
"""The step of a linear model is sought on so many instances; on all where there are fewer."""
TRIAL_EPOCHS, LEAST_TRIAL_STEPS = 8, 100
"""Hidden units try a step for so many epochs at least, and so many steps; as in training,
parameters are averaged over the second half of them."""
SHARE_OF_BEST = 0.5
"""Many epochs of hidden units want smaller steps than the few of a trial."""
LARGEST_PARAMETER = 1e6
"""A trial of hidden units that goes beyond has diverged."""
SMALLEST_STEP, LARGEST_STEP = 1e-12, 1e12
"""Beyond them no better step is sought."""
TRIAL_STEPS = tuple(4.0**power for power in range(1, -7, -1))
SMALL_FEATURES = 0.05
SCALE = "scale the features to about -1 to 1"


def with_good_step(descent: Descent, mini_batch: MiniBatch, start: Array64) -> Descent:
    """Return the descent with the step whose epoch over a part of the instances ends lowest."""
    random = np.random.default_rng([descent.seed, TRIAL_INSTANCES])
    chosen = random.permutation(descent.n_instances)[:TRIAL_INSTANCES]

    def after_a_sweep(step: float) -> float:
        l2 = descent.l2 * len(chosen) / descent.n_instances
        trial = replace(descent, n_instances=len(chosen), step=step, l2=l2, burn_in=0)
        parameters = AveragedParameters(start)
        with np.errstate(over="ignore", invalid="ignore"):
            trial.sweep(0, parameters, mini_batch, chosen)
            at, loss = mini_batch(chosen, None)
            values = parameters.read(at)
            if not np.isfinite(values).all():
                return np.inf
            value = loss(values)[0] + l2 * float(values @ values)
            return value if np.isfinite(value) else np.inf

    return replace(descent, step=best_step(after_a_sweep))


def averaged_step(
    descent: Descent,
    mini_batch: MiniBatch,
    chosen: IntArray,
    begin: Callable[[], AveragedParameters],
    judge: Callable[[npt.NDArray[Any]], float],
) -> float:
    """Return a part of the step that is best after a few epochs over the ``chosen`` instances.

    ``begin`` gives the parameters to start from; ``judge`` gets those that a trial has reached, on
    average, and returns what is to be small.
    """
    n_steps = -(-len(chosen) // descent.batch_size)
    n_epochs = max(TRIAL_EPOCHS, -(-LEAST_TRIAL_STEPS // n_steps))
    descent = replace(
        descent,
        n_instances=len(chosen),
        period=None,
        l2=descent.l2 * (len(chosen) / descent.n_instances),
        burn_in=n_epochs // 2,
    )

    def trial(step: float) -> float:
        parameters = begin()
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                for number in range(n_epochs):
                    replace(descent, step=step).sweep(number, parameters, mini_batch, chosen)
            except InputError:  # scores that are not finite
                return np.inf
            values = parameters.average()
            if not -LARGEST_PARAMETER < values.min() <= values.max() < LARGEST_PARAMETER:
                return np.inf
        return judge(values)

    return SHARE_OF_BEST * best_step(trial)


def best_step(trial: Callable[[float], float]) -> float:
    """Return the step for which ``trial`` gives the least.

    All of ``TRIAL_STEPS`` are tried, smaller ones as long as the smallest is better than all
    others or none is finite, larger ones as long as the largest is better than all others, then
    the half and the double of the best.  Features of size s want steps of about 1 / s^2.
    """
    tried = {step: trial(step) for step in TRIAL_STEPS}

    def best() -> float:
        return min(tried, key=lambda step: (tried[step], step))

    def is_ahead() -> bool:
        ahead = sorted(tried.values())[:2]
        return ahead[0] < ahead[1]

    def none_is_finite() -> bool:
        return tried[best()] == np.inf

    while min(tried) > SMALLEST_STEP and best() == min(tried) and (is_ahead() or none_is_finite()):
        tried[min(tried) / 4] = trial(min(tried) / 4)
    while max(tried) < LARGEST_STEP and best() == max(tried) and is_ahead():
        tried[max(tried) * 4] = trial(max(tried) * 4)
    if none_is_finite():
        raise ValueError(f"no step leads to scores that are finite: {SCALE}, or pass a step")
    if max(tried) >= LARGEST_STEP and best() == max(tried):
        warn(f"even a step of {best():.0e} is too small: {SCALE}", ConvergenceWarning)
    for step in (best() / 2, best() * 2):
        tried[step] = trial(step)
    return best()


def warn_of_small_features(X: Any) -> None:
    """Warn if features are so small that a step for them suits no other parameter."""
    values = X.data if sparse.issparse(X) else X
    largest = float(np.abs(values).max(initial=0.0))
    if 0 < largest < SMALL_FEATURES:
        warn(
            f"no feature is larger than {largest:.2g}, and descent has one step for their weights "
            f"and for those of transitions: {SCALE}, or little is learned from them",
            ConvergenceWarning,
        )
