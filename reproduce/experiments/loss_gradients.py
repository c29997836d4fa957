"""Figure 1 of Volkovs, Larochelle and Zemel (2011): where five objectives push energies.

Five configurations of energies -1, -0.5, 0, 0.5, 1 and losses 5, 1, 0, 1, 5; minus the derivative
of each objective in the energies, to length 1: below 0 the energy is lowered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfx.testing.enumerated_objectives import OBJECTIVES
from reproduce.experiments.task import Outcome, Task

ENERGIES = (-1.0, -0.5, 0.0, 0.5, 1.0)
LOSSES = (5.0, 1.0, 0.0, 1.0, 5.0)


@dataclass(frozen=True, slots=True)
class Options:
    """`objective`: a name in `crfx.testing.enumerated_objectives`; with default options, T = 1."""

    objective: str


def run(task: Task) -> Outcome:
    """Return the slopes; the only unit is "figure"."""
    task.only_unit("figure")
    options = task.options(Options)
    if options.objective not in OBJECTIVES:
        known = ", ".join(OBJECTIVES)
        raise ValueError(f"objective is {options.objective!r}: choose one of {known}")
    evaluation = OBJECTIVES[options.objective](ENERGIES, LOSSES)
    slope = -evaluation.gradient / np.linalg.norm(evaluation.gradient)
    figures = {f"at_{number}": float(each) for number, each in enumerate(slope, 1)}
    return Outcome({**figures, "value": float(evaluation.value)})
