"""Losses of whole labellings, on candidates: samples of the model, or its k best labellings.

A loss such as 1 - F1 of spans is no sum over positions, so no exact sum over all labellings is in
reach.  Candidates are found anew in every evaluation, samples from the same seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from crfx.inference.max_product import best_lists
from crfx.inference.problem import Problem
from crfx.inference.sampling import drawn
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.bound_losses import WholeLosses
from crfx.objectives.counts import add_counts, labelling_scores, moved_scores, sharing_of
from crfx.objectives.curvature import Curvature
from crfx.objectives.expected_loss import BorrowedCurvature
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.truth import ScoreName, Truth
from crfx.scores import FloatArray, Sharing, weighted_sum

Array64 = npt.NDArray[np.float64]
Source = Literal["samples", "kbest"]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Some labellings of every instance: ``labels`` (n, rows), and which of them ``exist``
    (n, instances): lists may be shorter than n, and repeat nothing where asked.
    """

    labels: npt.NDArray[np.int32]
    exist: npt.NDArray[np.bool_]

    @classmethod
    def found(
        cls, problem: Problem, source: Source, n: int, seed: int, n_jobs: int | None
    ) -> Candidates:
        """Samples, or the best."""
        batch = problem.batch
        if source == "samples":
            labels = drawn(problem, n, seed, n_jobs)
            return cls(labels, np.ones((n, batch.n_instances), bool))
        labels = np.zeros((n, batch.n_rows), np.int32)
        exist = np.zeros((n, batch.n_instances), bool)
        for instance, best in enumerate(best_lists(problem, n, n_jobs)):
            rows = batch.slice_of(instance)
            for number, (own, _) in enumerate(best):
                labels[number, rows], exist[number, instance] = own, True
        return cls(labels, exist)

    def with_truth(self, truth: Truth) -> Candidates:
        """The truth first, then those that differ from it and from each other."""
        labels = np.concatenate([truth.labels[None].astype(np.int32), self.labels])
        exist = np.concatenate([np.ones((1, self.exist.shape[1]), bool), self.exist])
        for instance in range(truth.batch.n_instances):
            own = labels[:, truth.batch.slice_of(instance)]
            seen: set[bytes] = set()
            for number in np.flatnonzero(exist[:, instance]):
                key = own[number].tobytes()
                exist[number, instance] = key not in seen
                seen.add(key)
        return Candidates(labels, exist)

    def losses(self, losses: WholeLosses) -> Array64:
        """(n, instances), 0 where there is none."""
        batch, found = losses.truth.batch, np.zeros(self.exist.shape)
        for instance in range(batch.n_instances):
            own = np.flatnonzero(self.exist[:, instance])
            labels = self.labels[own, batch.slice_of(instance)]
            found[own, instance] = losses.of_instance(instance, labels)
        return found

    def shares(self, problem: Problem) -> Array64:
        """(n, instances) probabilities among the candidates."""
        scores = np.stack([labelling_scores(problem, own) for own in self.labels])
        return _softmax(np.where(self.exist, scores, -np.inf))


class ListedExpectedLoss:
    """sum_i w_i E[loss_i], the mean over samples, or over the k best as they are probable.

    Of samples the gradient is without bias, Cov(loss, parts); of k-best lists value and gradient
    are exact for the model that knows these labellings alone.
    """

    curvature_kind: Literal["bound", "diagonal", "none"] = "none"

    def __init__(
        self, losses: WholeLosses, source: Source, n: int, seed: int, n_jobs: int | None = None
    ) -> None:
        losses.truth.check_no_class_weights('"expected_loss" with a loss of whole labellings')
        self.losses, self.truth, self.n_jobs = losses, losses.truth, n_jobs
        self.source, self.n, self.seed = source, n, seed
        # A mistake is worth some share of the whole.
        shares = 1.0 / np.maximum(losses.truth.batch.lengths, 1)
        self._borrowed = BorrowedCurvature(losses.truth, shares, n_jobs)

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        found = Candidates.found(problem, self.source, self.n, self.seed, self.n_jobs)
        losses, truth = found.losses(self.losses), self.truth
        p = np.full(losses.shape, 1 / self.n)
        if self.source == "kbest":
            p = found.shares(problem)
        value = (p * losses).sum(axis=0)
        pull = p * (losses - value)
        if self.source == "samples":
            pull *= self.n / (self.n - 1)
        if truth.weights is not None:
            pull *= truth.weights
        gradient: dict[str, FloatArray] = {}
        for part in parts:
            sharing = sharing_of(part, problem.sharing)
            for name, shape in moved_scores(problem, part).items():
                by_row = name == "node" or part == "each_edge"
                gradient[name] = np.zeros(shape, problem.scores.dtype if by_row else np.float64)
                _add_all(gradient[name], truth, name, sharing, found.labels, pull)
        return Evaluation(
            float(weighted_sum(truth.weights, value)),
            gradient,
            self._borrowed(problem, parts, curvature),
        )


class ListedDivergence(Likelihood):
    """sum_i w_i KL(q_i || p_i), with q proportional to exp(-loss / T) on the truth and candidates.

    log Z is exact, over all labellings, so the curvature of the likelihood holds.
    """

    def __init__(
        self,
        losses: WholeLosses,
        temperature: float,
        source: Source,
        n: int,
        seed: int,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(losses.truth, n_jobs)
        losses.truth.check_all_known("kl")
        losses.truth.check_no_class_weights('"kl"')
        self.losses, self.temperature = losses, temperature
        self.source: Source = source
        self.n, self.seed = n, seed

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        found = Candidates.found(problem, self.source, self.n, self.seed, self.n_jobs)
        found = found.with_truth(self.truth)
        exponents = np.where(found.exist, found.losses(self.losses) / -self.temperature, -np.inf)
        q = _softmax(exponents)
        entropy = -(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=0)
        if self.truth.weights is not None:
            q, entropy = q * self.truth.weights, entropy * self.truth.weights
        self.target = ListedTarget(self.truth, found.labels, q)
        whole = super().evaluate(problem, parts, curvature)
        return Evaluation(
            whole.value - float(entropy.sum()), whole.gradient, whole.curvature, whole.mean_gamma
        )


@dataclass(frozen=True, eq=False)
class ListedTarget:
    """Labellings (n, rows) of every instance with weights (n, instances); a `Target`."""

    truth: Truth
    labels: npt.NDArray[np.int32]
    weights: Array64

    def score(self, name: ScoreName, scores: FloatArray, sharing: Sharing) -> float:
        """What they score, weighted."""
        counts = np.zeros(scores.shape)
        _add_all(counts, self.truth, name, sharing, self.labels, self.weights)
        used = counts != 0
        return float((counts[used] * scores[used]).sum(dtype=np.float64))

    def subtract_from(self, name: ScoreName, expected: FloatArray, sharing: Sharing) -> None:
        """Expected counts minus theirs, in place."""
        _add_all(expected, self.truth, name, sharing, self.labels, -self.weights)


def _add_all(
    total: FloatArray,
    truth: Truth,
    name: ScoreName,
    sharing: Sharing,
    labels: npt.NDArray[np.int32],
    weights: Array64,
) -> None:
    for own, weight in zip(labels, weights, strict=True):
        if weight.any():
            by_row = np.repeat(weight, truth.batch.lengths)
            add_counts(total, truth, name, sharing, own, by_row)


def _softmax(exponents: Array64) -> Array64:
    """Over the first axis; 0 where all are -inf."""
    top = exponents.max(axis=0, initial=-np.inf)
    p = np.exp(exponents - np.where(np.isneginf(top), 0.0, top))
    return np.asarray(p / np.maximum(p.sum(axis=0), np.finfo(float).tiny))
