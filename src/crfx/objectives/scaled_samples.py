"""The loss-scaled objective from samples, for instances too long to sum exactly.

Multiple importance sampling.  Weights l(y) (1 + score(y) - score(truth)) explode under samples of
the model itself.  Among labellings of one loss l, though, the target is the model with scores times
l.  So labellings are drawn from several models, scores times 1, 2, 4, ... (of a loss of one error),
raised by the loss; each is weighed against the mixture of all of them (the balance heuristic), and
the truth, which is known, is counted exactly.  The effective sample size measures how far the
weights are from equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from crfx.inference.problem import Problem
from crfx.inference.sampling import SEED_RANGE, drawn
from crfx.inference.sum_product import summed
from crfx.messages import warn
from crfx.objectives.base import CurvatureKind, Evaluation, PartName
from crfx.objectives.costs import PositionCosts
from crfx.objectives.counts import (
    END_NAMES,
    add_counts,
    labelling_scores,
    moved_scores,
    unit_curvature,
)
from crfx.objectives.curvature import LEAST_CURVATURE, Curvature
from crfx.objectives.truth import ScoreName, Truth
from crfx.scores import FloatArray, IntArray, weighted_sum

Array64 = npt.NDArray[np.float64]
Candidates = npt.NDArray[np.int32]

FEW_SAMPLES = 3.0
"""Effective samples: fewer cause a warning."""


class SampledLossScaled:
    """sum_i w_i log sum_y exp(l_i(y) (1 + score(y) - score(truth))), the sum by samples.

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

    def _weighted_samples(self, problem: Problem) -> tuple[Candidates, FloatArray, FloatArray]:
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
        losses = np.stack([self._losses(codes) for codes in drawn_labels])
        exponents = (s * scores + losses - z for s, z in zip(scales, log_z, strict=True))
        mixture = np.logaddexp.reduce(list(exponents)) - np.log(len(scales))
        truth = labelling_scores(problem, self.truth.labels)
        if np.isneginf(truth).any():
            instance = int(np.flatnonzero(np.isneginf(truth))[0])
            raise ValueError(
                f"instance {instance}: the -inf scores (constraints) forbid its true labelling"
            )
        log_weights = losses * (1.0 + scores - truth) - mixture - np.log(len(drawn_labels))
        wrong = drawn_labels != self.truth.labels
        is_wrong = _count_by_instance(wrong, batch.offsets) > 0
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

    def _losses(self, labels: IntArray) -> Array64:
        costs = self.costs.kept_by_row(np.dtype(np.float64))[np.arange(len(labels)), labels]
        batch = self.truth.batch
        losses = np.bincount(batch.instance_of_row, costs, minlength=batch.n_instances)
        return losses.astype(np.float64)

    def _slopes(
        self,
        problem: Problem,
        parts: Sequence[PartName],
        labels: Candidates,
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
                    n_parts = 2.0 * _count_by_instance(differs, problem.batch.offsets)
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


def _count_by_instance(values: npt.NDArray[np.bool_], offsets: IntArray) -> Array64:
    """Return (..., instances) how many of (..., rows) are true."""
    n_before = np.cumsum(values, axis=-1)
    return np.diff(np.insert(n_before, 0, 0, axis=-1)[..., offsets], axis=-1).astype(np.float64)
