"""The loss-scaled objective (Volkovs et al. 2011, Eq. 5): exact for short instances.

log sum_y exp(l(y) (1 + score(y) - score(truth))): mistakes count by their loss, and only as far as
they are more likely than the truth.  It does not factorise over positions.  The core sums it
exactly by counting what labellings cost, at a price that grows with the length times the square of
the largest total; longer instances are sampled (`crfx.objectives.scaled_samples`).

It is convex, and has a curvature of its own: E[2 m l^2 d], m the number of wrong positions and d
whether exactly one of truth and labelling uses a label; for edges, m counts those that differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.inference.native import EdgeOutput, native_problem
from crfx.inference.problem import Part, Piece, Problem
from crfx.inference.sampling import SEED_RANGE
from crfx.objectives.base import CurvatureKind, Evaluation, Objective, PartName, check_whole
from crfx.objectives.by_parts import ByParts
from crfx.objectives.costs import PositionCosts, bind_position_costs
from crfx.objectives.counts import edges_of, named_slopes, unit_curvature
from crfx.objectives.curvature import Curvature
from crfx.objectives.scaled_samples import SampledLossScaled, scaled_curvature
from crfx.objectives.task_loss import TaskLoss
from crfx.objectives.truth import Truth
from crfx.scores import FloatArray, weighted_sum
from crfx.threads import thread_count

NEARLY = 1e-9
"""Costs that differ by a smaller share from a multiple of a unit are multiples."""
MOST_PARTS = 100
"""Largest number of units in the smallest cost, in the search for a unit."""


@dataclass(frozen=True)
class LossScaled:
    """Every labelling's lead over the truth, scaled by its loss.

    Parameters
    ----------
    longest : int
        Instances are summed exactly if their labellings cost no more than so many units, the
        largest number of which all costs are multiples: for a Hamming loss, instances of so many
        positions.  The price grows with the length times the square of the largest total.
    n_samples : int
        Number of labellings by which others are sampled (multiple importance sampling).
        ``history_`` holds the number of these instances (``sampled_instances``) and the mean of
        their ``effective_sample_size``: small for long instances, and then a warning.
    seed : int
        Seed of the samples.
    """

    longest: int = 20
    n_samples: int = 100
    seed: int = 0
    name: ClassVar[str] = "loss_scaled"
    uses_loss: ClassVar[bool] = True
    curvatures: ClassVar[tuple[str | None, ...]] = ("auto", None)

    def __post_init__(self) -> None:
        check_whole("longest", self.longest, 0)
        check_whole("n_samples", self.n_samples, 1)
        check_whole("seed", self.seed, 0, SEED_RANGE - 1)

    def bind(self, truth: Truth, loss: TaskLoss, n_jobs: int | None) -> Objective:
        """Return the objective for the truth of a batch and a loss that sums over positions."""
        costs = bind_position_costs(loss, truth, self.name)
        return loss_scaled(costs, self.longest, self.n_samples, self.seed, n_jobs)


def loss_scaled(
    costs: PositionCosts, longest: int, n_samples: int, seed: int = 0, n_jobs: int | None = None
) -> ByParts:
    """Return the objective, exact where no labelling costs more than ``longest`` units.

    The unit is the largest number of which all costs are multiples: 1 for a Hamming loss, whose
    largest total is the number of positions.
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
    """Return the largest number of which all costs are multiples; None if none is found.

    >>> unit_of(np.array([[0.0, 0.5], [1.5, 0.0]])), unit_of(np.array([[0.0, 4.0], [6.0, 0.0]]))
    (0.5, 2.0)
    """
    positive = table[table > 0]
    if not positive.size:
        return 1.0
    if (positive == positive.round()).all():
        return float(np.gcd.reduce(positive.astype(np.int64)))
    for parts in range(1, MOST_PARTS + 1):
        ratios = positive * (parts / positive.min())
        if (np.abs(ratios - ratios.round()) < NEARLY * ratios).all():
            return float(positive.min() / parts)
    return None


class _Sums(NamedTuple):
    """Values (instances,), and gradient and curvature of nodes and of edges."""

    value: npt.NDArray[np.float64]
    node: FloatArray
    node_curvature: FloatArray
    edge: EdgeOutput
    edge_curvature: EdgeOutput


class ExactLossScaled:
    """sum_i w_i log sum_y exp(l_i(y) (1 + score(y) - score(truth))), by counting errors."""

    curvature_kind: CurvatureKind = "bound"

    def __init__(self, costs: PositionCosts, unit: float = 1.0, n_jobs: int | None = None) -> None:
        self.costs, self.truth, self.n_jobs = costs, costs.truth, n_jobs
        self.unit = unit
        counted = replace(costs, table=costs.table / unit, normalize=False)
        self._cost = counted.by_row(np.float64).round().astype(np.int32)
        self._labels = np.ascontiguousarray(costs.truth.labels, np.int32)
        lengths = np.maximum(costs.truth.batch.lengths, 1)
        self._unit = unit / lengths if costs.normalize else np.full(len(lengths), unit)

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Evaluate at a problem's scores."""
        bounded = curvature is not None and not curvature.first_order
        sums = self._sums(problem, parts, bounded)
        value = float(weighted_sum(self.truth.weights, sums.value))
        asked = self.truth, problem, parts
        gradient = named_slopes(*asked, sums.node, sums.edge.result, weigh=True)
        bounds: dict[str, FloatArray] = {}
        if bounded:
            curved = sums.node_curvature, sums.edge_curvature.result
            bounds = scaled_curvature(named_slopes(*asked, *curved, weigh=True))
        elif curvature is not None:
            bounds = unit_curvature(*asked)
        return Evaluation(value, gradient, bounds)

    def _sums(
        self,
        problem: Problem,
        parts: Sequence[PartName],
        bounded: bool,
        piece: Piece | None = None,
    ) -> _Sums:
        """Run the core on a problem, or a piece of it."""
        edges = None if piece is not None and piece.is_short else edges_of(parts)
        sums = _Sums(
            np.empty(problem.batch.n_instances),
            np.zeros_like(problem.scores.node),
            np.zeros_like(problem.scores.node),
            EdgeOutput(problem, edges),
            EdgeOutput(problem, edges),
        )
        pieces = problem.pieces()
        for part in pieces or ():
            of_part = self._sums(part.problem, parts, bounded, part)
            sums.value[part.instances], sums.node[part.rows] = of_part.value, of_part.node
            sums.node_curvature[part.rows] = of_part.node_curvature
            sums.edge.add(part, of_part.edge.result)
            sums.edge_curvature.add(part, of_part.edge_curvature.result)
        if pieces is None:
            self._run_core(problem, bool(parts), bounded, piece, sums)
        return sums

    def _run_core(
        self, problem: Problem, slopes: bool, bounded: bool, piece: Piece | None, sums: _Sums
    ) -> None:
        whole = slice(None)
        rows, instances = (whole, whole) if piece is None else (piece.rows, piece.instances)
        weights = self.truth.weights
        _core.loss_scaled(
            native_problem(problem),
            self._cost[rows],
            self._labels[rows],
            self._unit[instances],
            None if weights is None else weights[instances],
            sums.value,
            sums.node if slopes else None,
            sums.node_curvature if slopes and bounded else None,
            sums.edge.each,
            sums.edge_curvature.each if bounded else None,
            sums.edge.sum,
            sums.edge_curvature.sum if bounded else None,
            thread_count(self.n_jobs),
        )
