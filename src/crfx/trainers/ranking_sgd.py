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
from crfx.trainers.base import Rounds, TrainingState
from crfx.trainers.ranking_task import OfSubsets, RankingTask
from crfx.trainers.sgd import AveragedParameters, Descent, Positions, averaged
from crfx.trainers.step_search import SCALE, with_good_step
from crfx.trainers.subsets import Drawn
from crfx.workers import Workers, current, total

Array64 = npt.NDArray[np.float64]

SWEEPS_TO_HALF = 10.0
"""After so many sweeps steps have half their size."""
TRIAL = 2**31
"""Number of the draws by which steps are tried and the objective is told; no sweep has it."""


class QueryBatches:
    """Mini-batches of queries for `Descent`: some of ``task.queries``, by their place in it.

    ``base`` (documents,) are scores underneath.  Subsets are drawn once a sweep, by its number.
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
        """The weights that some queries touch, and their loss as a function of those."""
        n = self.task.n_subsets
        subsets = (chosen[:, None] * n + np.arange(n)).reshape(-1)
        drawn = self._draws(number).take(subsets)
        seed = TRIAL if number is None else number
        at, scores, slope = self._linear(drawn.rows)

        def loss(weights: Array64) -> tuple[float, Array64]:
            own = scores(weights)
            if not _can_be_ordered(own):  # a step was too large
                return np.inf, np.zeros_like(weights)
            found = self.task.evaluate(own, drawn, seed=seed)
            return found.value, slope(found.gradient)

        return at, loss

    def _draws(self, number: int | None) -> Drawn:
        if number is None:
            return self._trial
        sweep = number // self._steps_per_sweep
        if self._drawn[0] != sweep:
            self._drawn = sweep, self.task.draw((self.seed, sweep))
        return self._drawn[1]

    def _linear(self, rows: IntArray) -> tuple[Positions, Callable[..., Any], Callable[..., Any]]:
        """Weights that some documents touch, their scores and how slopes come back to weights."""
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
        """The objective of subsets drawn once, of all queries: comparable from sweep to sweep."""
        drawn = self._trial
        return self.task.evaluate(self.scores(weights)[drawn.rows], drawn, seed=TRIAL)

    def scores(self, weights: Array64) -> Array64:
        """Of all documents."""
        return np.asarray(self.X @ weights, np.float64) + self.base


@dataclass(eq=False)
class RankingDescent:
    """Sweeps over the queries; ``parameters`` hold weights and their average.

    Workers that train together sweep over queries of their own each, and take the mean of their
    parameters after every sweep.  ``l2`` and ``weight`` are of the queries of all.
    """

    batches: QueryBatches
    descent: Descent
    parameters: AveragedParameters
    l2: float
    weight: float
    communicator: Workers

    @classmethod
    def make(
        cls,
        batches: QueryBatches,
        start: Array64,
        *,
        step: float | None,
        batch_size: int,
        l2: float,
        burn_in: int,
        stands: TrainingState | None = None,
    ) -> RankingDescent:
        """Make it with a step that is given, or found by trials, or that of ``stands``.

        The first worker that has queries tries steps, and tells the others.  ``stands`` is where
        an earlier run stood.
        """
        if step is None and stands is not None:
            step = stands.numbers["step"]
        workers, n = current(), len(batches.task.queries)
        counts = workers.gather(n)
        descent = Descent(
            n_instances=n,
            batch_size=batch_size,
            step=1.0 if step is None else step,
            period=SWEEPS_TO_HALF * n / batch_size,
            l2=l2 * (n / sum(counts)),
            burn_in=burn_in,
            seed=batches.seed,
        )
        if step is None:
            first = int(np.flatnonzero(counts)[0])
            if workers.rank == first:
                descent = with_good_step(descent, batches, start)
            descent.step = workers.gather(descent.step)[first]
        weight = total(workers, batches.task.weights.sum())
        parameters = AveragedParameters(start) if stands is None else restored(stands)
        return cls(batches, descent, parameters, l2, weight, workers)

    def sweep(self, number: int) -> Array64:
        """One pass over the queries; return the averaged weights."""
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below
            if self.descent.n_instances:
                self.descent.sweep(number, self.parameters, self.batches)
            averaged(self.parameters, self.descent.n_instances, self.communicator)
            weights = self.parameters.average()
            scores = self.batches.scores(weights)
        if not _can_be_ordered(scores):
            raise ValueError(
                f"step is {self.descent.step:g}: weights grew beyond all measure; take a smaller "
                f"one, or {SCALE}"
            )
        return weights

    def state(self) -> TrainingState:
        """Return where the descent stands."""
        numbers, arrays = self.parameters.state()
        copies = {name: array.copy() for name, array in arrays.items()}
        return TrainingState("sgd", 0, numbers | {"step": self.descent.step}, copies)


@dataclass(eq=False)
class RankingEpochs:
    """The trainer of a linear scorer: epochs over the queries, numbered from ``n_done`` on."""

    model: RankingModel
    descent: RankingDescent
    n_done: int
    n_epochs: int
    best: TrainingState | None = None
    """Where the epochs stood when they were best."""
    stands: TrainingState | None = None
    """Where they stand; None: at the weights of the model."""
    _before: tuple[Any, TrainingState | None] | None = None

    def rounds(self) -> Rounds:
        """Yield the record of every epoch; the model then has the averaged weights."""
        descent = self.descent
        for number in range(self.n_done, self.n_done + self.n_epochs):
            begin = time.perf_counter()
            weights = descent.sweep(number)
            evaluation = descent.batches.value(weights).of_all(descent.communicator)
            penalty = descent.l2 * float(weights @ weights)
            record = {"objective": (evaluation.value + penalty) / descent.weight}
            self._before = self.model.function, self.stands
            self.model.function, self.stands = linear_function(weights), descent.state()
            self.n_done = number + 1
            yield record | evaluation.notes() | {"seconds": time.perf_counter() - begin}

    def mark(self) -> None:
        """Remember where the epochs stand."""
        self.best = self.stands

    def keep_best(self, n_done: int) -> None:
        """Return to the best weights, and to where the epochs stood then."""
        if self.best is not None:
            self.stands = self.best
            self.model.function = linear_function(restored(self.best).average())

    def abandon(self, n_done: int) -> None:
        """Return to what there was before an epoch that was not recorded."""
        if self.n_done > n_done and self._before is not None:
            self.model.function, self.stands = self._before

    def release(self) -> None:
        """Do nothing: the training data go with the trainer."""

    def state(self) -> TrainingState | None:
        """Return where the epochs stand."""
        return self.stands

    def frozen(self) -> RankingStood | None:
        """Return what copies of the estimator know."""
        return None if self.stands is None else RankingStood(self.stands, self.best)


@dataclass(frozen=True, eq=False)
class RankingStood:
    """Where the epochs of a linear scorer stood, and if interrupted, where they were best."""

    stands: TrainingState
    best: TrainingState | None = None

    def state(self) -> TrainingState:
        """Return where the epochs stood."""
        return self.stands

    def frozen(self) -> RankingStood:
        """Return this: nothing changes it any more."""
        return self


def restored(state: TrainingState) -> AveragedParameters:
    """Return the parameters with which epochs resume."""
    parameters = AveragedParameters(state.arrays["values"])
    parameters.restore(state.numbers, state.arrays)
    return parameters


def _can_be_ordered(scores: Array64) -> bool:
    return bool((np.abs(scores) <= LARGEST_SCORE).all())
