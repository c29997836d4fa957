"""What to do about X and y of another shape than expected: texts of errors, and a warning.

The warning is about padding in X, which training would learn from as if it were data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfx.features.matrix import is_frame
from crfx.messages import shown, warn

LEAST_ROWS = 2
"""Rows at the end of an instance that look like padding; a single one may have been measured."""
NOT_SPLIT = (
    "cross-validation splits rows and leaves lengths whole: pass it a list with one matrix per "
    "instance"
)
SWAPPED = "are X and y swapped?"


def has_entries(value: Any) -> bool:
    """Return whether a value is a list of anything; text and an array without axes are none."""
    is_text = isinstance(value, str | bytes)
    return hasattr(value, "__len__") and not is_text and getattr(value, "ndim", 1) > 0


def without_lengths(X: Any) -> str:
    """Say what to do about X that is one stacked matrix, or data frame, without ``lengths``."""
    kind = "data frame" if is_frame(X) else "matrix"
    cut = ("X.iloc[:5]", "X.iloc[5:]") if is_frame(X) else ("X[:5]", "X[5:]")
    return (
        f"X is one {kind} of shape {X.shape}, which does not tell where instances end: pass "
        "lengths=, the number of rows of each, as in fit(X, y, lengths=[5, 3]), or a list with one "
        f"{kind} per instance, as in fit([{', '.join(cut)}], [y[:5], y[5:]]), [X] for a single "
        "one; cross-validation needs the list"
    )


def wrong_shape(X: Any) -> str:
    """Say what to do about X that is neither a list of instances nor one stacked matrix."""
    what = f"has shape {X.shape}" if hasattr(X, "shape") else f"is {shown(X)}"
    remedy = ""
    if len(getattr(X, "shape", ())) == 1:
        remedy = (
            ". Reshape your data: X.reshape(-1, 1) where it is one feature of many positions, "
            "X.reshape(1, -1) where it is one position"
        )
    return (
        f"X {what}: pass a list with one matrix per instance, or one stacked matrix with lengths="
        f"{remedy}"
    )


def beside_lengths(X: Any) -> str:
    """Say what to do about a list of instances that is passed with ``lengths``."""
    if getattr(X, "ndim", 0) == 3:
        return (
            f"lengths are given, but X has three axes, {X.shape}: if it is padded, cut it, "
            "[x[:n] for x, n in zip(X, lengths)], and y likewise; nothing is padded here"
        )
    if isinstance(X, list | tuple) and X and not hasattr(X[0], "__len__"):
        return f"lengths are given, but X is a list of {shown(X[0])} and the like: {SWAPPED}"
    if isinstance(X, list | tuple) and X and isinstance(X[0], str):
        return f"lengths are given, but X is a list of texts, {shown(X[0])} first: {SWAPPED}"
    return "lengths are given, but X is a list: a list has its own lengths"


def unequal(instance: int, y: Sequence[Any], lengths: Sequence[int]) -> str:
    """Say what to do about the first instance whose labels are more or fewer than its rows."""
    text = f"instance {instance}: y has {len(y[instance])} labels, X has {lengths[instance]} rows"
    counts = {len(own) for own in y if hasattr(own, "__len__")}
    if len(counts) == 1 < len(set(lengths)):
        return f"{text}; if y is padded, cut it: [own[:len(x)] for own, x in zip(y, X)]"
    if len(set(lengths)) == 1 < len(counts):
        return f"{text}; if X is padded, cut it: [x[:len(own)] for x, own in zip(X, y)]"
    return text


@dataclass(frozen=True)
class Padding:
    """What looks like padding in one array of instances.

    ``n_padded`` of its instances end in rows of one value throughout; ``values`` and ``labels`` are
    those of these rows.
    """

    shape: tuple[int, ...]
    n_padded: int
    values: set[str]
    labels: set[Any]


def padding_of(X: Any, labels: Sequence[Any]) -> Padding | None:
    """Return what looks like padding if X is one array of three axes; None if X is no such array.

    ``labels`` are those of all rows, one instance after another.
    """
    if getattr(X, "ndim", 0) != 3 or X.shape[2] < 2:  # one feature is one value in any row
        return None
    length = X.shape[1]
    ends = {}
    for instance, x in enumerate(X):
        if (n_rows := _rows_of_one_value(x)) >= LEAST_ROWS:
            ends[instance] = n_rows
    values = {str(X[instance, -1, 0]) for instance in ends}
    labels_there = {
        label
        for instance, n_rows in ends.items()
        for label in labels[(instance + 1) * length - n_rows : (instance + 1) * length]
    }
    return Padding(X.shape, len(ends), values, labels_there)


def warn_of_padding(parts: Sequence[Padding]) -> None:
    """Warn if the instances of an array end in rows that all have one value and one label.

    ``parts`` are those of the array, one per worker.
    """
    values = set[str]().union(*(part.values for part in parts))
    labels = set[Any]().union(*(part.labels for part in parts))
    if len(values) == len(labels) == 1 and labels != {None}:
        n_instances = sum(part.shape[0] for part in parts)
        n_padded = sum(part.n_padded for part in parts)
        shape = (n_instances, *parts[0].shape[1:])
        warn(
            f"X is one array of shape {shape}, and {n_padded} of its {n_instances} instances "
            f"end in rows that are all {values.pop()}, with the label {shown(labels.pop())}: if "
            "that is padding, cut it, [x[:n] for x, n in zip(X, lengths)], and y likewise, or it "
            "is learned from"
        )


def _rows_of_one_value(x: Any) -> int:
    """Return how many rows at the end of (length, features) hold the last row's first value."""
    if not len(x):
        return 0
    value = x[-1, 0]
    is_other = ~((x == value) | ((x != x) & (value != value))).all(axis=1)  # NaN is one value
    return int(np.argmax(is_other[::-1])) if is_other.any() else len(x)
