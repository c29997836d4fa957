"""Weights of labels in objectives that judge whole labellings (docs/decisions/0017).

Where the weights of labels are v_1 < v_2 < ..., an objective J becomes

    sum_l (v_l - v_{l-1}) J(truth of which only the labels of weight v_l and more are known),

with v_0 = 0.  A label is known in as many terms as have steps that add up to its weight: where
positions are independent, J is a sum over them and each counts with the weight of its true label.
Weights that are all 1 leave J as it is; all equal, they multiply it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crfx.batch import Batch
from crfx.inference.problem import Problem
from crfx.inference.results import SumProduct
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.counts import edges_of, moved_scores
from crfx.objectives.curvature import Curvature
from crfx.objectives.likelihood import SCORE_NAMES, Likelihood
from crfx.objectives.perceptron import PerceptronLoss
from crfx.objectives.truth import UNKNOWN, Part, ScoreName, Truth
from crfx.scores import FloatArray, Sharing, weighted_sum
from crfx.structures import Chain


def likelihood_of(truth: Truth, n_jobs: int | None = None) -> Likelihood:
    """The likelihood, weighted where labels have weights."""
    if truth.class_weights is None:
        return Likelihood(truth, n_jobs)
    return WeightedLikelihood(truth, n_jobs)


def perceptron_loss_of(truth: Truth, margin: float, n_jobs: int | None = None) -> PerceptronLoss:
    """The loss of the perceptron, weighted where labels have weights."""
    kind = PerceptronLoss if truth.class_weights is None else WeightedPerceptronLoss
    return kind(truth, margin, n_jobs)


@dataclass(frozen=True, eq=False)
class Level:
    """One term of the sum: instances with a label of some weight or more, no others known.

    The weights of ``truth`` are those of its instances times the step to this level.
    """

    part: Part
    truth: Truth


def levels_of(truth: Truth) -> list[Level]:
    """The terms of the sum, for the weights of labels that occur."""
    assert truth.class_weights is not None
    own = np.where(truth.labels == UNKNOWN, 0.0, truth.class_weights[truth.labels])
    found, before = [], 0.0
    for weight in np.unique(own[own > 0]).tolist():
        known = own >= weight
        instances = np.unique(truth.batch.instance_of_row[known])
        part = Part.of(truth.batch, instances)
        step = np.full(len(instances), weight - before)
        if truth.weights is not None:
            step *= truth.weights[instances]
        labels = np.where(known, truth.labels, UNKNOWN)[part.rows]
        found.append(Level(part, Truth(part.batch, truth.structure, labels, step, truth.classes)))
        before = weight
    return found


class WeightedLikelihood(Likelihood):
    """sum_i w_i sum_l (v_l - v_{l-1}) (log Z_i - log Z_i(labels of weight v_l or more)).

    log Z_i has the largest weight of an instance in front, and so have its curvature bounds; the
    other terms are concave and add none.  One sum-product, and for every weight but the smallest
    one over the instances that have such a label.  Without edges it is the likelihood of
    positions, each with its own weight, and convex.
    """

    def __init__(self, truth: Truth, n_jobs: int | None = None) -> None:
        super().__init__(truth.by_instance(), n_jobs)
        self._given = truth

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        scores = problem.scores
        if scores.edge is None and scores.start is None and scores.end is None:
            truth = self._positions.truth
            alone = Problem(truth.batch, scores, Chain(1), "none")
            return self._positions.evaluate(alone, parts, curvature)
        self.target = LevelTarget.of(self._levels, problem, edges_of(parts))
        return super().evaluate(problem, parts, curvature)

    @cached_property
    def _levels(self) -> list[tuple[Level, Likelihood]]:
        found = levels_of(self._given)
        return [(level, Likelihood(level.truth, self.n_jobs)) for level in found]

    @cached_property
    def _positions(self) -> Likelihood:
        """Every position an instance of its own."""
        given = self._given
        weights = given.position_weights
        assert weights is not None
        batch = Batch.from_lengths(np.ones(given.batch.n_rows, np.int64))
        return Likelihood(Truth(batch, Chain(1), given.labels, weights), self.n_jobs)

    def _clamped(self, problem: Problem, edges: str | None) -> SumProduct | None:
        """What is known is in the target."""
        return None

    def _known_score(self, problem: Problem) -> float:
        assert isinstance(self.target, LevelTarget)
        return self.target.total(problem)


@dataclass(frozen=True, eq=False)
class LevelTarget:
    """What is known at each level, by sums over the labellings that agree with it; a `Target`."""

    levels: list[tuple[Level, SumProduct | None]]

    @classmethod
    def of(
        cls, levels: list[tuple[Level, Likelihood]], problem: Problem, edges: str | None
    ) -> LevelTarget:
        """Sum over what is not known, of the instances where anything is not."""
        found = []
        for level, likelihood in levels:
            clamped = None
            if level.truth.partial is not None:
                own = problem.cut(level.part.batch, level.part.rows)
                clamped = likelihood._clamped(own, edges)
            found.append((level, clamped))
        return cls(found)

    def total(self, problem: Problem) -> float:
        """The log of all these sums, weights counted."""
        found = 0.0
        for level, clamped in self.levels:
            found += sum(
                self._score(level, name, scores, problem.sharing)
                for name in SCORE_NAMES
                if (scores := getattr(problem.scores, name)) is not None
            )
            if clamped is not None and level.truth.partial is not None:
                assert level.truth.weights is not None
                weights = level.truth.weights[level.truth.partial.instances]
                found += float(weighted_sum(weights, clamped.log_z))
        return found

    def score(self, name: ScoreName, scores: FloatArray, sharing: Sharing) -> float:
        """Of the instances that are fully known; `total` has all."""
        return sum(self._score(level, name, scores, sharing) for level, _ in self.levels)

    def _score(self, level: Level, name: ScoreName, scores: FloatArray, sharing: Sharing) -> float:
        own = scores[level.part.rows] if _has_rows(name, sharing) else scores
        return level.truth.score(name, own, sharing)

    def subtract_from(self, name: ScoreName, expected: FloatArray, sharing: Sharing) -> None:
        """Expected counts minus those given what is known, in place."""
        for level, clamped in self.levels:
            truth = level.truth
            if not _has_rows(name, sharing):
                truth.subtract_from(name, expected, sharing)
                if clamped is not None:
                    expected -= _shared_counts(truth, name, clamped).astype(expected.dtype)
                continue
            own = expected[level.part.rows]
            truth.subtract_from(name, own, sharing)
            if clamped is not None and truth.partial is not None:
                assert truth.row_weights is not None
                rows = truth.partial.rows
                p = clamped.node if name == "node" else clamped.edge
                assert p is not None
                weights = truth.row_weights[rows].reshape((-1,) + (1,) * (p.ndim - 1))
                own[rows] -= (weights * p).astype(own.dtype)
            expected[level.part.rows] = own


def _has_rows(name: ScoreName, sharing: Sharing) -> bool:
    """Whether every row has scores of its own."""
    return name == "node" or (name == "edge" and sharing == "each")


def _shared_counts(truth: Truth, name: ScoreName, clamped: SumProduct) -> FloatArray:
    """Of tables that edges share, and of ends; weights counted."""
    if name == "edge":
        assert clamped.edge is not None
        return clamped.edge
    assert truth.partial is not None
    assert truth.row_weights is not None
    own = truth.rows_with(name, truth.partial.batch)
    weights = truth.row_weights[truth.partial.rows[own]].astype(np.float64)
    return weighted_sum(weights, clamped.node[own])


class WeightedPerceptronLoss(PerceptronLoss):
    """The perceptron's loss, summed over levels: the truth of each is the best labelling that
    agrees with its labels.
    """

    def __init__(self, truth: Truth, margin: float = 0.0, n_jobs: int | None = None) -> None:
        super().__init__(truth, margin, n_jobs)
        self._levels = [
            (level.part, PerceptronLoss(level.truth, margin, n_jobs)) for level in levels_of(truth)
        ]

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        value, dtype = 0.0, problem.scores.node.dtype
        gradient: dict[str, FloatArray] = {
            name: np.zeros(shape, dtype)
            for part in parts
            for name, shape in moved_scores(problem, part).items()
        }
        for level, loss in self._levels:
            own = loss.evaluate(problem.cut(level.batch, level.rows), parts, curvature)
            value += own.value
            for name, slope in own.gradient.items():
                if name == "node" or (name == "edge" and "each_edge" in parts):
                    gradient[name][level.rows] += slope
                else:
                    gradient[name] += slope
        return Evaluation(value, gradient, {})
