"""How sure a model is of a labelling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfx.inference.max_product import best_labels
from crfx.inference.problem import Problem
from crfx.inference.results import SumProduct
from crfx.objectives.counts import labelling_scores
from crfx.objectives.truth import UNKNOWN
from crfx.scores import IntArray, Scores, Sharing
from crfx.structures import Chain, Forest, Mask
from crfx.structures.mask import masked


class Confidence(NamedTuple):
    """Of one labelling: the probability of each label, (length,), and of the whole."""

    labels: npt.NDArray[np.float64]
    labelling: float


def confidence(problem: Problem, codes: IntArray, sums: SumProduct) -> list[Confidence]:
    """Per instance, of the labelling ``codes`` (rows,)."""
    labels = sums.node[np.arange(len(codes)), codes].astype(np.float64)
    whole = np.exp(labelling_scores(problem, codes) - sums.log_z)
    batch = problem.batch
    return [
        Confidence(labels[batch.slice_of(instance)], float(p)) for instance, p in enumerate(whole)
    ]


def clamped(problem: Problem, codes: IntArray) -> Problem:
    """The problem in which known labels, codes of (rows,), are the only ones there."""
    node = problem.scores.node.copy()
    known = np.flatnonzero(codes != UNKNOWN)
    kept = node[known, codes[known]]
    node[known] = -np.inf
    node[known, codes[known]] = kept
    return replace(problem, scores=replace(problem.scores, node=node))


def most_together(
    shares: npt.NDArray[Any], problem: Problem, mask: Mask, n_jobs: int | None
) -> IntArray:
    """(rows,) the allowed labelling with the largest sum of ``shares`` (rows, K).

    With probabilities of labels: the one that has most labels right in expectation.  Constraints
    are about neighbours, so order 1 will do.
    """
    batch, is_forest = problem.batch, problem.batch.parents is not None
    node = np.where(np.isneginf(problem.scores.node), problem.scores.node, shares)
    scores = masked(Scores(node), mask, None, 1, is_forest=is_forest)
    structure = Forest() if is_forest else Chain(1)
    sharing: Sharing = "none" if mask.pair is None else "shared"
    return best_labels(Problem(batch, scores, structure, sharing), n_jobs)[0]


def check_probability(value: Any, above: float | None = None) -> None:
    """Raise ValueError unless ``min_probability`` is one, or None."""
    if value is None:
        return
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1 or (above is not None and not value > above):
        least = "0" if above is None else "above 0"
        raise ValueError(f"min_probability is {value!r}: it must lie between {least} and 1")
