"""Padding that nobody has cut: told of, since it is learned from as if it were data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crfx.messages import shown, warn

LEAST_ROWS = 2
"""At the end of an instance: a single empty row may well be one that was measured."""


def warn_of_padding(X: Any, labels: Sequence[Any]) -> None:
    """Where X is one array of three axes: say so where its instances end in rows of one value
    throughout, the same in all of them, that all have one label.

    ``labels`` are those of all rows, one instance after another.
    """
    if getattr(X, "ndim", 0) != 3 or X.shape[2] < 2:  # one feature is one value in any row
        return
    n_instances, length, _ = X.shape
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
    if len(values) == len(told) == 1 and told != {None}:
        warn(
            f"X is one array of shape {X.shape}, and {len(ends)} of its {n_instances} instances "
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
