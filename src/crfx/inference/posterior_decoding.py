"""Posterior decoding under constraints: labels best one by one, and allowed together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.inference.max_product import best_labels
from crfx.inference.problem import Problem
from crfx.scores import IntArray, Scores, Sharing
from crfx.structures import Chain, Forest, Mask
from crfx.structures.mask import masked


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
