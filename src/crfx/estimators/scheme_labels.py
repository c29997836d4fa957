"""Labels as constraints want them: in a scheme, and by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from crfx.estimators.allowed_labels import read_allowed
from crfx.estimators.inputs import Input
from crfx.structures.constraints import scheme_of
from crfx.structures.label_schemes import check_labels, completed
from crfx.structures.scheme_conversion import converted


def scheme_labels(
    constraints: Any, labels: Sequence[Any], data: Input, *, strict: bool = False
) -> list[Any]:
    """The labels of all rows in the scheme of the constraints, where they have one.

    ``strict``: raise at a label that does not fit it.
    """
    scheme = scheme_of(constraints)
    if scheme is None:
        return list(labels)
    if strict:
        check_labels(scheme, labels, data.batch)
    return converted(scheme, labels, data.batch)


def scheme_classes(constraints: Any, labels: Sequence[Any]) -> list[Any]:
    """The labels, and those without which they could not be reached."""
    scheme = scheme_of(constraints)
    return list(labels) if scheme is None else [*labels, *completed(scheme, labels)]


def with_allowed(data: Input, allowed: Any, classes: npt.NDArray[Any]) -> Input:
    """The input whose positions may have some labels only."""
    found = read_allowed(allowed, data, classes)
    return data if found is None else replace(data, batch=replace(data.batch, allowed=found))
