"""Padding that nobody has cut: told of, since it is learned from as if it were data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfx.messages import shown, warn

LEAST_ROWS = 2
"""At the end of an instance: a single empty row may well be one that was measured."""


@dataclass(frozen=True)
class Padding:
    """Of one array of instances: its shape, how many of them end in rows of one value throughout,
    and the values and labels of these rows.
    """

    shape: tuple[int, ...]
    n_padded: int
    values: set[str]
    labels: set[Any]


def found_padding(X: Any, labels: Sequence[Any]) -> Padding | None:
    """What looks like padding where X is one array of three axes; None where it is none.

    ``labels`` are those of all rows, one instance after another.
    """
    if getattr(X, "ndim", 0) != 3 or X.shape[2] < 2:  # one feature is one value in any row
        return None
    length = X.shape[1]
    ends = {}
    for instance, own in enumerate(X):
        if (n_rows := _rows_of_one_value(own)) >= LEAST_ROWS:
            ends[instance] = n_rows
    values = {str(X[instance, -1, 0]) for instance in ends}
    told = {
        label
        for instance, n_rows in ends.items()
        for label in labels[(instance + 1) * length - n_rows : (instance + 1) * length]
    }
    return Padding(X.shape, len(ends), values, told)


def warn_of_padding(parts: Sequence[Padding]) -> None:
    """Say so where the instances of an array, or of its parts one after the other, end in rows of
    one value throughout, the same in all of them, that all have one label.
    """
    values = set[str]().union(*(part.values for part in parts))
    told = set[Any]().union(*(part.labels for part in parts))
    if len(values) == len(told) == 1 and told != {None}:
        n_instances = sum(part.shape[0] for part in parts)
        n_padded = sum(part.n_padded for part in parts)
        shape = (n_instances, *parts[0].shape[1:])
        warn(
            f"X is one array of shape {shape}, and {n_padded} of its {n_instances} instances "
            f"end in rows that are all {values.pop()}, with the label {shown(told.pop())}: if that "
            "is padding, cut it, [x[:n] for x, n in zip(X, lengths)], and y likewise, or it is "
            "learned from"
        )


def _rows_of_one_value(x: Any) -> int:
    """How many rows at the end of (length, features) hold the last row's first value, or NaN."""
    if not len(x):
        return 0
    value = x[-1, 0]
    is_other = ~((x == value) | ((x != x) & (value != value))).all(axis=1)
    return int(np.argmax(is_other[::-1])) if is_other.any() else len(x)
