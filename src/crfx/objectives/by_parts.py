"""Different objectives for different instances of a batch, summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from crfx.inference.problem import Problem
from crfx.objectives.base import Evaluation, Objective, PartName
from crfx.objectives.curvature import Curvature
from crfx.objectives.truth import Part
from crfx.scores import FloatArray


class ByParts:
    """The sum of objectives, each over instances of its own; together they are all instances."""

    curvature_kind: Literal["bound", "diagonal", "none"] = "bound"

    def __init__(self, objectives: list[tuple[Part, Objective]]) -> None:
        self.objectives = objectives

    @property
    def notes(self) -> dict[str, float]:
        """Of all of them."""
        found: dict[str, float] = {}
        for _, objective in self.objectives:
            found |= getattr(objective, "notes", {})
        return found

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        if len(self.objectives) == 1:
            return self.objectives[0][1].evaluate(problem, parts, curvature)
        by_row = {"node"} | ({"edge"} if "each_edge" in parts else set())
        value, gradient, curved = 0.0, dict[str, FloatArray](), dict[str, FloatArray]()
        for part, objective in self.objectives:
            found = objective.evaluate(problem.cut(part.batch, part.rows), parts, curvature)
            value += found.value
            for total, own in ((gradient, found.gradient), (curved, found.curvature)):
                for name, array in own.items():
                    if name in by_row:
                        shape = (problem.batch.n_rows, *array.shape[1:])
                        total.setdefault(name, np.zeros(shape, array.dtype))[part.rows] = array
                    else:
                        total[name] = total.get(name, 0.0) + array
        return Evaluation(value, gradient, curved)
