"""The training of a RankingCRF: sweeps of a linear scorer, rounds of trees."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from crfx.batch import Batch
from crfx.estimators.ranking.model import RankingModel, linear_function
from crfx.estimators.ranking.parameters import (
    metric_of,
    objective_of,
    usual_child_weight,
    value_of,
)
from crfx.estimators.session import run_rounds
from crfx.features.matrix import by_chunk, take_rows
from crfx.inputs.queries import Queries
from crfx.messages import warn
from crfx.potentials.trees import BoostedTrees
from crfx.potentials.xgboost_learner import XGBoostLearner
from crfx.prediction.metric import comparable
from crfx.threads import thread_count
from crfx.trainers.base import Rounds
from crfx.trainers.callbacks import Callback
from crfx.trainers.monitor import Metric
from crfx.trainers.ranking_boosting import RankingBoosting
from crfx.trainers.ranking_sgd import QueryBatches, RankingDescent
from crfx.trainers.ranking_task import Before, RankingTask
from crfx.trainers.sgd import AveragedParameters
from crfx.trainers.subsets import Subsets
from crfx.workers import Workers, agreed, count, current

if TYPE_CHECKING:
    from crfx.estimators.ranking.estimator import RankingCRF

Array64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SweepState:
    """Where the sweeps of a linear scorer stood, to go on as if they had never ended."""

    numbers: dict[str, float]
    arrays: dict[str, Array64]

    @classmethod
    def of(cls, parameters: AveragedParameters, step: float) -> SweepState:
        """As it is now."""
        numbers, arrays = parameters.state()
        return cls(numbers | {"step": step}, {name: array.copy() for name, array in arrays.items()})

    def restored(self) -> AveragedParameters:
        """The parameters to go on with."""
        parameters = AveragedParameters(self.arrays["values"])
        parameters.restore(self.numbers, self.arrays)
        return parameters


def seed_of(crf: RankingCRF) -> int:
    """The seed of all draws, which the first worker draws where there is none."""
    own = int(check_random_state(crf.random_state).randint(2**31 - 1))
    seed: int = current().gather(own)[0]
    return seed


def learnable_rows(queries: Queries, size: int) -> tuple[Queries, int]:
    """Queries that an order can be learned from, and how many others all workers have."""
    batch, workers = queries.batch, current()
    subsets, _ = agreed(
        lambda: Subsets(batch, queries.relevance, size),
        lambda _: (batch.n_instances, None),
    )
    kept = subsets.learnable[queries.weights[subsets.learnable] > 0]
    if not count(workers, len(kept)):
        raise ValueError(
            "no query has documents of two relevance levels, and a weight above 0: there is no "
            "order to learn"
        )
    is_kept = np.zeros(batch.n_instances, bool)
    is_kept[kept] = True
    rows = np.flatnonzero(is_kept[batch.instance_of_row])
    own = Batch.from_lengths(batch.lengths[kept], X=take_rows(batch.X, rows))
    found = Queries(
        own,
        queries.columns,
        queries.relevance[rows],
        queries.weights[kept],
        Before.of(workers, own),
    )
    return found, count(workers, batch.n_instances - len(subsets.learnable))


def task_of(crf: RankingCRF, queries: Queries) -> RankingTask:
    """What is learned."""
    return RankingTask(
        objective_of(crf),
        Subsets(queries.batch, queries.relevance, crf.subset_size),
        queries.gains(crf.gain),
        queries.weights,
        value_of(crf, "n_subsets"),
        crf.n_jobs,
        queries.before,
    )


def train_linear(
    crf: RankingCRF, queries: Queries, watched: Queries | None, callbacks: list[Callback]
) -> None:
    """Sweep over the queries; leaves weights and where they stood in the estimator."""
    model, X = crf.model_, queries.batch.X
    batch_size = value_of(crf, "batch_size")
    batches = QueryBatches(task_of(crf, queries), X, model.base_scores(X), seed_of(crf), batch_size)
    state = crf._state
    step = crf.step
    if step is None and state is not None:
        step = state.numbers["step"]
    descent = RankingDescent.make(
        batches,
        np.zeros(queries.columns.n),
        step=step,
        batch_size=batch_size,
        l2=value_of(crf, "l2"),
        burn_in=value_of(crf, "burn_in"),
    )
    if state is not None:
        descent.parameters = state.restored()
    metric = None
    if watched is not None:
        X_watched = watched.batch.X
        metric = metric_of_scores(crf, watched, lambda: crf.model_.scores(X_watched))
    can_restore = crf._best is not None
    crf.n_rounds_ = run_rounds(
        crf, RankingEpochs(crf, descent), metric, callbacks, can_restore=can_restore
    )
    crf._best = None


@dataclass(frozen=True, eq=False)
class RankingEpochs:
    """Epochs of a linear scorer; leaves where they stand in the estimator."""

    crf: RankingCRF
    descent: RankingDescent

    def rounds(self) -> Rounds:
        """Yield the record of every epoch; the model then has the averaged weights."""
        crf, first = self.crf, self.crf.n_rounds_
        for number in range(first, first + crf._rounds_here):
            begin = time.perf_counter()
            descent = self.descent
            weights = descent.sweep(number)
            found = descent.batches.value(weights).of_all(descent.communicator)
            penalty = descent.l2 * float(weights @ weights)
            record = {"objective": (found.value + penalty) / descent.weight} | found.notes()
            before, crf.model_.function = crf.model_.function, linear_function(weights)
            state = SweepState.of(descent.parameters, descent.descent.step)
            stood, crf._state = crf._state, state
            try:
                yield record | {"seconds": time.perf_counter() - begin}
            finally:
                if crf.n_rounds_ == number:  # cut short: it leaves nothing behind
                    crf.model_.function, crf._state = before, stood

    def mark(self) -> None:
        """Remember where the epochs stand."""
        self.crf._best = self.crf._state

    def keep_best(self, n_done: int) -> None:
        """Return to the best weights, and to where the epochs stood then."""
        if self.crf._best is not None:
            self.crf._state = self.crf._best
            self.crf.model_.function = linear_function(self.crf._state.restored().average())


def new_trees(crf: RankingCRF, raw: bytes | None = None) -> BoostedTrees:
    """Trees to be grown, on top of those there are."""
    names = (
        "max_depth",
        "max_leaves",
        "grow_policy",
        "reg_lambda",
        "min_child_weight",
        "colsample_bynode",
    )
    params = {name: value_of(crf, name) for name in names} | (value_of(crf, "tree_params") or {})
    learner = XGBoostLearner(
        params,
        value_of(crf, "max_bin"),
        seed_of(crf),
        thread_count(crf.n_jobs),
        value_of(crf, "device"),
    )
    return BoostedTrees(learner, 1, raw)


def train_trees(
    crf: RankingCRF, queries: Queries, watched: Queries | None, callbacks: list[Callback]
) -> None:
    """Add rounds of trees."""
    model, X = crf.model_, queries.batch.X
    function = model.function
    assert isinstance(function, BoostedTrees)
    function.bind(X, [] if watched is None else [watched.batch.X], current())
    followed = [] if watched is None else [_scores32(model, watched.batch.X)]
    metric = None if watched is None else metric_of_scores(crf, watched, lambda: followed[0])
    first = crf.n_rounds_
    n_rounds = first + crf._rounds_here
    trainer = RankingBoosting(
        task=task_of(crf, queries),
        function=function,
        scores=_scores32(model, X),
        learning_rate=value_of(crf, "learning_rate"),
        seed=seed_of(crf),
        n_rounds=n_rounds,
        first_round=first,
        subsample=value_of(crf, "subsample"),
        followed=followed,
    )
    if crf.min_child_weight is None:  # of few queries no leaf would be heavy enough
        function.learner.params["min_child_weight"] = usual_child_weight(crf, trainer.n_queries)
    try:
        best = run_rounds(crf, trainer, metric, callbacks)
    except BaseException:
        function.keep(crf.n_rounds_)  # a round that was cut short leaves nothing behind
        raise
    finally:
        function.release()
    if n_rounds > first and all_equal(trainer.communicator, trainer.scores):
        warn(
            "no tree found a split, so all documents have the same score: there are "
            f"{trainer.n_queries} queries to learn from; try a smaller min_child_weight",
            RuntimeWarning,
        )
    crf.n_rounds_ = best


def metric_of_scores(
    crf: RankingCRF, watched: Queries, scores: Callable[[], npt.NDArray[Any]]
) -> Metric:
    """Return ``eval_metric`` of the scores as they are, on the documents of all workers.

    The first worker measures it and sends it to the others.  Scores travel once a round.
    """
    workers, metric = current(), metric_of(crf)
    relevance = joined_by(workers, watched.relevance)
    lengths = joined_by(workers, watched.batch.lengths)

    def value() -> float:
        all_scores = joined_by(workers, scores())
        own = np.nan
        if workers.rank == 0:
            own = comparable(metric(relevance, all_scores, lengths))
        first: float = workers.gather(own)[0]
        return first

    return Metric(value, larger_is_better=True)


def joined_by(workers: Workers, own: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the arrays of all workers, one after the other."""
    return own if workers.size == 1 else np.concatenate(workers.gather(own))


def all_equal(communicator: Workers, scores: npt.NDArray[np.float32]) -> bool:
    """Whether all documents of all workers have the same score."""
    extremes = [scores.min(), scores.max()] if len(scores) else []
    return len(set(chain.from_iterable(communicator.gather(extremes)))) == 1


def _scores32(model: RankingModel, X: Any) -> npt.NDArray[np.float32]:
    """As boosting adds to them: in the precision of trees, round by round on what lies below.

    Of features that stay on disk one chunk is in memory at a time.
    """
    function = model.function
    if model.base is None or not isinstance(function, BoostedTrees):
        return model.scores(X).astype(np.float32)
    rounds = list(function.rounds_alone())

    def scored(rows: Any) -> npt.NDArray[np.float32]:
        found = model.base_scores(rows).astype(np.float32)
        for own in rounds:
            found += own.scores(rows, rows.shape[0])[:, 0]
        return found

    return by_chunk(X, scored)
