"""Who looks on while a RankingCRF is trained: counts, history, callbacks, early stopping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.evaluation import comparable
from crfx.estimators.ranking.inputs import Queries
from crfx.estimators.ranking.parameters import metric_of
from crfx.estimators.watching import forget_other_sets
from crfx.trainers.callbacks import Callback, EarlyStopping, Progress, any_stops
from crfx.trainers.communicator import Communicator, current
from crfx.trainers.progress import ProgressBar

if TYPE_CHECKING:
    from crfx.estimators.ranking.estimator import RankingCRF


@dataclass(eq=False)
class Watch:
    """Looks on after every sweep or round: counts, history, callbacks, early stopping.

    ``metric`` () -> the number of the ``eval_set``; None: there is none.
    """

    crf: RankingCRF
    metric: Callable[[], float] | None
    callbacks: list[Callback]
    most: int
    stopping: EarlyStopping | None = None
    is_over: bool = False
    bar: ProgressBar | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.crf.verbose and current().rank == 0:
            self.bar = ProgressBar(self.most)
        if self.crf.early_stopping_rounds is not None and self.metric is not None:
            self.stopping = EarlyStopping(self.crf.early_stopping_rounds, larger_is_better=True)

    def go_on(self) -> None:
        """Take over after the rounds of an earlier run, as if there had been one run.

        Where that run watched other documents, or another metric, the model as it is now is the
        best so far.
        """
        history, n_rounds = self.crf.history_, self.crf.n_rounds_
        if not n_rounds or self.metric is None:
            return
        value = self.metric()
        if history.get("eval_metric"):
            forget_other_sets(history, n_rounds, value)
        if self.stopping is None:
            return
        entries = history.get("eval_metric", [])
        if len(entries) == n_rounds and not np.isnan(entries).any():
            for number, entry in enumerate(entries):
                self.is_over = self.stopping.see(entry, number + 1)
        else:
            self.stopping.best_round = n_rounds
            self.is_over = self.stopping.see(value, n_rounds)

    def __call__(self, progress: Progress) -> bool:
        """Note a round that is done; whether to stop."""
        self.crf.n_rounds_ = progress.n_rounds
        self.crf.best_iteration_ = progress.n_rounds - 1
        self.crf._count_down()
        # First, so that what is saved knows of the best.
        stops = self.stopping is not None and self.stopping(progress)
        if self.stopping is not None and self.stopping.best_round == progress.n_rounds:
            self.crf._best = self.crf._state
        called = [*self.callbacks, *([] if self.bar is None else [self.bar])]
        return any_stops(called, progress) or stops

    @property
    def best_round(self) -> int:
        """How many rounds to keep."""
        return self.crf.n_rounds_ if self.stopping is None else self.stopping.best_round

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self.bar is not None:
            self.bar.close()


def metric_of_scores(
    crf: RankingCRF, watched: Queries, scores: Callable[[], npt.NDArray[Any]]
) -> Callable[[], float]:
    """``eval_metric`` of the scores as they are, of the documents of all workers.

    The first worker finds it, and tells the others.  Scores travel once a round.
    """
    workers, metric = current(), metric_of(crf)
    relevance = joined_by(workers, watched.relevance)
    lengths = joined_by(workers, watched.batch.lengths)

    def value() -> float:
        found = joined_by(workers, scores())
        own = comparable(metric(relevance, found, lengths)) if workers.rank == 0 else np.nan
        told: float = workers.gather(own)[0]
        return told

    return value


def joined_by(workers: Communicator, own: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The arrays of all workers, one after the other."""
    return own if workers.size == 1 else np.concatenate(workers.gather(own))
