"""What trainers ask of an objective, and what estimators ask of one without data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from crfx.inference.problem import Problem
from crfx.objectives.curvature import Curvature
from crfx.objectives.task_loss import TaskLoss
from crfx.objectives.truth import Truth
from crfx.scores import FloatArray

PartName = Literal["node", "edge", "each_edge", "ends"]
"""Scores that may move: nodes, tables shared by edges, one table per edge, or start and end."""
CurvatureKind = Literal["bound", "diagonal", "none"]

MOST_LISTED = 10_000_000
"""Candidates, samples and units: more would not fit into memory."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Value, and gradient and curvature of the requested parts, by name of the scores.

    ``gradient["edge"]`` has the shape of the scores it differentiates: a table (or one per type)
    for the part "edge", (rows, K, ..., K) for "each_edge", zero where no edge ends.
    """

    value: float
    gradient: dict[str, FloatArray]
    curvature: dict[str, FloatArray]
    mean_gamma: float | None = None


class Objective(Protocol):
    """Scores in; value, gradient and curvature out."""

    curvature_kind: CurvatureKind

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores.  No parts: the value alone; None: no curvature.

        Curvature is that of each part by itself.  Where two parts move at once, the quadratic term
        is at most twice the sum of theirs: steps up to the full one do not raise the bound.
        """
        ...


class Unbound(Protocol):
    """An objective without data: a name, settings, and `bind`.

    ``uses_loss`` says whether it needs a task loss.  Two more attributes are optional:
    ``curvatures``, the settings of `curvature` that it allows (default: all), and
    ``weighs_classes``, whether it supports weights of labels (default: False).
    """

    @property
    def name(self) -> str:
        """The name that estimators know it by."""
        ...

    @property
    def uses_loss(self) -> bool:
        """Whether it needs a task loss."""
        ...

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """Return the objective for the truth of a batch."""
        ...


def check_whole(name: str, value: Any, least: int, most: int = MOST_LISTED) -> None:
    """Raise ValueError unless a setting is a whole number in a range."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not least <= value <= most:
        raise ValueError(
            f"{name} is {value!r}: it must be a whole number between {least} and {most}"
        )
