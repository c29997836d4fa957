"""Sums of objectives over some instances each.

Weights of labels make such a sum (docs/decisions/0017).  Where they are v_1 < v_2 < ..., an
objective J of whole labellings becomes

    sum_l (v_l - v_{l-1}) J(labels of weight v_l and more | the other labels), with v_0 = 0:

at level l the lighter labels are given, and only labellings that agree with them compete.  A label
competes at as many levels as have steps that add up to its weight: where positions are independent,
J is a sum over them and each counts with the weight of its true label.  Weights that are all equal
multiply J.  Every level is J on fewer labellings: as convex, and as well bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crfx.inference.problem import Part, Problem
from crfx.objectives.base import CurvatureKind, Evaluation, Objective, PartName
from crfx.objectives.counts import unit_curvature, zero_slopes
from crfx.objectives.curvature import Curvature
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import IntArray


class ByParts:
    """The sum of objectives, each over different instances; together they are all instances."""

    curvature_kind: CurvatureKind = "bound"

    def __init__(self, objectives: list[tuple[Part, Objective]]) -> None:
        self.objectives = objectives

    @property
    def notes(self) -> dict[str, float]:
        """The notes of all objectives."""
        notes: dict[str, float] = {}
        for _, objective in self.objectives:
            notes |= getattr(objective, "notes", {})
        return notes

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        if len(self.objectives) == 1:
            return self.objectives[0][1].evaluate(problem, parts, curvature)
        terms = (
            (part, objective.evaluate(problem.cut(part), parts, curvature))
            for part, objective in self.objectives
        )
        return _added_up(terms, problem, parts, curvature)


@dataclass(frozen=True, eq=False)
class Level(Part):
    """One term of the sum over weights: the instances with a label of some weight or more.

    The weights of ``truth`` are those of its instances times the step to this level; the labels at
    ``clamped`` rows of the part are lighter.
    """

    truth: Truth
    clamped: IntArray

    def problem(self, whole: Problem) -> Problem:
        """Return its instances, with only the labellings that agree with the given labels."""
        cut = whole.cut(self)
        if len(self.clamped) == 0:
            return cut
        return cut.clamped(self.clamped, self.truth.labels[self.clamped])


def levels_of(truth: Truth) -> list[Level]:
    """Return the terms of the sum, for the weights of labels that occur."""
    assert truth.class_weights is not None
    known = truth.labels != UNKNOWN
    label_weights = np.where(known, truth.class_weights[truth.labels], 0.0)
    levels, lower = [], 0.0
    for weight in np.unique(label_weights[label_weights > 0]).tolist():
        instances = np.unique(truth.batch.instance_of_row[label_weights >= weight])
        part = Part.of(truth.batch, instances)
        step = np.full(len(instances), weight - lower)
        if truth.weights is not None:
            step *= truth.weights[instances]
        clamped = np.flatnonzero(known[part.rows] & (label_weights[part.rows] < weight))
        labels = truth.labels[part.rows]
        of_level = Truth(part.batch, truth.structure, labels, step, truth.classes)
        levels.append(Level(part.batch, instances, part.rows, of_level, clamped))
        lower = weight
    return levels


class ByLevels:
    """The sum of objectives over levels.  Cost: theirs, on the instances that each level has.

    ``make`` (truth) -> objective.
    """

    curvature_kind: CurvatureKind

    def __init__(self, truth: Truth, make: Callable[[Truth], Objective]) -> None:
        self.truth, self._make = truth, make

    @cached_property
    def _levels(self) -> list[tuple[Level, Objective]]:
        return [(level, self._make(level.truth)) for level in levels_of(self.truth)]

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        terms = (
            (level, objective.evaluate(level.problem(problem), parts, curvature))
            for level, objective in self._levels
        )
        total = _added_up(terms, problem, parts, curvature)
        if curvature is not None and curvature.first_order:
            total.curvature.update(unit_curvature(self.truth, problem, parts))
        return total


def _added_up(
    terms: Iterable[tuple[Part, Evaluation]],
    problem: Problem,
    parts: Sequence[PartName],
    curvature: Curvature | None,
) -> Evaluation:
    """Return the sum of evaluations, each of a part of the problem."""
    value, gradient = 0.0, zero_slopes(problem, parts)
    curved = {} if curvature is None else zero_slopes(problem, parts)
    by_row = {"node", "edge"} if "each_edge" in parts else {"node"}
    for part, term in terms:
        value += term.value
        for total, added in ((gradient, term.gradient), (curved, term.curvature)):
            for name, array in added.items():
                total[name][part.rows if name in by_row else ...] += array
    return Evaluation(value, gradient, curved)
