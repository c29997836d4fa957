"""The loss-scaled objective (Volkovs et al. 2011, Eq. 5): exact for short instances.

log sum_y exp(l(y) (1 + score(y) - score(truth))): mistakes count by their loss, and only as far as
they are more likely than the truth.  It does not factorise over positions.  Where costs are whole
numbers the core sums it exactly by counting errors, at a cost cubic in the length; longer instances
are sampled (`crfx.objectives.scaled_samples`).

It is convex, and has a curvature of its own: E[2 m l^2 d], m the number of wrong positions and d
whether exactly one of truth and labelling uses a label; for edges, m counts those that differ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crfx.objectives.base import Objective
from crfx.objectives.by_parts import ByParts
from crfx.objectives.scaled_exact import ExactLossScaled
from crfx.objectives.scaled_samples import SampledLossScaled
from crfx.objectives.task_loss import PositionCosts
from crfx.objectives.truth import Part

MOST_COST = 10_000
"""Of a label: larger costs are no errors to be counted."""


def loss_scaled(
    costs: PositionCosts, longest: int, n_samples: int, seed: int = 0, n_jobs: int | None = None
) -> ByParts:
    """Exact for instances of up to ``longest`` positions if costs are whole; else sampled."""
    truth = costs.truth
    truth.check_all_known("loss_scaled")
    whole = (costs.table == costs.table.round()).all() and costs.table.max() <= MOST_COST
    short = truth.batch.lengths <= (longest if whole else -1)

    def part_of(chosen: Any) -> tuple[Part, PositionCosts]:
        part = Part.of(truth.batch, np.flatnonzero(chosen))
        return part, replace(costs, truth=truth.take(part.instances)[0])

    objectives: list[tuple[Part, Objective]] = []
    if short.any() or not len(short):
        part, own = part_of(short)
        objectives.append((part, ExactLossScaled(own, n_jobs)))
    if not short.all():
        part, own = part_of(~short)
        objectives.append((part, SampledLossScaled(own, n_samples, seed, n_jobs)))
    return ByParts(objectives)
