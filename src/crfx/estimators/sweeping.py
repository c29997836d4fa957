"""The trainers that sweep over instances: how they descend, to the end or one sweep at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.base import drawn_seed
from crfx.estimators.mini_batches import MiniBatches
from crfx.estimators.model_parameters import get_weights, set_weights
from crfx.estimators.parameter_rounds import ParameterRounds, Steps
from crfx.potentials.numbers import as_numbers
from crfx.threads import thread_count
from crfx.trainers.averaging import Sweepers
from crfx.trainers.base import TrainingState
from crfx.trainers.lbfgs import warn_nothing_learned
from crfx.trainers.parametric import ParametricObjective
from crfx.trainers.sgd import (
    TRIAL_INSTANCES,
    AveragedParameters,
    Descent,
    sweeps_state,
    warn_of_small_features,
    with_good_step,
)

if TYPE_CHECKING:
    from crfx.estimators.labelling import LabellingEstimator
    from crfx.estimators.linear import LinearCRF
    from crfx.inputs.training_set import TrainingSet

Array64 = npt.NDArray[np.float64]

SWEEPS_TO_HALF = 10.0
"""After so many sweeps the steps of SGD have half their size."""
LEAST_PROGRESS = 1e-3
"""Descent that lowers the objective by a smaller share has learned nothing."""


def seeks_step(crf: LinearCRF) -> bool:
    """Whether the first step is to be found by trials."""
    return crf.step is None and crf.trainer == "sgd"


def descent_of(crf: LinearCRF, n_instances: int, share: float = 1.0) -> Descent:
    """How the trainers that sweep over the instances descend, a ``share`` of all."""
    is_sgd = crf.trainer == "sgd"
    batch_size = crf.batch_size or (8 if is_sgd else 1)
    burn_in = crf.burn_in
    if burn_in is None:
        burn_in = crf.sweeps // 2 if is_sgd else 0
    return Descent(
        n_instances=n_instances,
        batch_size=batch_size,
        step=1.0 if crf.step is None else crf.step,
        period=SWEEPS_TO_HALF * n_instances / batch_size if is_sgd else None,
        l2=crf._penalty * share,
        burn_in=burn_in,
        seed=drawn_seed(crf.random_state),
    )


def sweep_to_the_end(
    crf: LinearCRF, whole: ParametricObjective, parts: Any, trainer: ParameterRounds
) -> Steps:
    """Yield the averaged weights after every epoch of ``fit`` over mini-batches."""
    start, taken_up = get_weights(crf.model_), crf._taken_up
    parameters = AveragedParameters(start)
    velocity = None if taken_up is None else taken_up.velocity
    workers = Sweepers.who_have(whole.batch.n_instances, velocity)
    descent = descent_of(crf, whole.batch.n_instances, workers.share)
    descent = replace(descent, ends=parts.ends)
    if taken_up is not None:
        parameters.restore(taken_up.numbers, taken_up.arrays)
    if seeks_step(crf):
        step = None if taken_up is None else taken_up.numbers["step"]
        if step is None:
            trying = descent
            step = workers.told(lambda: _found_step(crf, trying, parts, start))
        descent = replace(descent, step=step)
    value = before = whole.value(start)
    first = 0 if taken_up is None else taken_up.n_done
    for number in range(first, first + crf._rounds_here):
        workers.sweep(descent, number, parameters, parts)
        weights = parameters.average()
        value = whole.value(weights)
        crf._live = _live(crf, number + 1, parameters, descent.step, workers, trainer)
        try:
            yield weights, value
        except GeneratorExit:  # stopped early, perhaps without having learned anything
            break
    hardly = before - value < LEAST_PROGRESS * abs(before)
    if seeks_step(crf) and crf.sweeps and not whole.base and hardly and not start.any():
        warn_nothing_learned()
    return parameters.average()


def _live(
    crf: LinearCRF,
    n_done: int,
    parameters: AveragedParameters,
    step: float,
    workers: Sweepers,
    trainer: ParameterRounds,
) -> Callable[[], TrainingState]:
    """Where sweeps stand, for who asks while they last."""

    def live() -> TrainingState:
        state = sweeps_state(crf.trainer, n_done, parameters, step, workers.velocity)
        return state.with_best(trainer.best)

    return live


def _found_step(crf: LinearCRF, descent: Descent, parts: Any, start: Array64) -> float:
    """The first step, by trials; of shards on the first ones alone."""
    some: MiniBatches = parts.leading(TRIAL_INSTANCES)
    batch = some.truth.batch
    if crf.edges is not None:
        warn_of_small_features(as_numbers(batch.X))
    l2 = descent.l2 * (batch.n_instances / descent.n_instances)
    trial = replace(descent, n_instances=batch.n_instances, l2=l2, ends=None)
    return with_good_step(trial, some, start).step


@dataclass(frozen=True, eq=False)
class SoFar:
    """What one call of `partial_fit` leaves to the next: parameters, and first steps by trainer."""

    parameters: AveragedParameters = field(default_factory=lambda: AveragedParameters(np.zeros(0)))
    found: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, crf: LinearCRF) -> SoFar:
        """Where `partial_fit` goes on; after ``fit`` or ``load`` the weights are all there is."""
        found: SoFar | None = getattr(crf, "_so_far", None)
        return found or cls(AveragedParameters(get_weights(crf.model_)))


def sweep_once(crf: LinearCRF, given: TrainingSet, start: LabellingEstimator | None) -> None:
    """One call of ``partial_fit``; ``start`` is the estimator itself where it is fitted."""
    begin = time.perf_counter()
    model, origin = crf._grown(given, start)
    model.mask = given.mask
    before = SoFar() if start is None else SoFar.of(crf)
    parameters = before.parameters.grown(origin)
    model.use_threads(thread_count(crf.n_jobs))
    set_weights(model, parameters.values)
    parts = crf._mini_batches(model, given)
    n_done = 0 if start is None else crf.n_iter_
    workers = Sweepers.who_have(given.batch.n_instances)
    descent = descent_of(crf, given.batch.n_instances, workers.share)
    descent = replace(descent, ends=parts.ends)
    found = before.found.get(crf.trainer)
    if seeks_step(crf):
        if found is None:
            trying = descent
            found = workers.told(lambda: _found_step(crf, trying, parts, parameters.values))
        descent = replace(descent, step=found)
    workers.sweep(descent, n_done, parameters, parts)
    weights = parameters.average()
    value = crf._objective(model, given).value(weights)
    set_weights(model, weights)
    crf.classes_, crf.columns_, crf.model_ = given.classes, given.columns, model
    steps = before.found if found is None else {**before.found, crf.trainer: found}
    crf._so_far, crf._state, crf._to_go = SoFar(parameters, steps), None, None
    crf.n_iter_, crf.best_iteration_ = n_done + 1, n_done
    if start is None:
        crf.history_ = {}
    for name, entry in (("objective", value), ("seconds", time.perf_counter() - begin)):
        crf.history_.setdefault(name, []).append(entry)
