"""A linear ranking score by stochastic gradient descent over queries (Volkovs et al. 2011).

Every visit of a query draws a subset of its documents and takes a step; weights are averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.objectives.ranking import LARGEST_SCORE
from crfx.potentials.linear import LinearFunction
from crfx.potentials.numbers import as_numbers
from crfx.potentials.weight_pattern import WeightPattern
from crfx.scores import IntArray
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
    ) -> RankingDescent:
        """With a step that is given, or found by trials; see `Descent`.

        The first worker that has queries finds it, and tells the others.
        """
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
        return cls(batches, descent, AveragedParameters(start), l2, weight, workers)

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


def _can_be_ordered(scores: Array64) -> bool:
    return bool((np.abs(scores) <= LARGEST_SCORE).all())
