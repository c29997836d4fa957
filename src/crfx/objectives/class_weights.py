"""Weights of labels in objectives that judge whole labellings (docs/decisions/0017).

Where the weights of labels are v_1 < v_2 < ..., an objective J becomes

    sum_l (v_l - v_{l-1}) J(labels of weight v_l and more | the other labels), with v_0 = 0:

at level l the lighter labels are given, and only labellings that agree with them compete.  A label
competes at as many levels as have steps that add up to its weight: where positions are independent,
J is a sum over them and each counts with the weight of its true label.  Weights that are all equal
multiply J.  Every level is J on fewer labellings: as convex, and as well bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from crfx.batch import Batch
from crfx.inference.clamping import clamped
from crfx.inference.problem import Problem
from crfx.objectives.base import Evaluation, Objective, PartName
from crfx.objectives.counts import moved_scores
from crfx.objectives.curvature import Curvature
from crfx.objectives.first_order import unit_curvature
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.perceptron import PerceptronLoss
from crfx.objectives.truth import UNKNOWN, Part, Truth
from crfx.scores import FloatArray, IntArray
from crfx.structures import Chain


def likelihood_of(truth: Truth, n_jobs: int | None = None) -> Objective:
    """The likelihood, weighted where labels have weights."""
    if truth.class_weights is None:
        return Likelihood(truth, n_jobs)
    return WeightedLikelihood(truth, n_jobs)


def perceptron_loss_of(truth: Truth, margin: float, n_jobs: int | None = None) -> Objective:
    """The loss of the perceptron, weighted where labels have weights."""
    if truth.class_weights is None:
        return PerceptronLoss(truth, margin, n_jobs)
    return WeightedPerceptronLoss(truth, margin, n_jobs)


@dataclass(frozen=True, eq=False)
class Level:
    """One term of the sum: the instances that have a label of some weight or more.

    The weights of ``truth`` are those of its instances times the step to this level; the labels at
    ``given`` rows of ``part`` are lighter.
    """

    part: Part
    truth: Truth
    given: IntArray

    def problem(self, whole: Problem) -> Problem:
        """Its instances, with only those labellings that agree with the given labels."""
        found = whole.cut(self.part.batch, self.part.rows)
        if not len(self.given):
            return found
        return clamped(found, self.given, self.truth.labels[self.given])


def levels_of(truth: Truth) -> list[Level]:
    """The terms of the sum, for the weights of labels that occur."""
    assert truth.class_weights is not None
    known = truth.labels != UNKNOWN
    own = np.where(known, truth.class_weights[truth.labels], 0.0)
    found, before = [], 0.0
    for weight in np.unique(own[own > 0]).tolist():
        instances = np.unique(truth.batch.instance_of_row[own >= weight])
        part = Part.of(truth.batch, instances)
        step = np.full(len(instances), weight - before)
        if truth.weights is not None:
            step *= truth.weights[instances]
        labels = truth.labels[part.rows]
        given = np.flatnonzero(known[part.rows] & (own[part.rows] < weight))
        level = Truth(part.batch, truth.structure, labels, step, truth.classes)
        found.append(Level(part, level, given))
        before = weight
    return found


class ByLevels:
    """The sum of objectives over levels.  Cost: theirs, on the instances that each level has.

    ``make`` (truth) -> objective.
    """

    curvature_kind: Literal["bound", "diagonal", "none"]

    def __init__(self, truth: Truth, make: Callable[[Truth], Objective]) -> None:
        self.truth, self._make = truth, make

    @cached_property
    def _levels(self) -> list[tuple[Level, Objective]]:
        return [(level, self._make(level.truth)) for level in levels_of(self.truth)]

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        value, gradient = 0.0, _zeros(problem, parts)
        curved = {} if curvature is None else _zeros(problem, parts)
        by_row = {"node"} | ({"edge"} if "each_edge" in parts else set())
        for level, objective in self._levels:
            found = objective.evaluate(level.problem(problem), parts, curvature)
            value += found.value
            for total, own in ((gradient, found.gradient), (curved, found.curvature)):
                for name, array in own.items():
                    total[name][level.part.rows if name in by_row else ...] += array
        if curvature is not None and curvature.first_order:
            curved = unit_curvature(self.truth, problem, parts)
        return Evaluation(value, gradient, curved)


def _zeros(problem: Problem, parts: Sequence[PartName]) -> dict[str, FloatArray]:
    found: dict[str, FloatArray] = {}
    for part in parts:
        for name, shape in moved_scores(problem, part).items():
            by_row = name == "node" or part == "each_edge"
            found[name] = np.zeros(shape, problem.scores.dtype if by_row else np.float64)
    return found


class WeightedLikelihood(ByLevels):
    """sum_i w_i sum_l (v_l - v_{l-1}) -log p(labels of weight v_l or more | the others, x).

    Convex as the likelihood is, and its bounds are those of log Z over fewer labellings.  Without
    edges it is the likelihood of positions, each with its own weight.
    """

    curvature_kind: Literal["bound", "diagonal", "none"] = "bound"

    def __init__(self, truth: Truth, n_jobs: int | None = None) -> None:
        super().__init__(truth, lambda own: Likelihood(own, n_jobs))
        self.n_jobs = n_jobs

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        scores = problem.scores
        if scores.edge is not None or scores.start is not None or scores.end is not None:
            return super().evaluate(problem, parts, curvature)
        alone = Problem(self._positions.truth.batch, scores, Chain(1), "none")
        return self._positions.evaluate(alone, parts, curvature)

    @cached_property
    def _positions(self) -> Likelihood:
        """Every position an instance of its own."""
        truth = self.truth
        batch = Batch.from_lengths(np.ones(truth.batch.n_rows, np.int64))
        alone = Truth(batch, Chain(1), truth.labels, truth.position_weights)
        return Likelihood(alone, self.n_jobs)


class WeightedPerceptronLoss(ByLevels):
    """sum_l (v_l - v_{l-1}) of the perceptron's losses: the best labelling that agrees with the
    lighter labels, against the truth.
    """

    curvature_kind: Literal["bound", "diagonal", "none"] = "none"

    def __init__(self, truth: Truth, margin: float = 0.0, n_jobs: int | None = None) -> None:
        super().__init__(truth, lambda own: PerceptronLoss(own, margin, n_jobs))
        self.margin = margin
