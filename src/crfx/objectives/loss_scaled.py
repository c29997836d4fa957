"""The loss-scaled objective (Volkovs et al. 2011, Eq. 5): exact for short instances.

log sum_y exp(l(y) (1 + score(y) - score(truth))): mistakes count by their loss, and only as far as
they are more likely than the truth.  It does not factorise over positions.  The core sums it
exactly by counting what labellings cost, at a price that grows with the length times the square of
the largest total; beyond that instances are sampled (`crfx.objectives.scaled_samples`).

It is convex, and has a curvature of its own: E[2 m l^2 d], m the number of wrong positions and d
whether exactly one of truth and labelling uses a label; for edges, m counts those that differ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.objectives.base import Objective
from crfx.objectives.bound_losses import PositionCosts
from crfx.objectives.by_parts import ByParts
from crfx.objectives.scaled_exact import ExactLossScaled
from crfx.objectives.scaled_samples import SampledLossScaled
from crfx.objectives.truth import Part

NEARLY = 1e-9
"""Costs that differ by a smaller share from a multiple of a unit are multiples."""
MOST_PARTS = 100
"""Of the smallest cost, to look for a unit among."""


def loss_scaled(
    costs: PositionCosts, longest: int, n_samples: int, seed: int = 0, n_jobs: int | None = None
) -> ByParts:
    """Exact where no labelling costs more than ``longest`` units, else sampled.

    The unit is the largest of which all costs are multiples: 1 for a Hamming loss, whose largest
    total is the number of positions.
    """
    truth = costs.truth
    truth.check_all_known("loss_scaled")
    truth.check_no_class_weights('"loss_scaled"')
    unit = unit_of(costs.table)
    lengths = truth.batch.lengths
    short = lengths == 0
    if unit is not None:
        most = np.append(0.0, np.cumsum(costs.table.max(axis=1)[truth.labels] / unit))
        short = np.diff(most[truth.batch.offsets]) <= longest + NEARLY

    def part_of(chosen: Any) -> tuple[Part, PositionCosts]:
        part = Part.of(truth.batch, np.flatnonzero(chosen))
        return part, replace(costs, truth=truth.take(part.instances)[0])

    objectives: list[tuple[Part, Objective]] = []
    if short.any() or not len(short):
        part, own = part_of(short)
        objectives.append((part, ExactLossScaled(own, unit or 1.0, n_jobs)))
    if not short.all():
        part, own = part_of(~short)
        objectives.append((part, SampledLossScaled(own, n_samples, seed, n_jobs)))
    return ByParts(objectives)


def unit_of(table: npt.NDArray[np.float64]) -> float | None:
    """The largest number of which all costs are multiples; None where there is none to be seen.

    >>> unit_of(np.array([[0.0, 0.5], [1.5, 0.0]])), unit_of(np.array([[0.0, 4.0], [6.0, 0.0]]))
    (0.5, 2.0)
    """
    some = table[table > 0]
    if not some.size:
        return 1.0
    if (some == some.round()).all():
        return float(np.gcd.reduce(some.astype(np.int64)))
    for parts in range(1, MOST_PARTS + 1):
        ratios = some * (parts / some.min())
        if (np.abs(ratios - ratios.round()) < NEARLY * ratios).all():
            return float(some.min() / parts)
    return None
