"""From what users pass to a batch and label codes, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx import features
from crfx.batch import Batch
from crfx.objectives.truth import UNKNOWN
from crfx.scores import IntArray


@dataclass(frozen=True, eq=False)
class Input:
    """A batch with its features, and whether it came as a list of instances."""

    batch: Batch
    as_list: bool

    def split(self, values: npt.NDArray[Any]) -> Any:
        """(rows, ...) as a list per instance, or as it is where X came stacked."""
        return np.split(values, self.batch.offsets[1:-1]) if self.as_list else values


def read_input(X: Any, lengths: Any = None, parents: Any = None, edge_types: Any = None) -> Input:
    """Stack X where it is a list, and check what goes with it."""
    if isinstance(X, list | tuple):
        if lengths is not None:
            raise ValueError("lengths are given, but X is a list: a list has its own lengths")
        if not len(X):
            raise ValueError("X has no instances")
        matrix, counts = features.stack(X)
    elif lengths is None:
        raise ValueError(
            "X is one stacked matrix: pass lengths=, the number of rows of each instance, or a "
            "list with one matrix per instance (cross-validation needs the list)"
        )
    else:
        matrix, counts = features.stacked(X), lengths
    batch = Batch.from_lengths(
        counts,
        parents=_stacked_rows(parents),
        edge_types=_stacked_rows(edge_types),
        X=matrix,
    )
    if batch.n_rows != matrix.shape[0]:
        raise ValueError(f"lengths add up to {batch.n_rows} but X has {matrix.shape[0]} rows")
    infinite = features.first_infinite(matrix)
    if infinite is not None:
        instance, position = batch.locate(infinite[0])
        raise ValueError(
            f"instance {instance}, position {position}: feature {infinite[1]} is infinite; "
            "NaN marks a missing value"
        )
    return Input(batch, isinstance(X, list | tuple))


def _stacked_rows(values: Any) -> IntArray | None:
    """Per-row integers from one array or a list of them."""
    if values is None:
        return None
    if isinstance(values, list | tuple) and len(values) and np.ndim(values[0]) == 1:
        parts = [np.asarray(part) for part in values]
        return np.concatenate([part.astype(np.int64) if not part.size else part for part in parts])
    return np.asarray(values)


def flat_labels(y: Any, data: Input) -> list[Any]:
    """The labels of all rows, in order; None where unknown."""
    batch = data.batch
    if not data.as_list:
        labels = _listed(y)
        if len(labels) != batch.n_rows:
            raise ValueError(f"y has {len(labels)} labels but X has {batch.n_rows} rows")
        return labels
    if len(y) != batch.n_instances:
        raise ValueError(f"y has {len(y)} instances but X has {batch.n_instances}")
    labels = []
    for instance, (own, length) in enumerate(zip(y, batch.lengths, strict=True)):
        if isinstance(own, str) or not hasattr(own, "__len__"):
            raise ValueError(f"instance {instance}: y holds {own!r}, not a list of labels")
        if len(own) != length:
            raise ValueError(f"instance {instance}: y has {len(own)} labels, X has {length} rows")
        labels += _listed(own)
    return labels


def _listed(y: Any) -> list[Any]:
    return y.tolist() if hasattr(y, "tolist") else list(y)


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
    if len({type(label) for label in ordered}) == 1 and isinstance(ordered[0], str | int | float):
        return np.array(ordered)
    classes = np.empty(len(ordered), dtype=object)
    classes[:] = ordered
    return classes


def encode(labels: Sequence[Any], classes: npt.NDArray[Any], data: Input, what: str) -> IntArray:
    """Label codes (rows,), ``UNKNOWN`` for None; raise at the first label that is not a class."""
    codes_of = {label: code for code, label in enumerate(classes.tolist())}
    codes_of[None] = UNKNOWN
    codes = np.empty(len(labels), dtype=np.int64)
    for row, label in enumerate(labels):
        try:
            codes[row] = codes_of[label]
        except KeyError:
            instance, position = data.batch.locate(row)
            raise ValueError(
                f"instance {instance}, position {position}: {what} has the label {label!r}, which "
                "was not seen in training"
            ) from None
    return codes


def instance_weights(sample_weight: Any, data: Input) -> npt.NDArray[np.float64] | None:
    """(instances,) float64, or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (data.batch.n_instances,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}: pass one weight per instance, "
            f"{data.batch.n_instances}"
        )
    bad = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if bad.size:
        raise ValueError(f"instance {bad[0]}: its weight {weights[bad[0]]} is not 0 or more")
    return weights
