"""A linear ranking score by stochastic gradient descent over queries (Volkovs et al. 2011).

Every visit of a query draws a subset of its documents and takes a step; weights are averaged.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.model.ranking_model import RankingModel, linear_function
from crfx.objectives.ranking import LARGEST_SCORE
from crfx.potentials.linear import LinearFunction
from crfx.potentials.numbers import as_numbers
from crfx.potentials.weight_pattern import WeightPattern
from crfx.scores import IntArray
from crfx.trainers.base import Rounds, Trainer, TrainingState
from crfx.trainers.ranking_task import OfSubsets, RankingTask
from crfx.trainers.sgd import AveragedParameters, Descent, Positions, averaged
from crfx.trainers.step_search import SCALE, with_good_step
from crfx.trainers.subsets import Drawn
from crfx.workers import current, total

Array64 = npt.NDArray[np.float64]

EPOCHS_TO_HALF = 10.0
"""After so many epochs steps have half their size."""
TRIAL = 2**31
"""Number of the draws by which steps are tried and the objective is measured; no epoch has it."""


class QueryBatches:
    """Mini-batches of queries for `Descent`: some of ``task.queries``, by their place in it.

    ``base`` (documents,) are scores underneath.  Subsets are drawn once an epoch, by its number.
    """

    def __init__(self, task: RankingTask, X: Any, base: Array64, seed: int, size: int) -> None:
        self.task, self.base, self.seed = task, base, seed
        self.X = as_numbers(X)
        self._steps_per_sweep = -(-len(task.queries) // size)
        self._function = LinearFunction(WeightPattern.all(X.shape[1], 1))
        self._drawn: tuple[int, Drawn] = (-1, task.draw((seed, TRIAL)))
        self._trial = self._drawn[1]

    def __call__(
        self, chosen: IntArray, number: int | None
    ) -> tuple[Positions, Callable[[Array64], tuple[float, Array64]]]:
        """Return the weights that some queries touch, and their loss as a function of those."""
        n = self.task.n_subsets
        subsets = (chosen[:, None] * n + np.arange(n)).reshape(-1)
        drawn = self._draws(number).take(subsets)
        seed = TRIAL if number is None else number
        at, scores, slope = self._linear(drawn.rows)

        def loss(weights: Array64) -> tuple[float, Array64]:
            document_scores = scores(weights)
            if not _can_be_ordered(document_scores):  # a step was too large
                return np.inf, np.zeros_like(weights)
            evaluation = self.task.evaluate(document_scores, drawn, seed=seed)
            return evaluation.value, slope(evaluation.gradient)

        return at, loss

    def _draws(self, number: int | None) -> Drawn:
        if number is None:
            return self._trial
        sweep = number // self._steps_per_sweep
        if self._drawn[0] != sweep:
            self._drawn = sweep, self.task.draw((self.seed, sweep))
        return self._drawn[1]

    def _linear(self, rows: IntArray) -> tuple[Positions, Callable[..., Any], Callable[..., Any]]:
        """Return the weights that documents touch, their scores, and the way back of slopes."""
        base = self.base[rows]
        if not sparse.issparse(self.X):
            X = self.X[rows].astype(np.float64)
            return slice(None), lambda w: X @ w + base, lambda g: g @ X
        features, at = self._function.prepare_part(self.X[rows])
        return (
            at,
            lambda w: features.scores(w.astype(np.float32))[:, 0] + base,
            lambda g: features.gradient(g.astype(np.float32)[:, None]),
        )

    def value(self, weights: Array64) -> OfSubsets:
        """Return the objective of subsets that were drawn once, so that epochs can be compared."""
        drawn = self._trial
        return self.task.evaluate(self.scores(weights)[drawn.rows], drawn, seed=TRIAL)

    def scores(self, weights: Array64) -> Array64:
        """Return the scores of all documents."""
        return np.asarray(self.X @ weights, np.float64) + self.base


@dataclass(frozen=True)
class RankingEpochSettings:
    """Settings of training by epochs, with ``l2`` |w|^2 per query.

    Weights are averaged from epoch ``burn_in`` on.  ``step`` is the size of the first step; None:
    found by trials.
    """

    batch_size: int
    burn_in: int
    l2: float
    step: float | None = None


class RankingEpochs(Trainer):
    """Trains a linear scorer by ``n_epochs`` epochs over the queries, numbered from ``n_done`` on.

    Workers that train together pass over queries of their own each, and take the mean of their
    parameters after every epoch.
    """

    def __init__(
        self,
        model: RankingModel,
        batches: QueryBatches,
        settings: RankingEpochSettings,
        n_done: int,
        n_epochs: int,
    ) -> None:
        self.model, self.batches, self.settings = model, batches, settings
        self.n_done, self.n_epochs = n_done, n_epochs
        self._workers = current()
        self._best: TrainingState | None = None
        """Where the epochs stood when they were best."""
        self._stands: TrainingState | None = None
        """Where they stand; None: at the weights of the model."""
        self._before: tuple[Any, TrainingState | None] = (model.function, None)

    def rounds(self) -> Rounds:
        """Yield the record of every epoch; the model then has the averaged weights."""
        start, workers, batches = np.zeros(self.batches.X.shape[1]), self._workers, self.batches
        resumed = self._stands
        descent = self._descent(start)
        parameters = AveragedParameters(start) if resumed is None else restored(resumed)
        weight = total(workers, batches.task.weights.sum())
        for number in range(self.n_done, self.n_done + self.n_epochs):
            begin = time.perf_counter()
            weights = self._epoch(number, descent, parameters)
            evaluation = batches.value(weights).of_all(workers)
            penalty = self.settings.l2 * float(weights @ weights)
            record = {"objective": (evaluation.value + penalty) / weight}
            self._before = self.model.function, self._stands
            self.model.function = linear_function(weights)
            self._stands = _state(parameters, descent.step)
            self.n_done = number + 1
            yield record | evaluation.notes() | {"seconds": time.perf_counter() - begin}

    def _descent(self, start: Array64) -> Descent:
        """Return how to descend.

        The first worker that has queries finds the step by trials, and sends it to the others.
        """
        settings, n = self.settings, len(self.batches.task.queries)
        counts = self._workers.gather(n)
        step = settings.step
        if step is None and self._stands is not None:
            step = self._stands.numbers["step"]
        descent = Descent(
            n_instances=n,
            batch_size=settings.batch_size,
            step=1.0 if step is None else step,
            period=EPOCHS_TO_HALF * n / settings.batch_size,
            l2=settings.l2 * (n / sum(counts)),
            burn_in=settings.burn_in,
            seed=self.batches.seed,
        )
        if step is None:
            first = int(np.flatnonzero(counts)[0])
            if self._workers.rank == first:
                descent = with_good_step(descent, self.batches, start)
            descent.step = self._workers.gather(descent.step)[first]
        return descent

    def _epoch(self, number: int, descent: Descent, parameters: AveragedParameters) -> Array64:
        """Pass over the queries once; return the averaged weights."""
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            if descent.n_instances:
                descent.sweep(number, parameters, self.batches)
            averaged(parameters, descent.n_instances, self._workers)
            weights = parameters.average()
            scores = self.batches.scores(weights)
        if not _can_be_ordered(scores):
            raise ValueError(
                f"step is {descent.step:g}: weights grew beyond all measure; take a smaller "
                f"one, or {SCALE}"
            )
        return weights

    def mark(self) -> None:
        """Remember where the epochs stand."""
        self._best = self._stands

    def keep_best(self, n_done: int) -> None:
        """Return to the best weights, and to where the epochs stood then."""
        if self._best is not None:
            self._stands = self._best
            self.model.function = linear_function(restored(self._best).average())

    @property
    def can_restore(self) -> bool:
        """Whether an earlier run has left its best weights."""
        return self._best is not None

    def state(self) -> RankingStood | None:
        """Return where the epochs stand."""
        return None if self._stands is None else RankingStood(self._stands, self._best)

    def restore(self, state: RankingStood) -> None:
        """Resume where `state` was taken."""
        self._stands, self._best = state.stands, state.best

    def abandon(self, n_done: int) -> None:
        """Return to what there was before an epoch that was not recorded."""
        if self.n_done > n_done:
            self.model.function, self._stands = self._before


@dataclass(frozen=True, eq=False)
class RankingStood:
    """The state of the epochs of a linear scorer, and if interrupted, their best weights."""

    stands: TrainingState
    best: TrainingState | None = None

    def copied(self) -> RankingStood:
        """Return this: its arrays are copies already."""
        return self

    def ended(self) -> RankingStood:
        """Return what a longer training needs of one that has ended."""
        return RankingStood(self.stands)


def _state(parameters: AveragedParameters, step: float) -> TrainingState:
    numbers, arrays = parameters.state()
    copies = {name: array.copy() for name, array in arrays.items()}
    return TrainingState("sgd", 0, numbers | {"step": step}, copies)


def restored(state: TrainingState) -> AveragedParameters:
    """Return the parameters with which epochs resume."""
    parameters = AveragedParameters(state.arrays["values"])
    parameters.restore(state.numbers, state.arrays)
    return parameters


def _can_be_ordered(scores: Array64) -> bool:
    return bool((np.abs(scores) <= LARGEST_SCORE).all())
