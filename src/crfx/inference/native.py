"""The arguments of the compiled core, from a checked problem."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from crfx import _core
from crfx.inference.problem import Piece, Problem
from crfx.messages import shown
from crfx.scores import Array64, FloatArray

NativeProblem: TypeAlias = Any
"""_core.Problem32 or _core.Problem64: which one is known at run time only."""


def native_problem(problem: Problem) -> NativeProblem:
    """Return the core's view of the arrays, without a copy.

    In a forest this also finds the visit order; raises ValueError if parents are out of range or
    form a cycle.  A table of zeros replaces missing edge scores: positions are then independent.
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
    """The array for edge marginals (or gradients), summed or one table per row."""

    def __init__(self, problem: Problem, how: str | None) -> None:
        self.each: FloatArray | None = None
        self.sum: Array64 | None = None
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

    def add(self, piece: Piece, values: FloatArray | None) -> None:
        """Add the values of a piece of the problem; None if it has no edges."""
        if values is not None and self.each is not None:
            self.each[piece.rows] = values
        elif values is not None and self.sum is not None:
            self.sum += values

    @property
    def result(self) -> FloatArray | None:
        """The requested array, if any."""
        return self.sum if self.each is None else self.each


def check_option(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise ValueError, with the allowed values, if an option has another value."""
    # `in` alone would compare arrays elementwise.
    if (value is not None and not isinstance(value, str)) or value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(f"{name} is {shown(value)}: choose one of {choices}")
