"""The second derivative that a step uses: a bound on the Hessian, its diagonal, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from crfx.objectives.task_loss import is_number

BOUNDS = ("mixing", "dobrushin", "exact", "length")
CurvatureOption: TypeAlias = (
    Literal["auto", "mixing", "dobrushin", "exact", "length", "diagonal"] | float | None
)

ENDS_GAMMA = 4.0
"""Start and end events of one chain: each moves itself and the other by an L1 distance of 2."""
LEAST_CURVATURE = 1e-16
"""Keeps leaves of rows that are all but certain finite where nothing regularises."""


@dataclass(frozen=True)
class Curvature:
    """gamma * p * (1 - p) with gamma from ``bound``, times ``factor``; or 1 if first order.

    ``bound`` is an option of ``crfx.inference.sum_product``, or None: gamma = 1.
    """

    bound: str | None
    factor: float = 1.0
    first_order: bool = False

    @property
    def ends_factor(self) -> float:
        """Gamma of start and end scores."""
        return self.factor if self.bound is None else ENDS_GAMMA


def parse(option: CurvatureOption) -> Curvature:
    """Read the estimators' argument ``curvature``.

    "auto" is "mixing", which holds on forests and on chains of every order (docs/decisions/0004).
    """
    if option is None:
        return Curvature(None, first_order=True)
    if isinstance(option, str):
        if option in BOUNDS:
            return Curvature(option)
        if option in ("auto", "diagonal"):
            return Curvature("mixing" if option == "auto" else None)
    elif is_number(option) and 0 < option < np.inf:
        return Curvature(None, factor=float(option))
    choices = ", ".join(map(repr, ("auto", *BOUNDS, "diagonal")))
    raise ValueError(f"curvature is {option!r}: choose one of {choices}, a positive number or None")
