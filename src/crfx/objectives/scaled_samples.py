"""The loss-scaled objective, estimated from samples: for instances too long to sum exactly.

Multiple importance sampling.  Weights l(y) (1 + score(y) - score(truth)) explode under samples of
the model itself.  Among labellings of one loss l, though, the target is the model with scores times
l.  So labellings are drawn from several models, scores times 1, 2, 4, ... (of a loss of one error),
raised by the loss; each is weighed against the mixture of all of them (the balance heuristic), and
the truth, which is known, is counted exactly.  The effective sample size tells how far the weights
are from equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from crfx.errors import BadInstance
from crfx.inference.problem import Problem
from crfx.inference.sampling import SEED_RANGE, drawn
from crfx.inference.sum_product import summed
from crfx.messages import warn
from crfx.objectives.base import Evaluation, PartName
from crfx.objectives.bound_losses import PositionCosts
from crfx.objectives.counts import add_counts, labelling_scores, moved_scores, sharing_of
from crfx.objectives.curvature import Curvature
from crfx.objectives.first_order import unit_curvature
from crfx.objectives.scaled_exact import positive
from crfx.objectives.truth import ScoreName, Truth
from crfx.scores import FloatArray, IntArray, weighted_sum

Array64 = npt.NDArray[np.float64]
Candidates = npt.NDArray[np.int32]

FEW_SAMPLES = 3.0
"""Effective ones: with fewer, users are told."""


class SampledLossScaled:
    """sum_i w_i log sum_y exp(l_i(y) (1 + score(y) - score(truth))), the sum by samples.

    The same ``seed`` gives the same estimate at the same scores.  ``notes`` has the number of
    instances that are sampled, and the mean of their effective sample sizes in the last evaluation.
    Cost: a sum-product for every scale, log2 of the length, and O(rows) for every sample.
    """

    curvature_kind: Literal["bound", "diagonal", "none"] = "bound"

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
        top = np.maximum(log_weights.max(axis=0), 0.0)  # 0 is the truth's own
        weights = np.exp(log_weights - top)
        total = weights.sum(axis=0) + np.exp(-top)
        value = float(weighted_sum(self.truth.weights, top + np.log(total)))
        squares = np.maximum((weights**2).sum(axis=0), np.finfo(float).tiny)
        self._note(weights.sum(axis=0) ** 2 / squares)
        shares = weights / total
        gradient, bounds = self._slopes(problem, parts, labels, losses, shares, curvature)
        return Evaluation(value, gradient, bounds)

    def _note(self, sizes: FloatArray) -> None:
        """Of instances with no wrong sample the truth is all there is: nothing to be unsure of."""
        some = sizes[sizes > 0]
        size = float(some.mean()) if some.size else float(self.n_samples)
        self.notes["effective_sample_size"] = size
        if size < FEW_SAMPLES and not self._warned:
            self._warned = True
            warn(
                f'objective "loss_scaled" samples {len(sizes)} instances, and their samples are '
                f"worth {size:.1f} each: its gradient is rough; raise n_samples, or longest to sum "
                "exactly, or take another objective",
                RuntimeWarning,
            )

    def _weighted_samples(self, problem: Problem) -> tuple[Candidates, FloatArray, FloatArray]:
        """Labels (samples, rows), losses and log weights, divided by their number, (samples,
        instances); -inf for the truth.
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
        scores = np.stack([labelling_scores(problem, own) for own in drawn_labels])
        losses = np.stack([self._losses(own) for own in drawn_labels])
        exponents = (s * scores + losses - z for s, z in zip(scales, log_z, strict=True))
        mixture = np.logaddexp.reduce(list(exponents)) - np.log(len(scales))
        truth = labelling_scores(problem, self.truth.labels)
        if np.isneginf(truth).any():
            instance = int(np.flatnonzero(np.isneginf(truth))[0])
            raise BadInstance(instance, "the -inf scores (constraints) forbid its true labelling")
        log_weights = losses * (1.0 + scores - truth) - mixture - np.log(len(drawn_labels))
        wrong = drawn_labels != self.truth.labels
        is_wrong = _by_instance(np.logical_or, wrong, batch.offsets)
        return drawn_labels, losses, np.where(is_wrong, log_weights, -np.inf)

    def _scales(self) -> Array64:
        """What scores are multiplied by: the losses of 1, 2, 4, ... mistakes."""
        positive_costs = self.costs.table[self.costs.table > 0]
        lengths = self.truth.batch.lengths
        longest = float(lengths.max())
        least = float(positive_costs.min()) if positive_costs.size else 1.0
        most = float(self.costs.table.max(initial=0.0)) * longest
        if self.costs.normalize:
            least, most = least / longest, most / longest
        n_scales = 1 + int(np.ceil(np.log2(max(most / least, 1.0))))
        return least * np.exp2(np.arange(n_scales, dtype=np.float64))

    def _losses(self, labels: IntArray) -> Array64:
        cost = self.costs.kept_by_row(np.dtype(np.float64))
        own = cost[np.arange(len(labels)), labels]
        found: Array64 = np.bincount(
            self.truth.batch.instance_of_row, own, minlength=self.truth.batch.n_instances
        ).astype(np.float64)
        return found

    def _slopes(
        self,
        problem: Problem,
        parts: Sequence[PartName],
        labels: Candidates,
        losses: FloatArray,
        shares: FloatArray,
        curvature: Curvature | None,
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """Gradient, and curvature where it is asked for."""
        truth, lengths = self.truth, problem.batch.lengths
        if truth.weights is not None:
            shares = shares * truth.weights
        bounded = curvature is not None and not curvature.first_order
        gradient: dict[str, FloatArray] = {}
        bounds: dict[str, FloatArray] = {}
        for part in parts:
            sharing = sharing_of(part, problem.sharing)
            for name, shape in moved_scores(problem, part).items():
                slope = gradient[name] = np.zeros(shape)
                bound = np.zeros(shape)
                for own, loss, share in zip(labels, losses, shares, strict=True):
                    if not share.any():
                        continue
                    weights = np.repeat(share * loss, lengths)
                    add_counts(slope, truth, name, sharing, own, weights)
                    add_counts(slope, truth, name, sharing, truth.labels, weights, -1.0)
                    if bounded:
                        differs = _differs(truth, name, own)
                        n_parts = 2.0 * _by_instance(np.add, differs, problem.batch.offsets)
                        weights = np.repeat(share * loss**2 * n_parts, lengths) * differs
                        add_counts(bound, truth, name, sharing, own, weights)
                        add_counts(bound, truth, name, sharing, truth.labels, weights)
                bounds[name] = bound
        dtype = problem.scores.dtype
        by_row = {"node"} | ({"edge"} if "each_edge" in parts else set())
        gradient = {k: v.astype(dtype) if k in by_row else v for k, v in gradient.items()}
        if bounded:
            return gradient, positive(bounds)
        return gradient, {} if curvature is None else unit_curvature(truth, problem, parts)


def _scaled(problem: Problem, scale: float, cost: FloatArray) -> Problem:
    """The model with scores times a scale, and raised by the loss."""
    scores, factor = problem.scores, problem.scores.dtype.type(scale)
    tables = {
        name: None if table is None else table * factor
        for name, table in (("edge", scores.edge), ("start", scores.start), ("end", scores.end))
    }
    return replace(problem, scores=replace(scores, node=scores.node * factor + cost, **tables))


def _differs(truth: Truth, name: ScoreName, labels: IntArray) -> npt.NDArray[np.bool_]:
    """(rows,) whether labels, or the edge that ends there, are others than the truth's."""
    wrong: npt.NDArray[np.bool_] = labels != truth.labels
    if name != "edge":
        return wrong
    found = np.zeros_like(wrong)
    rows = truth.rows_with("edge", truth.batch)
    found[rows] = wrong[rows] | wrong[truth.structure.contexts(truth.batch)].any(axis=1)
    return found


def _by_instance(combine: np.ufunc, values: npt.NDArray[np.bool_], offsets: IntArray) -> Array64:
    """(..., instances) from (..., rows); 0 for empty ones."""
    starts, filled = offsets[:-1], np.diff(offsets) > 0
    found = np.zeros((*values.shape[:-1], len(starts)))
    if filled.any():
        found[..., filled] = combine.reduceat(
            values.astype(np.float64) if combine is np.add else values, starts[filled], axis=-1
        )
    return found
