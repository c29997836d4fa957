"""From what users pass to a batch and label codes, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.estimators.rows import Rows, read_rows
from crfx.estimators.shape_hints import NOT_SPLIT, SWAPPED, unequal
from crfx.estimators.sharded_input import (
    check_beside,
    check_handles,
    check_in_memory,
    infinite_feature,
)
from crfx.features.columns import Columns
from crfx.features.matrix import first_infinite, unwrapped
from crfx.io.shards import ShardLabels
from crfx.messages import shown
from crfx.objectives.truth import UNKNOWN
from crfx.scores import IntArray

MOST_WEIGHT = 1e12
"""Of an instance: its square is still a number of float32."""


@dataclass(frozen=True, eq=False)
class Input:
    """A batch with its features and their columns, and whether it came as a list of instances.

    ``weights`` of instances are there where they came with X, as shards have them.
    """

    batch: Batch
    columns: Columns
    as_list: bool
    weights: npt.NDArray[Any] | None = None

    def split(self, values: npt.NDArray[Any], axis: int = 0) -> Any:
        """(rows, ...) as a list per instance, or as it is where X came stacked."""
        return self.by_instance(values, axis) if self.as_list else values

    def by_instance(self, values: npt.NDArray[Any], axis: int = 0) -> list[npt.NDArray[Any]]:
        """(rows, ...) as a list per instance."""
        parts = np.split(values, self.batch.offsets[1:-1], axis)
        return parts[: self.batch.n_instances]  # NumPy makes one part of nothing


def read_input(
    X: Any,
    lengths: Any = None,
    parents: Any = None,
    edge_types: Any = None,
    *,
    columns: Columns | None = None,
) -> Input:
    """Stack X where it is a list, and check what goes with it.

    ``columns`` are those of a fitted model, which X must have too.  The features of shards stay on
    disk.
    """
    return as_input(read_rows(X, lengths, columns), parents, edge_types)


def as_input(rows: Rows, parents: Any, edge_types: Any) -> Input:
    """The batch of X that was read, with what goes with it."""
    if rows.batch is not None:
        check_beside({"parents": parents, "edge_types": edge_types})
        return Input(replace(rows.batch, X=rows.matrix), rows.columns, False, rows.weights)
    matrix, counts = rows.matrix, rows.lengths
    batch = Batch.from_lengths(counts, X=matrix)
    if batch.n_rows != matrix.shape[0]:
        raise ValueError(
            f"lengths add up to {batch.n_rows} but X has {matrix.shape[0]} rows; {NOT_SPLIT}"
        )
    if parents is not None or edge_types is not None:
        batch = Batch.from_lengths(
            counts,
            parents=_stacked_rows("parents", parents, batch),
            edge_types=_stacked_rows("edge_types", edge_types, batch),
            X=matrix,
        )
    infinite = first_infinite(matrix)
    if infinite is not None:
        instance, position = batch.locate(infinite[0])
        raise ValueError(
            f"instance {instance}, position {position}: {infinite_feature(infinite[1])}"
        )
    return Input(batch, rows.columns, rows.as_list)


def one_instance(X_i: Any, whose: str) -> list[Any]:
    """X for one instance, an argument of ``whose``; raise where it holds several."""
    check_in_memory(X_i, f"{whose} takes one instance")
    first = X_i[0] if isinstance(X_i, list | tuple) and X_i else X_i
    position = first[0] if isinstance(first, list | tuple) and first else None
    n_axes = len(getattr(first, "shape", ())) + (first is not X_i)
    if n_axes > 2 or isinstance(position, list | tuple | dict):
        raise ValueError(f"X_i holds several: {whose} takes one instance, for example X[0]")
    return [X_i]


def _stacked_rows(name: str, values: Any, batch: Batch) -> IntArray | None:
    """Per-row integers from one array or a list of them, one per instance."""
    if values is None:
        return None
    if not (isinstance(values, list | tuple) and len(values) and _has_entries(values[0])):
        return values  # type: ignore[no-any-return]
    if len(values) != batch.n_instances:
        raise ValueError(f"{name} has {len(values)} instances but X has {batch.n_instances}")
    parts = []
    for instance, (own, length) in enumerate(zip(values, batch.lengths, strict=True)):
        if not _has_entries(own) or isinstance(own, set | dict):
            raise ValueError(f"instance {instance}: {name} holds {shown(own)}, not a list")
        try:
            part = np.asarray(own)
        except ValueError:
            raise ValueError(f"instance {instance}: {name} holds lists within a list") from None
        if part.size and part.dtype.kind not in "iu":  # joined with others it might pass
            raise ValueError(f"instance {instance}: {name} has dtype {part.dtype}: pass integers")
        if part.shape != (length,):
            raise ValueError(
                f"instance {instance}: {name} has {len(part)} entries, X has {length} rows"
            )
        parts.append(part)
    return np.concatenate([part.astype(np.int64) if not part.size else part for part in parts])


def _has_entries(value: Any) -> bool:
    """Whether it is a list, of anything; an array of no axis is none."""
    is_text = isinstance(value, str | bytes)
    return hasattr(value, "__len__") and not is_text and getattr(value, "ndim", 1) > 0


def flat_labels(y: Any, data: Input) -> list[Any]:
    """The labels of all rows, in order; None where unknown (None, NaN and pandas' NA)."""
    batch = data.batch
    if y is None:
        raise ValueError(
            "y is missing: crfx requires y to be passed, but the target y is None; None is for "
            "single labels that are unknown"
        )
    check_handles(y, "y")
    y = y.shards.labels() if isinstance(y, ShardLabels) else unwrapped(y)
    if not hasattr(y, "__len__") and hasattr(y, "__iter__"):
        y = list(y)
    if not data.as_list:
        labels = plain_labels(_checked_list(y, "y is"))
        if len(labels) != batch.n_rows:
            listed = labels and isinstance(labels[0], list | np.ndarray)
            remedy = ": beside lengths y is one flat list, np.concatenate(y)" if listed else ""
            raise ValueError(f"y has {len(labels)} labels but X has {batch.n_rows} rows{remedy}")
        _check_labels(labels, batch)
        return labels
    _checked_list(y, "y is")
    if len(y) != batch.n_instances:
        raise ValueError(
            f"y has {len(y)} instances but X has {batch.n_instances}: y holds one list of labels "
            "for every instance"
        )
    labels = []
    for instance, (own, length) in enumerate(zip(y, batch.lengths, strict=True)):
        _checked_list(own, f"instance {instance}: y holds")
        if len(own) != length:
            raise ValueError(unequal(instance, y, batch.lengths.tolist()))
        labels += plain_labels(own)
    _check_labels(labels, batch)
    return labels


def _checked_list(labels: Any, begins: str) -> Any:
    """Something that has labels in an order: no text, which is one label, and no set."""
    unordered = isinstance(labels, str | bytes | bytearray | set | frozenset | dict)
    if unordered or not _has_entries(labels):
        raise ValueError(f"{begins} {shown(labels)}, not a list of labels")
    return labels


def is_label(value: Any) -> bool:
    """Whether it is one value, which a dict can have as key."""
    return value.__hash__ is not None


def _check_labels(labels: list[Any], batch: Batch) -> None:
    for row, label in enumerate(labels):
        if not is_label(label):
            raise ValueError(
                f"{batch.place(row)}: y holds {shown(label)}: a label is text, a number or another "
                f"single value; {SWAPPED}"
            )
        if isinstance(label, float) and math.isinf(label):
            raise ValueError(f"{batch.place(row)}: y holds {label}, which is no label")


def plain_labels(y: Any) -> list[Any]:
    """Labels as Python's own values; None where unknown."""
    labels = y.tolist() if hasattr(y, "tolist") else list(y)
    return [None if _is_missing(label) else _plain(label) for label in labels]


def _plain(label: Any) -> Any:
    """Numbers and text of NumPy are those of Python: 1 is one label, however it is written."""
    return label.item() if isinstance(label, np.generic) else label


def _is_missing(label: Any) -> bool:
    """NaN and pandas' NA, which data frames make of None."""
    return (isinstance(label, float) and label != label) or type(label).__name__ == "NAType"


def find_classes(labels: Sequence[Any]) -> npt.NDArray[Any]:
    """The distinct known labels, sorted."""
    known = {label for label in labels if label is not None}
    if not known:
        raise ValueError("y has no known label")
    try:
        ordered = sorted(known)
    except TypeError:
        raise ValueError(
            "y mixes labels that cannot be compared, such as text and numbers: use one kind"
        ) from None
    return label_array(ordered)


def label_array(labels: Sequence[Any]) -> npt.NDArray[Any]:
    """Labels in an array that gives each of them back as it was.

    NumPy's own kinds where they do: its text loses zeros at the end, 2**63 and -1 become floats.
    """
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | float):
        found: npt.NDArray[Any] = np.array(labels)
        kind = "U" if isinstance(labels[0], str) else "f" if isinstance(labels[0], float) else "biu"
        if found.dtype.kind in kind and found.tolist() == list(labels):
            return found
    found = np.empty(len(labels), dtype=object)
    found[:] = labels
    return found


def encode(
    labels: Sequence[Any],
    classes: npt.NDArray[Any],
    data: Input,
    what: str,
    seen_in: str = "training",
) -> IntArray:
    """Label codes (rows,), ``UNKNOWN`` for None; raise at the first label that is not a class."""
    codes_of = {label: code for code, label in enumerate(classes.tolist())}
    codes_of[None] = UNKNOWN
    codes = np.empty(len(labels), dtype=np.int64)
    for row, label in enumerate(labels):
        try:
            codes[row] = codes_of[label]
        except KeyError:
            raise ValueError(
                f"{data.batch.place(row)}: {what} has the label {label!r}, which was not seen in "
                f"{seen_in}"
            ) from None
    return codes


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
