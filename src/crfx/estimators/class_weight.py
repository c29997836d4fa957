"""The argument ``class_weight`` of labelling estimators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from crfx.estimators.inputs import MOST_WEIGHT
from crfx.messages import shown
from crfx.objectives.truth import UNKNOWN, Truth

Array64 = npt.NDArray[np.float64]
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None

BALANCED = "balanced"


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
    classes: npt.NDArray[Any],
    truth: Truth,
    total: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
) -> Array64 | None:
    """(K,) the weight of every label; None where all are 1.

    "balanced" is n / (labels that occur * count), over positions whose label is known, each with
    the weight of its instance; 1 for a label that does not occur.  A dict has 1 for labels that it
    does not name.  ``truth`` is without the instances of weight 0, whose labels do not count.
    ``total`` adds up counts of labels over all who have some of the instances.
    """
    if option is None:
        return None
    check_class_weight(option)
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
