"""Sweeps of a HiddenUnitCRF over its instances, and the steps they take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crfx._core import InputError
from crfx.estimators.core_steps import can_take_steps
from crfx.estimators.hidden_steps import HiddenSteps
from crfx.estimators.mini_batches import Dropout, MiniBatches
from crfx.estimators.model_parameters import (
    base_scores,
    get_weights,
    parameter_arrays,
    set_weights,
)
from crfx.estimators.sharded_sweeps import Base, leading_shards, loaded, mini_batches_of
from crfx.estimators.training_state import TrainingState, sweeps_state
from crfx.features.matrix import chunks, is_on_disk, is_sparse, no_rows, take_rows
from crfx.model.model import Model
from crfx.objectives.base import Objective
from crfx.objectives.perceptron import PerceptronLoss, WeightedPerceptronLoss
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.potentials.hidden_unit import HiddenUnitFunction
from crfx.potentials.numbers import as_numbers
from crfx.scores import IntArray
from crfx.threads import thread_count
from crfx.trainers.averaging import Sweepers
from crfx.trainers.sgd import AveragedParameters, Descent, best_step, warn_of_small_features
from crfx.workers import current

if TYPE_CHECKING:
    from crfx.estimators.hidden_unit import HiddenUnitCRF
    from crfx.inputs.training_set import TrainingSet

Array64 = npt.NDArray[np.float64]

SWEEPS_TO_HALF = 50.0
"""After so many sweeps the steps have half their size."""
TRIAL_POSITIONS = 10_000
"""On about so many, three quarters to learn from and a quarter to judge by, steps are tried."""
SLOW_TRIAL_INSTANCES = 24
"""So many where steps go through Python."""
TRIAL_SWEEPS, TRIAL_STEPS = 8, 100
"""So many sweeps at least, and so many steps; as in training, parameters are averaged over the
second half of them."""
SHARE_OF_BEST = 0.5
"""Many sweeps want smaller steps than the few of a trial."""
USUAL_DROPOUT = 0.2
"""Of dense features."""
LARGEST_PARAMETER = 1e6
"""A trial that goes beyond has diverged."""


class Sweeps:
    """Sweeps over the instances with a model, in the core where it can."""

    def __init__(
        self,
        model: Model,
        truth: Truth,
        loss: Callable[[Truth], Objective],
        rates: Array64,
        crf: HiddenUnitCRF,
        burn_in: int,
        workers: Sweepers | None = None,
    ) -> None:
        self.model, self.truth, self.loss, self.crf = model, truth, loss, crf
        n_instances = truth.batch.n_instances
        self.workers = workers or Sweepers.who_have(n_instances)
        dropout = Dropout(_dropout(crf, truth), self.workers.own_seed(crf._seed))
        self._rates, self._burn_in = rates, burn_in
        # All or none: the core has parameters of single precision, and they are to be the same.
        own = can_take_steps(model, loss(truth))
        # Not through self: a circle would hold the features until someone looks for circles.
        is_quick = self._is_quick = all(self.workers.communicator.gather(own))

        n_threads = thread_count(crf.n_jobs)

        def quick(own: Truth, base: Base) -> HiddenSteps | None:
            if not is_quick:
                return None
            return HiddenSteps(model, own, loss(own), base, rates, dropout, n_threads)

        def make(own: Truth, base: Base) -> MiniBatches:
            left_out = dropout if dropout.share else None
            return MiniBatches(model, own, loss, None, base, quick(own, base), left_out)

        self._quick = quick
        self._parts = mini_batches_of(truth, base_scores(model, truth.batch), model, make)
        self._descent = Descent(
            n_instances=n_instances,
            batch_size=crf.batch_size,
            step=1.0,
            period=SWEEPS_TO_HALF * -(-n_instances // crf.batch_size),
            l2=crf._penalty * self.workers.share,
            burn_in=burn_in,
            seed=crf._seed,
            by_sweep=True,
            rates=None if self._is_quick else spread_rates(model, rates),
            ends=self._parts.ends,
        )
        self.parameters: Any = None

    def begin(self, step: float, before: TrainingState | None = None) -> None:
        """With the parameters of the model, or as a training before stood."""
        self._descent = replace(self._descent, step=step)
        self.parameters = self._new_parameters(get_weights(self.model))
        if before is not None:
            self.parameters.restore(before.numbers, before.arrays)
            self.workers.velocity = before.velocity

    def sweep(self, number: int) -> None:
        """One pass."""
        self.workers.sweep(self._descent, number, self.parameters, self._parts)

    def state(self, n_done: int) -> TrainingState:
        """Where it stands."""
        step, velocity = self._descent.step, self.workers.velocity
        return sweeps_state(self.crf.trainer, n_done, self.parameters, step, velocity)

    def good_step(self) -> float:
        """From the step that is best after a few sweeps over a part of the instances; of shards,
        over a part of the first ones.
        """
        return self.workers.told(self._found_step)

    def _found_step(self) -> float:
        if is_on_disk(self.truth.batch.X):
            return self._leading()._found_step()
        warn_of_small_features(as_numbers(self.truth.batch.X))
        learned, judged = self._trial_instances()
        start = get_weights(self.model)
        truth, rows = self.truth.take(judged)
        batch = replace(truth.batch, X=take_rows(as_numbers(self.truth.batch.X), rows))
        truth = replace(truth, batch=batch)
        share = len(learned) / self.truth.batch.n_instances
        n_steps = -(-len(learned) // self._descent.batch_size)
        n_sweeps = max(TRIAL_SWEEPS, -(-TRIAL_STEPS // n_steps))
        descent = replace(
            self._descent,
            n_instances=len(learned),
            period=None,
            l2=self._descent.l2 * share,
            burn_in=n_sweeps // 2,
        )

        def trial(step: float) -> float:
            parameters = self._new_parameters(start)
            with np.errstate(over="ignore", invalid="ignore"):
                try:
                    for number in range(n_sweeps):
                        replace(descent, step=step).sweep(number, parameters, self._parts, learned)
                except InputError:  # scores that are not finite
                    return np.inf
                values = parameters.average()
                if not -LARGEST_PARAMETER < values.min() <= values.max() < LARGEST_PARAMETER:
                    return np.inf
            set_weights(self.model, values)
            return self._judged(truth)

        try:
            return SHARE_OF_BEST * best_step(trial)
        finally:
            set_weights(self.model, start)

    def _leading(self) -> Sweeps:
        """Over the first shards alone, read; their share of the penalty is theirs."""
        X: Any = self.truth.batch.X
        some, _ = loaded(self.truth, leading_shards(X.lengths, TRIAL_POSITIONS))
        alone = Sweepers([some.batch.n_instances])
        found = Sweeps(self.model, some, self.loss, self._rates, self.crf, self._burn_in, alone)
        share = some.batch.n_instances / self.truth.batch.n_instances
        found._descent = replace(found._descent, l2=self._descent.l2 * share)
        return found

    def _trial_instances(self) -> tuple[IntArray, IntArray]:
        """Some to learn from, some to judge by; all for both where there is but one.

        Of those that have a known label and a weight: by others no step could be judged.
        """
        batch = self.truth.batch
        order = np.random.default_rng([self.crf._seed, 0]).permutation(batch.n_instances)
        telling = _telling(self.truth)[order]
        order = order[telling] if telling.any() else order
        sizes = np.cumsum(np.diff(batch.offsets)[order])
        most = len(order) if self._is_quick else SLOW_TRIAL_INSTANCES
        chosen = order[: max(2, min(most, int(np.searchsorted(sizes, TRIAL_POSITIONS))))]
        if len(chosen) < 2:
            return chosen, chosen
        n_judged = max(1, len(chosen) // 4)
        return chosen[n_judged:], chosen[:n_judged]

    def _judged(self, truth: Truth) -> float:
        """The loss; of perceptrons, whose loss grows with the scale of scores, the errors."""
        problem = self.model.problem(truth.batch)
        loss = self.loss(truth)
        if not isinstance(loss, PerceptronLoss | WeightedPerceptronLoss):
            return float(loss.evaluate(problem, ()).value)
        known = truth.labels != UNKNOWN
        wrong = self.crf._scored.decode(problem)[known] != truth.labels[known]
        weights = truth.position_weights
        if weights is None or not weights[known].any():
            return float(np.mean(wrong))
        return float(np.average(wrong, weights=weights[known]))

    def _new_parameters(self, values: npt.NDArray[Any]) -> Any:
        steps = self._quick(self._without_rows(), None)
        if steps is not None:
            return steps.begin(values)
        return AveragedParameters(values.astype(np.float64))

    def _without_rows(self) -> Truth:
        """No instance: parameters know the shapes of features, not the features."""
        truth, _ = self.truth.take(np.zeros(0, np.int64))
        return replace(truth, batch=replace(truth.batch, X=no_rows(self.truth.batch.X)))


def _dropout(crf: HiddenUnitCRF, truth: Truth) -> float:
    if crf.dropout is not None:
        return crf.dropout
    return 0.0 if is_sparse(truth.batch.X) else USUAL_DROPOUT


def block_rates(kind: str, model: Model, given: TrainingSet) -> Array64:
    """Steps of the kinds of parameters, as multiples of that of the weights into units.

    In the order of `crfx::HiddenRates`.  "size": a step is the longer the fewer parameters there
    are of a kind, times five for the weights into units (Gelfand et al. 2010, and the authors of
    hidden-unit CRFs); of weights those count that a row has features for, of all workers.
    """
    rates = np.ones(7)
    if kind == "equal":
        return rates
    node = model.node
    assert isinstance(node, HiddenUnitFunction)
    X, shape = as_numbers(given.batch.X), node.shape
    active = X.shape[1]
    if is_sparse(X):
        n_entries, n_rows = current().sum(np.array([_entries(X), X.shape[0]], np.int64)).tolist()
        active = n_entries / max(n_rows, 1)
    H, K = shape.n_hidden, shape.n_labels
    n_edge = 1 if model.edge is None else model.edge.tables["edge"].size
    sizes = np.array([active * H, H, H * K, K, active * K, n_edge, K], dtype=np.float64)
    rates[1:] = (sizes[0] if H else sizes[4]) / (5 * np.maximum(sizes[1:], 1e-9))
    return rates


def _entries(X: Any) -> int:
    """How many entries of a sparse matrix are not 0."""
    return sum(int(chunk.count_nonzero()) for _, chunk in chunks(X))


def spread_rates(model: Model, rates: Array64) -> Array64 | None:
    """(parameters,) from the rates of their kinds; None where all are 1."""
    if (rates == 1).all():
        return None
    node = model.node
    assert isinstance(node, HiddenUnitFunction)
    sizes = [int(np.prod(shape)) for shape in node.shape.parts.values()]
    kinds = list(range(len(sizes)))
    tables = parameter_arrays(model)[1:]
    for table in tables:
        sizes.append(table.size)
        kinds.append(6 if table.ndim == 1 else 5)
    return np.repeat(rates[kinds], sizes)


def _telling(truth: Truth) -> npt.NDArray[np.bool_]:
    """(instances,) whether the loss of an instance depends on the parameters."""
    n_known = np.append(0, np.cumsum(truth.labels != UNKNOWN))[truth.batch.offsets]
    found: npt.NDArray[np.bool_] = np.diff(n_known) > 0
    return found if truth.weights is None else found & (truth.weights > 0)
