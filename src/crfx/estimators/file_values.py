"""Values that a model file tells, taken at their word only if they are of the right kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.inputs.label_codes import label_array

_MOST = 2**62
"""Counts beyond it would not fit into the arrays they are compared with."""


def whole(values: Mapping[str, Any], name: str, least: int = 0, most: int = _MOST) -> int:
    """The whole number of a name; ValueError where it is none, or out of range."""
    value = values[name]
    if type(value) is not int or not least <= value <= most:
        end = "on" if most == _MOST else f"to {most}"
        told = repr(value)[:60]
        raise ValueError(f"its {name} is {told}: it must be a whole number from {least} {end}")
    return value


def truth(values: Mapping[str, Any], name: str, default: bool | None = None) -> bool:
    """True or False of a name; ``default`` is for files of the first days, which do not say."""
    value = values[name] if default is None else values.get(name, default)
    if not isinstance(value, bool):
        raise ValueError(f"its {name} is {repr(value)[:60]}: it must be true or false")
    return value


def number(value: Any, what: str) -> float:
    """A number, as it is written; text that reads like one is none."""
    if type(value) is not float and not (type(value) is int and abs(value) <= _MOST):
        raise ValueError(f"{what} is {repr(value)[:60]}: it must be a number")
    return value


def history(values: Mapping[str, Any]) -> dict[str, list[float]]:
    """What training noted, by name, a number each time; null where it was not finite."""
    return {
        name: [np.nan if entry is None else number(entry, f"its {name}") for entry in listed(own)]
        for name, own in values["history"].items()
    }


def listed(value: Any) -> list[Any]:
    """A list; text is none."""
    if not isinstance(value, list):
        raise ValueError(f"it has {repr(value)[:60]} where a list belongs")
    return value


def texts(value: Any) -> list[str]:
    """A list of texts."""
    if not all(isinstance(entry, str) for entry in listed(value)):
        raise ValueError("it has names that are no text")
    return listed(value)


def plain_entries(value: Any) -> list[Any]:
    """A list of texts, numbers and truth values: labels or categories."""
    if not all(isinstance(entry, str | int | float) for entry in listed(value)):
        raise ValueError("it has labels or categories that are no text and no numbers")
    return listed(value)


def categories(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Those of each column: distinct, all text or all numbers."""
    found = {name: plain_entries(known) for name, known in values.get("categories", {}).items()}
    for name, known in found.items():
        if len(set(known)) < len(known) or len({isinstance(own, str) for own in known}) > 1:
            raise ValueError(f"the categories of {name!r} are of two kinds, or one is there twice")
    return found


def classes(value: Any, n_labels: int) -> npt.NDArray[Any]:
    """Labels as `fit` had found them: rising, each once."""
    labels = plain_entries(value)
    if len(labels) != n_labels:
        raise ValueError("its labels are not as many as its scores")
    if len(set(labels)) < len(labels):
        raise ValueError("a label is there twice")
    try:
        ordered = sorted(labels)
    except TypeError:
        raise ValueError("its labels mix text and numbers") from None
    if ordered != labels:
        raise ValueError("its labels are not in order")
    return label_array(labels)
