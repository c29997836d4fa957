"""What trainers ask of an objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from crfx.inference.problem import Problem
from crfx.objectives.curvature import Curvature
from crfx.scores import FloatArray

PartName = Literal["node", "edge", "each_edge", "ends"]
"""Scores that may move: nodes, tables shared by edges, one table per edge, or start and end."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Value, and gradient and curvature of the parts that were asked for, by name of the scores.

    ``gradient["edge"]`` has the shape of the scores it differentiates: a table (or one per type)
    for the part "edge", (rows, K, ..., K) for "each_edge", zero where no edge ends.
    """

    value: float
    gradient: dict[str, FloatArray]
    curvature: dict[str, FloatArray]
    mean_gamma: float | None = None


class Objective(Protocol):
    """Scores in; value, gradient and curvature out."""

    curvature_kind: Literal["bound", "diagonal", "none"]

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores.  No parts: the value alone; None: no curvature.

        Curvature is that of each part by itself.  Where two parts move at once, the quadratic term
        is at most twice the sum of theirs: steps up to the full one do not raise the bound.
        """
        ...
