"""Training by epochs: gradient descent and perceptrons, of linear models and of hidden units.

The core takes the steps where it can, and Python the others, one mini-batch after the other: some
35 times slower, and with the same result up to rounding.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from crfx.features.matrix import chunks, is_on_disk, is_sparse, no_rows, take_rows
from crfx.model.flat_parameters import get_weights, parameter_arrays, set_weights
from crfx.model.model import Model
from crfx.objectives.perceptron import PerceptronLoss, WeightedPerceptronLoss
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.potentials.hidden_unit import HiddenUnitFunction
from crfx.potentials.numbers import as_numbers
from crfx.scores import IntArray
from crfx.trainers.base import VELOCITY, TrainingState
from crfx.trainers.core_steps import (
    CoreParameters,
    CoreSteps,
    can_take_steps,
    hidden_sweeps,
    linear_sweeps,
)
from crfx.trainers.lbfgs import warn_nothing_learned
from crfx.trainers.mini_batches import Dropout, Make, MiniBatches, ShardedMiniBatches
from crfx.trainers.parametric import (
    Iterations,
    ParameterTrainer,
    ParametricTask,
    ScoreArrays,
    base_scores,
)
from crfx.trainers.sgd import AveragedParameters, AveragingWorkers, Descent, slices
from crfx.trainers.shared_evaluation import agreed_objective
from crfx.trainers.step_search import (
    TRIAL_INSTANCES,
    averaged_step,
    warn_of_small_features,
    with_good_step,
)
from crfx.workers import current, total

Array64 = npt.NDArray[np.float64]

EPOCHS_TO_HALF = 10.0
"""After so many epochs the steps of gradient descent on a linear model have half their size."""
HIDDEN_EPOCHS_TO_HALF = 50.0
"""The same of hidden units, with every trainer."""
LEAST_PROGRESS = 1e-3
"""Descent that lowers the objective by a smaller share has learned nothing."""
TRIAL_POSITIONS = 10_000
"""Hidden units try steps on about so many: three quarters to learn from, a quarter to judge by."""
SLOW_TRIAL_INSTANCES = 24
"""So many where steps go through Python."""


@dataclass(frozen=True)
class EpochSettings:
    """Settings of training by epochs: ``n_epochs`` more, averaged from epoch ``burn_in`` on.

    ``step`` is the size of the first step; None: found by trials.  ``halves``: later steps are
    smaller.  Of hidden units, ``block_steps`` is "equal" or "size", and ``dropout`` the share of
    the features that a step leaves out.
    """

    trainer: str
    n_epochs: int
    batch_size: int
    burn_in: int
    seed: int
    step: float | None = None
    halves: bool = True
    n_threads: int = 1
    block_steps: str = "equal"
    dropout: float = 0.0


class Epochs(ParameterTrainer):
    """Trains the parameters of a model by epochs over mini-batches of instances."""

    _by_epoch: ClassVar[bool]
    """Whether parameters are averaged over the ends of epochs, not over all steps."""

    def __init__(self, model: Model, task: ParametricTask, settings: EpochSettings) -> None:
        super().__init__(model)
        self.task, self.settings = task, settings
        self.workers = AveragingWorkers.of_all(task.truth.batch.n_instances)
        self.votes: list[npt.NDArray[np.float32]] | None = None
        """Where given: collects the parameters at the end of every epoch from ``burn_in`` on."""
        self.parameters: AveragedParameters | None = None
        """Those in training, with their average; where none are given, those of the model."""
        self._descent: Descent
        self._resumed: TrainingState | None = None
        self._n_first = 0
        self._objective = agreed_objective(lambda: task.bind(task.truth), task.truth.batch)
        # All workers or none: the precision of parameters is to be the same.
        can = can_take_steps(model, self._objective)
        self._in_core = all(self.workers.communicator.gather(can))

    def _steps(self) -> Iterations:
        self.begin()
        weights: npt.NDArray[Any] | None = None  # those of the model: not held twice
        before = self._value_to_beat()
        value = np.inf if before is None else before
        for number in range(self._n_first, self._n_first + self.settings.n_epochs):
            parameters = self.epoch(number)
            weights = parameters.average()
            value = self.value(weights)
            if self.votes is not None and number >= self.settings.burn_in:
                self.votes.append(np.array(parameters.values, np.float32))
            try:
                yield weights, value
            except GeneratorExit:  # stopped early, perhaps without having learned anything
                break
        if before is not None and before - value < LEAST_PROGRESS * abs(before):
            warn_nothing_learned()
        return get_weights(self.model) if weights is None else weights

    def begin(self) -> None:
        """Prepare the instances, find the first step, and take up the parameters."""
        self._prepare()
        step = self.settings.step
        if step is None and self._resumed is not None:
            step = self._resumed.numbers["step"]
        if step is None:
            step = self.workers.of_first(self._good_step)
        self._descent = replace(self._descent, step=step)
        if self.parameters is None:
            self.parameters = self._new_parameters(get_weights(self.model))
        if self._resumed is not None:
            self.parameters.restore(self._resumed.numbers, self._resumed.arrays)
            self.workers.velocity = self._resumed.velocity

    def epoch(self, number: int) -> AveragedParameters:
        """Pass over all instances once; return the parameters."""
        assert self.parameters is not None
        self.workers.sweep(self._descent, number, self.parameters, self._parts)
        return self.parameters

    @property
    def step(self) -> float:
        """The size of the first step."""
        return self._descent.step

    def state(self) -> TrainingState | None:
        """Return where training stands; before an epoch has ended, where it resumed, if it did."""
        if self.parameters is None or self._n_done == self._n_first:
            return self._resumed
        numbers, arrays = self.parameters.state()
        if self.workers.velocity is not None:
            arrays = {**arrays, VELOCITY: self.workers.velocity}
        numbers = {**numbers, "step": self.step}
        state = TrainingState(self.settings.trainer, self._n_done, numbers, arrays)
        return state.with_best(self.best)

    def restore(self, state: TrainingState) -> None:
        """Resume where `state` was taken."""
        self._resumed, self.best = state, state.best
        self._n_done = self._n_first = state.n_done

    def _prepare(self) -> None:
        """Cut the instances into mini-batches, and say how to descend."""
        truth, settings = self.task.truth, self.settings
        base, make = base_scores(self.model, truth.batch), self._maker()
        self._parts: Any = (
            ShardedMiniBatches(truth, base, self.model, make)
            if is_on_disk(truth.batch.X)
            else make(truth, base)
        )
        self._descent = Descent(
            n_instances=truth.batch.n_instances,
            batch_size=settings.batch_size,
            step=1.0,
            period=self._period(truth.batch.n_instances) if settings.halves else None,
            l2=self.task.l2 * self.workers.share,
            burn_in=settings.burn_in,
            seed=settings.seed,
            by_sweep=self._by_epoch,
            ends=self._parts.ends,
        )

    @abstractmethod
    def _maker(self) -> Make:
        """Return what makes mini-batches, without the trainer: a reference cycle would keep X."""

    @abstractmethod
    def _period(self, n_instances: int) -> float:
        """Return the number of the step that has half the size of the first."""

    @abstractmethod
    def _good_step(self) -> float:
        """Find the size of the first step by trials on a part of the instances."""

    @abstractmethod
    def _new_parameters(self, values: Array64) -> AveragedParameters:
        """Return parameters in the precision in which steps are taken."""

    @abstractmethod
    def value(self, weights: npt.NDArray[Any]) -> float:
        """Return the objective of all workers, penalty included."""

    def _value_to_beat(self) -> float | None:
        """Return the value before training if a warning is due where it does not improve."""
        return None


class LinearEpochs(Epochs):
    """Epochs of a linear model, averaged over all steps."""

    _by_epoch = False

    def _prepare(self) -> None:
        self._free = self.task.free(self.model)
        self._whole = self.task.objective(self.model, self._objective, self._free)
        super()._prepare()

    def _maker(self) -> Make:
        model, task, free, in_core = self.model, self.task, self._free, self._in_core
        n_threads = self.settings.n_threads

        def make(truth: Truth, base: ScoreArrays | None) -> MiniBatches:
            core = None
            if in_core:
                sweeps = linear_sweeps(model, truth, task.bind(truth), base, free)
                core = CoreSteps(sweeps, n_threads)
            return MiniBatches(model, truth, task.bind, free, base, core)

        return make

    def _period(self, n_instances: int) -> float:
        return EPOCHS_TO_HALF * n_instances / self.settings.batch_size

    def _good_step(self) -> float:
        """Return the step whose epoch leaves some instances, the first, the least loss."""
        some: MiniBatches = self._parts.leading(n_instances=TRIAL_INSTANCES)
        if self.model.edge_family is not None:
            warn_of_small_features(some.X)
        parameters = self.parameters
        start = get_weights(self.model) if parameters is None else parameters.values
        return with_good_step(some.share_of(self._descent), some, start).step

    def _new_parameters(self, values: Array64) -> AveragedParameters:
        return AveragedParameters(values)

    def value(self, weights: npt.NDArray[Any]) -> float:
        """Return the objective of all workers, penalty included."""
        return self._whole.value(weights)

    def _value_to_beat(self) -> float | None:
        start = get_weights(self.model)
        if self.settings.step is not None or not self.settings.n_epochs or start.any():
            return None
        value = self._whole.value(start)
        return None if self._whole.base else value


@dataclass(frozen=True, eq=False)
class PartialEpochs:
    """What a call of `LinearCRF.partial_fit` leaves to the next: parameters with their average, and
    first steps by trainer.
    """

    parameters: AveragedParameters
    steps: Mapping[str, float] = field(default_factory=dict)


def partial_epoch(
    model: Model,
    task: ParametricTask,
    settings: EpochSettings,
    before: PartialEpochs,
    origin: IntArray,
    number: int,
) -> tuple[float, PartialEpochs]:
    """Pass over the instances once; return the objective and what is left to the next call.

    ``origin`` are the places of the parameters of the model among those of ``before``.
    """
    parameters, steps = before.parameters.grown(origin), before.steps
    set_weights(model, parameters.values)
    seeks_step = settings.step is None
    if seeks_step:
        settings = replace(settings, step=steps.get(settings.trainer))
    trainer = LinearEpochs(model, task, settings)
    trainer.parameters = parameters
    trainer.begin()
    weights = trainer.epoch(number).average()
    value = trainer.value(weights)
    set_weights(model, weights)
    if seeks_step:
        steps = {**steps, settings.trainer: trainer.step}
    return value, PartialEpochs(parameters, steps)


class HiddenEpochs(Epochs):
    """Epochs of a model with hidden units, averaged over the ends of epochs."""

    _by_epoch = True
    _rates: Array64 | None = None

    def _prepare(self) -> None:
        settings = self.settings
        if self._rates is None:
            self._rates = block_rates(settings.block_steps, self.model, self.task.truth.batch.X)
        super()._prepare()
        if not self._in_core:
            rates = spread_rates(self.model, self._rates)
            self._descent = replace(self._descent, rates=rates)

    def _maker(self) -> Make:
        model, task, in_core, rates = self.model, self.task, self._in_core, self._rates
        dropout = Dropout(self.settings.dropout, self.workers.own_seed(self.settings.seed))
        n_threads = self.settings.n_threads

        def make(truth: Truth, base: ScoreArrays | None) -> MiniBatches:
            core = None
            if in_core:
                sweeps = hidden_sweeps(model, truth, task.bind(truth), base)
                drawn = {"dropout": dropout.share, "seed": dropout.seed}
                core = CoreSteps(sweeps, n_threads, rates=rates, **drawn)
            left_out = dropout if dropout.share else None
            return MiniBatches(model, truth, task.bind, None, base, core, left_out)

        return make

    def _period(self, n_instances: int) -> float:
        return HIDDEN_EPOCHS_TO_HALF * -(-n_instances // self.settings.batch_size)

    def _good_step(self) -> float:
        """Return a step from the one that is best after a few epochs over some instances."""
        some: MiniBatches = self._parts.leading(n_positions=TRIAL_POSITIONS)
        warn_of_small_features(some.X)
        learned, judged = self._trial_instances(some.truth)
        part, rows = some.truth.take(judged)
        part = replace(part, batch=replace(part.batch, X=take_rows(some.X, rows)))
        start = get_weights(self.model)

        def judge(values: npt.NDArray[Any]) -> float:
            set_weights(self.model, values)
            return self._judged(part)

        try:
            return averaged_step(
                some.share_of(self._descent),
                some,
                learned,
                lambda: self._new_parameters(start),
                judge,
            )
        finally:
            set_weights(self.model, start)

    def _trial_instances(self, truth: Truth) -> tuple[IntArray, IntArray]:
        """Return instances to learn from, and others to judge by; the same if there is only one.

        Of those that have a known label and a weight: by others no step could be judged.
        """
        batch = truth.batch
        order = np.random.default_rng([self.settings.seed, 0]).permutation(batch.n_instances)
        telling = _telling(truth)[order]
        order = order[telling] if telling.any() else order
        sizes = np.cumsum(np.diff(batch.offsets)[order])
        most = len(order) if self._in_core else SLOW_TRIAL_INSTANCES
        chosen = order[: max(2, min(most, int(np.searchsorted(sizes, TRIAL_POSITIONS))))]
        if len(chosen) < 2:
            return chosen, chosen
        n_judged = max(1, len(chosen) // 4)
        return chosen[n_judged:], chosen[:n_judged]

    def _judged(self, truth: Truth) -> float:
        """Return the loss; the share of errors for perceptrons, whose loss grows with scores."""
        problem = self.model.problem(truth.batch)
        loss, decode = self.task.bind(truth), self.task.decode
        if decode is None or not isinstance(loss, PerceptronLoss | WeightedPerceptronLoss):
            return float(loss.evaluate(problem, ()).value)
        known = truth.labels != UNKNOWN
        wrong = decode(problem)[known] != truth.labels[known]
        weights = truth.position_weights
        if weights is None or not weights[known].any():
            return float(np.mean(wrong))
        return float(np.average(wrong, weights=weights[known]))

    def _new_parameters(self, values: Array64) -> AveragedParameters:
        if not self._in_core:
            return AveragedParameters(values)
        truth, node = self.task.truth, cast("HiddenUnitFunction", self.model.node)
        # Without instances: parameters know the shapes of features, not the features.
        empty, _ = truth.take(np.zeros(0, np.int64))
        empty = replace(empty, batch=replace(empty.batch, X=no_rows(truth.batch.X)))
        sweeps = hidden_sweeps(self.model, empty, self.task.bind(empty), None)
        return CoreParameters(sweeps, node.shape.n_features, values)

    def value(self, weights: npt.NDArray[Any]) -> float:
        """Return the objective of all workers, penalty included; the model gets the weights."""
        assert self._objective is not None
        set_weights(self.model, weights)
        problem = self.model.problem(self.task.truth.batch)
        value = self._objective.evaluate(problem, ()).value
        return total(self.workers.communicator, value) + penalty(self.task.l2, weights)


def penalty(l2: float, values: npt.NDArray[Any]) -> float:
    """Return l2 |w|^2, summed in float64."""
    if not l2:
        return 0.0
    parts = (values[part].astype(np.float64) for part in slices(len(values)))
    return l2 * sum(float(part @ part) for part in parts)


def block_rates(kind: str, model: Model, X: Any) -> Array64:
    """Return the steps of the kinds of parameters, as multiples of that of the weights into units.

    In the order of `crfx::HiddenRates`.  "size": a step is the longer the fewer parameters there
    are of a kind, times five for the weights into units (Gelfand et al. 2010, and the authors of
    hidden-unit CRFs); of weights those count that a row of X has features for, of all workers.
    """
    rates = np.ones(7)
    if kind == "equal":
        return rates
    node = cast("HiddenUnitFunction", model.node)
    X, shape = as_numbers(X), node.shape
    active = X.shape[1]
    if is_sparse(X):
        n_own = sum(int(chunk.count_nonzero()) for _, chunk in chunks(X))
        n_entries, n_rows = current().sum(np.array([n_own, X.shape[0]], np.int64)).tolist()
        active = n_entries / max(n_rows, 1)
    H, K = shape.n_hidden, shape.n_labels
    n_edge = 1 if model.edge is None else model.edge.tables["edge"].size
    sizes = np.array([active * H, H, H * K, K, active * K, n_edge, K], dtype=np.float64)
    rates[1:] = (sizes[0] if H else sizes[4]) / (5 * np.maximum(sizes[1:], 1e-9))
    return rates


def spread_rates(model: Model, rates: Array64) -> Array64 | None:
    """Return (parameters,) the rates of their kinds; None where all are 1."""
    if (rates == 1).all():
        return None
    node = cast("HiddenUnitFunction", model.node)
    sizes = [int(np.prod(shape)) for shape in node.shape.parts.values()]
    kinds = list(range(len(sizes)))
    for table in parameter_arrays(model)[1:]:
        sizes.append(table.size)
        kinds.append(6 if table.ndim == 1 else 5)
    return np.repeat(rates[kinds], sizes)


def _telling(truth: Truth) -> npt.NDArray[np.bool_]:
    """Return (instances,) whether the loss of an instance depends on the parameters."""
    n_known = np.append(0, np.cumsum(truth.labels != UNKNOWN))[truth.batch.offsets]
    is_known: npt.NDArray[np.bool_] = np.diff(n_known) > 0
    return is_known if truth.weights is None else is_known & (truth.weights > 0)
