"""The loss-scaled objective (Volkovs et al. 2011, Eq. 5): exact for short instances, else sampled.

log sum_y exp(l(y) (1 + score(y) - score(truth))): mistakes count by their loss, and only as far as
they are more likely than the truth.  It does not factorise over positions.  The core sums it
exactly by counting what labellings cost, at a price that grows with the length times the square of
the largest total; longer instances are sampled.

It is convex, and has a curvature of its own: E[2 m l^2 d], m the number of wrong positions and d
whether exactly one of truth and labelling uses a label; for edges, m counts those that differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.errors import BadInstance
from crfx.inference.native import EdgeOutput, native_problem
from crfx.inference.problem import Part, Piece, Problem
from crfx.inference.sampling import SEED_RANGE, drawn
from crfx.inference.sum_product import summed
from crfx.messages import warn
from crfx.objectives.base import CurvatureKind, Evaluation, Objective, PartName, check_whole
from crfx.objectives.by_parts import ByParts
from crfx.objectives.costs import PositionCosts, bind_position_costs
from crfx.objectives.counts import (
    END_NAMES,
    add_counts,
    edges_of,
    labelling_scores,
    moved_scores,
    named_slopes,
    unit_curvature,
)
from crfx.objectives.curvature import LEAST_CURVATURE, Curvature
from crfx.objectives.task_loss import TaskLoss
from crfx.objectives.truth import ScoreName, Truth
from crfx.scores import Array64, FloatArray, IntArray, weighted_sum
from crfx.threads import thread_count

Labels = npt.NDArray[np.int32]

NEARLY = 1e-9
"""Costs that differ by a smaller share from a multiple of a unit are multiples."""
MOST_PARTS = 100
"""Largest number of units in the smallest cost, in the search for a unit."""
FEW_SAMPLES = 3.0
"""Effective samples: fewer cause a warning."""


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

    objectives: list[tuple[Part, Objective]] = []
    for is_exact in (True, False):
        part = Part.of(truth.batch, np.flatnonzero(short == is_exact))
        of_part = replace(costs, truth=truth.take(part.instances)[0])
        if is_exact and (len(part.instances) or not len(short)):
            objectives.append((part, ExactLossScaled(of_part, unit or 1.0, n_jobs)))
        elif len(part.instances):
            objectives.append((part, SampledLossScaled(of_part, n_samples, seed, n_jobs)))
    return ByParts(objectives)


def unit_of(table: Array64) -> float | None:
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
        value, node, curved, edge, curved_edge = self._sums(problem, parts, bounded)
        asked = self.truth, problem, parts
        gradient, bounds = named_slopes(*asked, node, edge, weigh=True), dict[str, FloatArray]()
        if bounded:
            bounds = scaled_curvature(named_slopes(*asked, curved, curved_edge, weigh=True))
        elif curvature is not None:
            bounds = unit_curvature(*asked)
        return Evaluation(float(weighted_sum(self.truth.weights, value)), gradient, bounds)

    def _sums(
        self,
        problem: Problem,
        parts: Sequence[PartName],
        bounded: bool,
        piece: Piece | None = None,
    ) -> tuple[Array64, FloatArray, FloatArray, FloatArray | None, FloatArray | None]:
        """Return values (instances,), gradient and curvature of nodes, and of edges.

        ``problem`` is the whole one, or that of a piece.
        """
        edges_as = None if piece is not None and piece.is_short else edges_of(parts)
        edges, curved_edges = EdgeOutput(problem, edges_as), EdgeOutput(problem, edges_as)
        node, curved = np.zeros_like(problem.scores.node), np.zeros_like(problem.scores.node)
        value, pieces = np.empty(problem.batch.n_instances), problem.pieces()
        for part in pieces or ():
            sums = self._sums(part.problem, parts, bounded, part)
            value[part.instances], node[part.rows], curved[part.rows] = sums[:3]
            edges.add(part, sums[3])
            curved_edges.add(part, sums[4])
        if pieces is None:
            rows = slice(None) if piece is None else piece.rows
            instances = slice(None) if piece is None else piece.instances
            weights = self.truth.weights
            _core.loss_scaled(
                native_problem(problem),
                self._cost[rows],
                self._labels[rows],
                self._unit[instances],
                None if weights is None else weights[instances],
                value,
                node if parts else None,
                curved if parts and bounded else None,
                edges.each,
                curved_edges.each if bounded else None,
                edges.sum,
                curved_edges.sum if bounded else None,
                thread_count(self.n_jobs),
            )
        return value, node, curved, edges.result, curved_edges.result


class SampledLossScaled:
    """sum_i w_i log sum_y exp(l_i(y) (1 + score(y) - score(truth))), the sum by samples.

    Multiple importance sampling.  Weights l(y) (1 + score(y) - score(truth)) explode under samples
    of the model itself.  Among labellings of one loss l, though, the target is the model with
    scores times l.  So labellings are drawn from several models, scores times 1, 2, 4, ... (of a
    loss of one error), raised by the loss; each is weighed against the mixture of all of them (the
    balance heuristic), and the truth, which is known, is counted exactly.  The effective sample
    size measures how far the weights are from equal.

    The same ``seed`` gives the same estimate at the same scores.  ``notes`` has the number of
    instances that are sampled, and the mean of their effective sample sizes in the last evaluation.
    Cost: a sum-product for every scale, log2 of the length, and O(rows) for every sample.
    """

    curvature_kind: CurvatureKind = "bound"

    def __init__(
        self, costs: PositionCosts, n_samples: int, seed: int, n_jobs: int | None = None
    ) -> None:
        self.costs, self.truth, self.n_jobs = costs, costs.truth, n_jobs
        self.n_samples, self.seed, self._warned = n_samples, seed, False
        self.notes = {
            "sampled_instances": float(costs.truth.batch.n_instances),
            "effective_sample_size": float("nan"),
        }

    def evaluate(
        self, problem: Problem, parts: Sequence[PartName], curvature: Curvature | None = None
    ) -> Evaluation:
        """Estimate at a problem's scores."""
        labels, losses, log_weights = self._weighted_samples(problem)
        top = np.maximum(log_weights.max(axis=0), 0.0)  # 0 is the truth's
        weights = np.exp(log_weights - top)
        total = weights.sum(axis=0) + np.exp(-top)
        value = float(weighted_sum(self.truth.weights, top + np.log(total)))
        squares = np.maximum((weights**2).sum(axis=0), np.finfo(float).tiny)
        self._note(weights.sum(axis=0) ** 2 / squares)
        shares = weights / total
        gradient, bounds = self._slopes(problem, parts, labels, losses, shares, curvature)
        return Evaluation(value, gradient, bounds)

    def _note(self, sizes: FloatArray) -> None:
        """Note the mean size; instances without a wrong sample have the truth alone, exactly."""
        positive = sizes[sizes > 0]
        size = float(positive.mean()) if positive.size else float(self.n_samples)
        self.notes["effective_sample_size"] = size
        if size < FEW_SAMPLES and not self._warned:
            self._warned = True
            warn(
                f'objective "loss_scaled" samples {len(sizes)} instances, and their samples are '
                f"worth {size:.1f} each: its gradient is rough; raise n_samples, or longest to sum "
                "exactly, or take another objective",
                RuntimeWarning,
            )

    def _weighted_samples(self, problem: Problem) -> tuple[Labels, FloatArray, FloatArray]:
        """Draw labels (samples, rows) with losses and log weights (samples, instances).

        Weights are divided by the number of samples; -inf for the truth.
        """
        batch, scales = problem.batch, self._scales()
        each = max(1, -(-self.n_samples // len(scales)))
        cost = self.costs.kept_by_row(problem.scores.dtype)
        labels, log_z = [], []
        for number, scale in enumerate(scales):
            model = _scaled(problem, scale, cost)
            labels.append(drawn(model, each, (self.seed + number) % SEED_RANGE, self.n_jobs))
            log_z.append(summed(model, None, None, nodes=False, n_jobs=self.n_jobs).log_z)
        drawn_labels = np.concatenate(labels)
        scores = np.stack([labelling_scores(problem, codes) for codes in drawn_labels])
        costs, rows = self.costs.kept_by_row(np.dtype(np.float64)), np.arange(batch.n_rows)
        losses = np.stack([self._by_instance(costs[rows, codes]) for codes in drawn_labels])
        exponents = (s * scores + losses - z for s, z in zip(scales, log_z, strict=True))
        mixture = np.logaddexp.reduce(list(exponents)) - np.log(len(scales))
        truth = labelling_scores(problem, self.truth.labels)
        if np.isneginf(truth).any():
            instance = int(np.flatnonzero(np.isneginf(truth))[0])
            raise BadInstance(instance, "the -inf scores (constraints) forbid its true labelling")
        log_weights = losses * (1.0 + scores - truth) - mixture - np.log(len(drawn_labels))
        wrong = drawn_labels != self.truth.labels
        is_wrong = np.stack([self._by_instance(rows) > 0 for rows in wrong])
        return drawn_labels, losses, np.where(is_wrong, log_weights, -np.inf)

    def _scales(self) -> Array64:
        """Return the factors of scores: the losses of 1, 2, 4, ... mistakes."""
        positive = self.costs.table[self.costs.table > 0]
        longest = float(self.truth.batch.lengths.max())
        least = float(positive.min()) if positive.size else 1.0
        most = float(self.costs.table.max(initial=0.0)) * longest
        if self.costs.normalize:
            least, most = least / longest, most / longest
        n_scales = 1 + int(np.ceil(np.log2(max(most / least, 1.0))))
        return least * np.exp2(np.arange(n_scales, dtype=np.float64))

    def _by_instance(self, values: npt.NDArray[Any]) -> FloatArray:
        """Return (instances,) sums of (rows,) values."""
        batch = self.truth.batch
        return np.bincount(batch.instance_of_row, values, batch.n_instances).astype(np.float64)

    def _slopes(
        self,
        problem: Problem,
        parts: Sequence[PartName],
        labels: Labels,
        losses: FloatArray,
        shares: FloatArray,
        curvature: Curvature | None,
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """Return the gradient, and the curvature if requested."""
        truth, lengths = self.truth, problem.batch.lengths
        if truth.weights is not None:
            shares = shares * truth.weights
        bounded = curvature is not None and not curvature.first_order
        gradient: dict[str, FloatArray] = {}
        bounds: dict[str, FloatArray] = {}
        for name, shape, sharing, by_row in moved_scores(problem, parts):
            slope, bound = np.zeros(shape), np.zeros(shape)
            for codes, loss, share in zip(labels, losses, shares, strict=True):
                if not share.any():
                    continue
                weights = np.repeat(share * loss, lengths)
                add_counts(slope, truth, name, sharing, codes, weights)
                add_counts(slope, truth, name, sharing, truth.labels, weights, -1.0)
                if bounded:
                    differs = _differs(truth, name, codes)
                    n_parts = 2.0 * self._by_instance(differs)
                    weights = np.repeat(share * loss**2 * n_parts, lengths) * differs
                    add_counts(bound, truth, name, sharing, codes, weights)
                    add_counts(bound, truth, name, sharing, truth.labels, weights)
            gradient[name] = slope.astype(problem.scores.dtype) if by_row else slope
            bounds[name] = bound
        if bounded:
            return gradient, scaled_curvature(bounds)
        return gradient, {} if curvature is None else unit_curvature(truth, problem, parts)


def scaled_curvature(bounds: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Return curvatures from the bounds of nodes and edges.

    Start and end are four parts at most, as many as two wrong positions have, so their curvature is
    at most twice that of their nodes.
    """
    return {
        name: np.maximum(2.0 * bound if name in END_NAMES else bound, LEAST_CURVATURE)
        for name, bound in bounds.items()
    }


def _scaled(problem: Problem, scale: float, cost: FloatArray) -> Problem:
    """Return the model with scores times a scale, raised by the loss."""
    scores, factor = problem.scores, problem.scores.dtype.type(scale)
    tables = {
        name: None if table is None else table * factor
        for name, table in (("edge", scores.edge), ("start", scores.start), ("end", scores.end))
    }
    return replace(problem, scores=replace(scores, node=scores.node * factor + cost, **tables))


def _differs(truth: Truth, name: ScoreName, labels: IntArray) -> npt.NDArray[np.bool_]:
    """Return (rows,) whether a label, or the edge that ends there, differs from the truth's."""
    wrong: npt.NDArray[np.bool_] = labels != truth.labels
    if name != "edge":
        return wrong
    differs = np.zeros_like(wrong)
    rows = truth.rows_with("edge", truth.batch)
    differs[rows] = wrong[rows] | wrong[truth.structure.contexts(truth.batch)].any(axis=1)
    return differs
