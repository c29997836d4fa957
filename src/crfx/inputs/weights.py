"""Weights of instances and of labels: the arguments ``sample_weight`` and ``class_weight``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from crfx.errors import BadInstance
from crfx.inputs.passed import Input
from crfx.inputs.rows import check_not_beside_shards
from crfx.messages import shown
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.workers import current

Array64 = npt.NDArray[np.float64]
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None

BALANCED = "balanced"
MOST_WEIGHT = 1e12
"""The largest weight of an instance: its square is still a number of float32."""
_MOST_NAMED = 10


def weights_of(sample_weight: Any, data: Input) -> Array64 | None:
    """Return the argument ``sample_weight``, or what came with X; (instances,) float64, or None."""
    if data.weights is not None:
        check_not_beside_shards({"sample_weight": sample_weight})
        sample_weight = data.weights
    return instance_weights(sample_weight, data.batch.n_instances)


def instance_weights(
    sample_weight: Any, n_instances: int, unit: str = "instance"
) -> Array64 | None:
    """Check weights of instances, or of queries; return (instances,) float64, or None."""
    if sample_weight is None:
        return None
    try:
        weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    except (ValueError, TypeError):
        raise ValueError(
            f"sample_weight is not a list of numbers: pass one weight per {unit}"
        ) from None
    if weights.shape != (n_instances,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}: pass one weight per {unit}, {n_instances}"
        )
    bad = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if bad.size:
        reason = f"its weight {weights[bad[0]]} is not 0 or more"
        raise BadInstance(int(bad[0]), reason, unit=unit)
    if unit == "instance" and weights.max(initial=0.0) > MOST_WEIGHT:
        raise BadInstance(
            int(weights.argmax()),
            f"its weight {weights.max():g} is beyond {MOST_WEIGHT:g}: divide all weights by the "
            "largest",
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


def class_weights(option: ClassWeight, truth: Truth) -> Array64 | None:
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
    weights = np.ones(len(classes))
    if isinstance(option, str):
        row_weights = None
        if truth.weights is not None:
            row_weights = np.repeat(truth.weights, truth.batch.lengths)[rows]
        weighted = np.bincount(truth.labels[rows], row_weights, len(classes)).astype(np.float64)
        weighted = total(weighted)
        occurs = weighted > 0
        weights[occurs] = weighted.sum() / (occurs.sum() * weighted[occurs])
        return weights
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    for label, weight in option.items():
        if label not in code_of:
            names = ", ".join(map(repr, list(code_of)[:_MOST_NAMED]))
            more = ", ..." if len(code_of) > _MOST_NAMED else ""
            raise ValueError(
                f"class_weight has the label {label!r}, which y has not: its labels are "
                f"{names}{more}"
            )
        weights[code_of[label]] = weight
    if not weights[counts > 0].any():
        raise ValueError(
            "class_weight is 0 for every label of y that counts: there is nothing to learn from"
        )
    return None if (weights == 1).all() else weights


def to_plain(option: Any) -> Any:
    """Return it as JSON has it, where the keys of a dict are text: as pairs."""
    if not isinstance(option, Mapping):
        return option
    return [[label, float(weight)] for label, weight in option.items()]


def from_plain(value: Any) -> Any:
    """Return what `to_plain` wrote."""
    return dict(value) if isinstance(value, list) else value
