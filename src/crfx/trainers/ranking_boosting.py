"""Boosting of a ranking score: one tree a round, fitted to subsets drawn anew in every round.

Gradient and curvature of a document are sums over the subsets it was drawn in; a document that no
subset has counts for nothing in that round.  The curvature bounds the Hessian, so that a full step
cannot raise the objective of the round's subsets; where it is but a scale (expected loss), or
rounding interferes, a step that raised it is halved.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.features.matrix import by_chunk
from crfx.messages import warn
from crfx.model.ranking_model import RankingModel
from crfx.objectives.ranking import LARGEST_SCORE
from crfx.potentials.base import Addition, AdditiveFunction
from crfx.trainers.base import Rounds, Trainer
from crfx.trainers.ranking_task import Before, RankingTask
from crfx.trainers.subsets import Drawn
from crfx.workers import Workers, count, current, place, total

Array32 = npt.NDArray[np.float32]
Array64 = npt.NDArray[np.float64]

MOST_HALVINGS = 12
"""Then a step is given up."""


@dataclass(eq=False)
class RankingBoosting(Trainer):
    """Adds trees to ``scores`` (documents,) of a function that is bound to the same rows.

    Rounds are numbered from ``first_round`` to ``n_rounds``, those of an earlier run included.
    Workers that train together have queries of their own each, ``n_queries`` in all, and one
    objective.
    """

    task: RankingTask
    function: AdditiveFunction
    scores: Array32
    learning_rate: float
    seed: int
    n_rounds: int
    first_round: int = 0
    subsample: float = 1.0
    followed: Sequence[Array32] = ()
    communicator: Workers = field(default_factory=current)
    n_queries: int = field(init=False)

    can_restore = True

    def __post_init__(self) -> None:
        self.n_queries = count(self.communicator, len(self.task.queries))

    def rounds(self) -> Rounds:
        """Yield the record of every round."""
        for number in range(self.first_round, self.n_rounds):
            begin = time.perf_counter()
            record = self._round(number)
            yield record | {"seconds": time.perf_counter() - begin}

    def warn_if_nothing_learned(self) -> None:
        """Warn after training if all documents of all workers have the same score."""
        if self.n_rounds == self.first_round:
            return
        extremes = [self.scores.min(), self.scores.max()] if len(self.scores) else []
        if len(set(chain.from_iterable(self.communicator.gather(extremes)))) == 1:
            warn(
                "no tree found a split, so all documents have the same score: there are "
                f"{self.n_queries} queries to learn from; try a smaller min_child_weight",
                RuntimeWarning,
            )

    def mark(self) -> None:
        """Do nothing: all rounds are kept."""

    def keep_best(self, n_done: int) -> None:
        """Drop the rounds after the first ``n_done``."""
        self.function.keep(n_done)

    def abandon(self, n_done: int) -> None:
        """Drop what an interrupted round has left after the first ``n_done``."""
        self.function.keep(n_done)

    def release(self) -> None:
        """Let go of the training data."""
        self.function.release()

    def _round(self, number: int) -> dict[str, float]:
        drawn = self._drawn(number)
        local = self.task.evaluate(self.scores[drawn.rows], drawn, seed=number, curvature=True)
        evaluation = local.of_all(self.communicator)
        assert evaluation.curvature is not None
        addition = self.function.propose(
            self._by_row(evaluation.gradient, drawn),
            self._by_row(evaluation.curvature, drawn),
            number,
        )
        value, halvings = self._take(addition, drawn, evaluation.value, number)
        record = {"objective": value / evaluation.weight, "halvings": float(halvings)}
        return record | evaluation.notes()

    def _drawn(self, number: int) -> Drawn:
        """Return subsets of all queries, or of a share of the queries of all workers."""
        seed = self.seed, number
        if self.subsample == 1.0:
            return self.task.draw(seed)
        random = np.random.default_rng([*seed, 1])
        n_chosen = max(1, round(self.subsample * self.n_queries))
        chosen = np.sort(random.choice(self.n_queries, n_chosen, replace=False))
        first = self.task.before.queries
        begin, end = np.searchsorted(chosen, [first, first + len(self.task.queries)])
        queries = self.task.queries[chosen[begin:end] - first]
        n_documents = int(self.task.subsets.lengths(queries).sum())
        before = Before(int(begin), place(self.communicator, n_documents)[1])
        return self.task.draw(seed, queries, before)

    def _by_row(self, values: Array64, drawn: Drawn) -> Array32:
        """Return sums over subsets, (rows, 1)."""
        total = np.bincount(drawn.rows, weights=values, minlength=len(self.scores))
        return total.astype(np.float32)[:, None]

    def _take(
        self, addition: Addition, drawn: Drawn, before: float, number: int
    ) -> tuple[float, int]:
        """Take a step, halved as long as it raises the objective; return that, and how often."""
        delta = np.asarray(addition.delta, np.float32)[:, 0]
        step, scores = self.learning_rate, self.scores[drawn.rows]
        for halvings in range(MOST_HALVINGS + 1):
            moved = scores + np.float32(step) * delta[drawn.rows]
            value = np.inf  # where scores leave the range in which they can be ordered
            if (np.abs(moved) <= LARGEST_SCORE).all():
                value = self.task.evaluate(moved, drawn, seed=number).value
            value = total(self.communicator, value)
            if value <= before:
                break
            step = step / 2 if halvings < MOST_HALVINGS else 0.0
        self.scores += np.float32(step) * delta
        for scores, change in zip(self.followed, addition.followed, strict=True):
            scores += np.float32(step) * np.asarray(change, np.float32)[:, 0]
        addition.accept(step)
        return (value if step else before), halvings


def working_scores(model: RankingModel, X: Any) -> Array32:
    """Return the scores of documents as boosting adds to them: in the precision of trees, round by
    round on top of the base model.

    Of features that stay on disk one chunk is in memory at a time.
    """
    if model.base is None or model.scorer != "trees":
        return model.scores(X).astype(np.float32)
    function: Any = model.function
    rounds = list(function.rounds_alone())

    def scored(rows: Any) -> Array32:
        scores = model.base_scores(rows).astype(np.float32)
        for one_round in rounds:
            scores += one_round.scores(rows, rows.shape[0])[:, 0]
        return scores

    return by_chunk(X, scored)
