"""How sure a model is of a labelling."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfx.inference.problem import Problem
from crfx.inference.results import SumProduct
from crfx.objectives.counts import labelling_scores
from crfx.scores import IntArray


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


def check_probability(value: Any, above: float | None = None) -> None:
    """Raise ValueError unless ``min_probability`` is one, or None."""
    if value is None:
        return
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1 or (above is not None and not value > above):
        least = "0" if above is None else "above 0"
        raise ValueError(f"min_probability is {value!r}: it must lie between {least} and 1")
