"""Candidates for losses of whole labellings: samples of the model, or its k best labellings.

A loss such as 1 - F1 of spans is no sum over positions, so no exact sum over all labellings exists.
Candidates are made anew in every evaluation, samples from the same seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crfx.inference.max_product import best_lists
from crfx.inference.problem import Problem
from crfx.inference.sampling import SEED_RANGE, drawn
from crfx.objectives.base import check_whole
from crfx.objectives.costs import PositionCosts, WholeLosses, bind
from crfx.objectives.counts import add_counts, labelling_scores
from crfx.objectives.task_loss import TaskLoss
from crfx.objectives.truth import ScoreName, Truth
from crfx.scores import Array64, FloatArray, Sharing

Source = Literal["samples", "kbest"]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Some labellings of every instance: ``labels`` (n, rows), and which ``exist`` (n, instances),
    since lists may be shorter than n.
    """

    labels: npt.NDArray[np.int32]
    exist: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls, problem: Problem, source: Source, n: int, seed: int, n_jobs: int | None
    ) -> Candidates:
        """Draw samples, or find the best."""
        batch = problem.batch
        if source == "samples":
            labels = drawn(problem, n, seed, n_jobs)
            return cls(labels, np.ones((n, batch.n_instances), bool))
        labels = np.zeros((n, batch.n_rows), np.int32)
        exist = np.zeros((n, batch.n_instances), bool)
        for instance, best in enumerate(best_lists(problem, n, n_jobs)):
            rows = batch.slice_of(instance)
            for number, (codes, _) in enumerate(best):
                labels[number, rows], exist[number, instance] = codes, True
        return cls(labels, exist)

    def with_truth(self, truth: Truth) -> Candidates:
        """Return the truth first, then those that differ from it and from each other."""
        labels = np.concatenate([truth.labels[None].astype(np.int32), self.labels])
        exist = np.concatenate([np.ones((1, self.exist.shape[1]), bool), self.exist])
        for instance in range(truth.batch.n_instances):
            rows = truth.batch.slice_of(instance)
            seen: set[bytes] = set()
            for number in np.flatnonzero(exist[:, instance]):
                key = labels[number, rows].tobytes()
                exist[number, instance] = key not in seen
                seen.add(key)
        return Candidates(labels, exist)

    def losses(self, losses: WholeLosses) -> Array64:
        """Return (n, instances) losses, 0 where there is no candidate."""
        batch, values = losses.truth.batch, np.zeros(self.exist.shape)
        for instance in range(batch.n_instances):
            numbers = np.flatnonzero(self.exist[:, instance])
            labels = self.labels[numbers, batch.slice_of(instance)]
            values[numbers, instance] = losses.of_instance(instance, labels)
        return values

    def shares(self, problem: Problem) -> Array64:
        """Return (n, instances) probabilities among the candidates."""
        scores = np.stack([labelling_scores(problem, codes) for codes in self.labels])
        return softmax(np.where(self.exist, scores, -np.inf))


def add_weighted_counts(
    total: FloatArray,
    truth: Truth,
    name: ScoreName,
    sharing: Sharing,
    labels: npt.NDArray[np.int32],
    weights: Array64,
) -> None:
    """Add the parts of labellings (n, rows), times weights (n, instances), to ``total``."""
    for codes, weight in zip(labels, weights, strict=True):
        if weight.any():
            by_row = np.repeat(weight, truth.batch.lengths)
            add_counts(total, truth, name, sharing, codes, by_row)


def softmax(exponents: Array64) -> Array64:
    """Return the softmax over the first axis; 0 where all are -inf."""
    top = exponents.max(axis=0, initial=-np.inf)
    p = np.exp(exponents - np.where(np.isneginf(top), 0.0, top))
    return np.asarray(p / np.maximum(p.sum(axis=0), np.finfo(float).tiny))


def check_candidates(source: Any, n: Any, seed: Any) -> None:
    """Raise ValueError at settings of candidates that are invalid."""
    if source not in (None, "samples", "kbest"):
        raise ValueError(f'candidates is {source!r}: choose one of "samples", "kbest", or None')
    check_whole("n_candidates", n, 2)
    check_whole("seed", seed, 0, SEED_RANGE - 1)


def bind_either(
    task_loss: TaskLoss, truth: Truth, source: Source | None
) -> PositionCosts | WholeLosses:
    """Return a loss with the truth; raise ValueError if it is exact and candidates are set."""
    costs = bind(task_loss, truth)
    if isinstance(costs, PositionCosts) and source is not None:
        raise ValueError(
            f"candidates is {source!r}, but this task_loss is a sum over positions, "
            "exact over all labellings: leave candidates out"
        )
    return costs
