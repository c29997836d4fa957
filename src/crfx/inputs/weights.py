"""Weights of instances and of labels: the arguments ``sample_weight`` and ``class_weight``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from crfx.inputs.passed import Input
from crfx.messages import shown
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.workers import current

Array64 = npt.NDArray[np.float64]
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None

BALANCED = "balanced"
MOST_WEIGHT = 1e12
"""The largest weight of an instance: its square is still a number of float32."""


def weights_of(sample_weight: Any, data: Input) -> npt.NDArray[np.float64] | None:
    """The argument ``sample_weight``, or what came with X; (instances,) float64, or None."""
    if sample_weight is not None and data.weights is not None:
        raise ValueError("sample_weight is given beside shards, which have their own: leave it out")
    given = data.weights if sample_weight is None else sample_weight
    return instance_weights(given, data.batch.n_instances)


def instance_weights(sample_weight: Any, n_instances: int) -> npt.NDArray[np.float64] | None:
    """(instances,) float64, or None."""
    if sample_weight is None:
        return None
    try:
        weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    except (ValueError, TypeError):
        raise ValueError(
            "sample_weight is not a list of numbers: pass one weight per instance"
        ) from None
    if weights.shape != (n_instances,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}: pass one weight per instance, {n_instances}"
        )
    bad = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if bad.size:
        raise ValueError(f"instance {bad[0]}: its weight {weights[bad[0]]} is not 0 or more")
    if weights.max(initial=0.0) > MOST_WEIGHT:
        raise ValueError(
            f"instance {weights.argmax()}: its weight {weights.max():g} is beyond {MOST_WEIGHT:g}: "
            "divide all weights by the largest"
        )
    return weights


def check_class_weight(option: Any) -> None:
    """Raise ValueError unless it is a dict of weights, "balanced" or None."""
    if option is None or (isinstance(option, str) and option == BALANCED):
        return
    if not isinstance(option, Mapping):
        raise ValueError(
            f'class_weight is {shown(option)}: pass a dict from labels to weights, "balanced" or '
            "None"
        )
    for label, weight in option.items():
        is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
        if not is_number or not 0 <= weight < np.inf:
            raise ValueError(f"class_weight of {label!r} is {weight!r}: it must be 0 or more")
        if weight > MOST_WEIGHT:
            raise ValueError(
                f"class_weight of {label!r} is {weight!r}: it must be at most {MOST_WEIGHT:g}"
            )


def class_weights(
    option: ClassWeight,
    truth: Truth,
) -> Array64 | None:
    """Return (K,) the weight of every label; None if all are 1.

    "balanced" is n / (labels that occur * count), over positions whose label is known, each with
    the weight of its instance; 1 for a label that does not occur.  A dict has 1 for labels that it
    does not name.  ``truth`` is without the instances of weight 0, whose labels do not count.
    Counts are those of all workers.
    """
    if option is None:
        return None
    check_class_weight(option)
    total, classes = current().sum, truth.classes
    assert classes is not None
    rows = np.flatnonzero(truth.labels != UNKNOWN)
    counts = total(np.bincount(truth.labels[rows], minlength=len(classes)))
    if not counts.any():
        raise ValueError(
            "class_weight is given, but y has no known label that counts: there is nothing to "
            "learn from"
        )
    if isinstance(option, str):
        weights = truth.weights
        own = None if weights is None else np.repeat(weights, truth.batch.lengths)[rows]
        weighed = np.bincount(truth.labels[rows], own, len(classes)).astype(np.float64)
        return _balanced(total(weighed))
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    found = np.ones(len(classes))
    for label, weight in option.items():
        if label not in code_of:
            raise ValueError(
                f"class_weight has the label {label!r}, which y has not: its labels are "
                f"{_some(list(code_of))}"
            )
        found[code_of[label]] = weight
    if not found[counts > 0].any():
        raise ValueError(
            "class_weight is 0 for every label of y that counts: there is nothing to learn from"
        )
    return None if (found == 1).all() else found


def _balanced(counts: Array64) -> Array64:
    occurs = counts > 0
    found = np.ones(len(counts))
    found[occurs] = counts.sum() / (occurs.sum() * counts[occurs])
    return found


def _some(labels: list[Any], most: int = 10) -> str:
    told = ", ".join(map(repr, labels[:most]))
    return told if len(labels) <= most else f"{told}, ..."


def to_plain(option: Any) -> Any:
    """As JSON has it, where the keys of a dict are text: pairs."""
    if not isinstance(option, Mapping):
        return option
    return [[label, float(weight)] for label, weight in option.items()]


def from_plain(value: Any) -> Any:
    """What `to_plain` wrote."""
    return dict(value) if isinstance(value, list) else value
