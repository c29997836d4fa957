"""From a checked problem to the arguments of the compiled core."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.inference.problem import Problem
from crfx.messages import shown
from crfx.scores import FloatArray

# One of _core.Problem32 and _core.Problem64. Which one is known at run time only, when it is handed
# on together with arrays of its own dtype.
NativeProblem: TypeAlias = Any


def native_problem(problem: Problem) -> NativeProblem:
    """Hand the arrays to the core, which views and does not copy them.

    In a forest this also finds the visit order, and refuses parents that are out of range or form a
    cycle.  Without edge scores a table of zeros stands in: positions are then independent.
    """
    scores, batch = problem.scores, problem.batch
    edge, sharing, order = scores.edge, problem.sharing, problem.order
    if edge is None:
        edge, sharing, order = np.zeros((scores.n_labels,) * 2, scores.dtype), "shared", 1
    if sharing == "typed" and batch.edge_types is None:
        raise ValueError("edge scores have a table per edge type, but the batch has no edge_types")
    kind: Any = _core.Problem32 if scores.dtype == np.float32 else _core.Problem64
    return kind(
        scores.node,
        edge,
        batch.offsets,
        batch.parents,
        batch.edge_types if sharing == "typed" else None,
        scores.start,
        scores.end,
        order,
        sharing,
    )


class EdgeOutput:
    """The array that edge marginals (or gradients) are written to, summed or one table per row."""

    __slots__ = ("each", "sum")

    def __init__(self, problem: Problem, how: str | None) -> None:
        self.each: FloatArray | None = None
        self.sum: npt.NDArray[np.float64] | None = None
        check_option("edge_marginals", how, ("sum", "each", None))
        if how is None or problem.scores.edge is None:
            return
        table = (problem.scores.n_labels,) * problem.structure.n_label_axes
        if how == "each":
            self.each = np.zeros((problem.batch.n_rows, *table), problem.scores.dtype)
        elif problem.sharing == "typed":
            self.sum = np.zeros((problem.scores.edge.shape[0], *table))
        else:
            self.sum = np.zeros(table)

    @property
    def result(self) -> FloatArray | None:
        """Whichever of the two there is."""
        return self.sum if self.each is None else self.each


def check_option(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise and list what is allowed."""
    # Not `in` alone, which asks arrays whether they are equal.
    if (value is not None and not isinstance(value, str)) or value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(f"{name} is {shown(value)}: choose one of {choices}")
