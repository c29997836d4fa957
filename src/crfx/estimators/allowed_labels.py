"""The argument ``allowed``: which labels a position may have."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.inputs import Input, is_label, plain_labels


def read_allowed(
    allowed: Any, data: Input, classes: npt.NDArray[Any]
) -> npt.NDArray[np.bool_] | None:
    """(rows, K) from a list per instance (stacked X: one list) with an entry per position.

    An entry is None (any label), one label, or a list, tuple, set or array of labels.
    """
    if allowed is None:
        return None
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    found = np.ones((data.batch.n_rows, len(classes)), bool)
    for row, entry in enumerate(_entries(allowed, data)):
        if entry is None:
            continue
        labels = _labels(entry, code_of)
        if not labels:
            raise ValueError(f"{data.batch.place(row)}: allowed holds no label, so none is left")
        for label in labels:
            if not is_label(label) or label not in code_of:
                raise ValueError(
                    f"{data.batch.place(row)}: allowed has the label {label!r}, which the model "
                    "does not know"
                )
        found[row] = False
        found[row, [code_of[label] for label in labels]] = True
    return found


def _entries(allowed: Any, data: Input) -> list[Any]:
    if not _has_order(allowed):
        raise ValueError(f"allowed is {allowed!r}: pass a list with an entry per position")
    batch = data.batch
    if not data.as_list:
        if len(allowed) != batch.n_rows:
            raise ValueError(f"allowed has {len(allowed)} entries but X has {batch.n_rows} rows")
        return list(allowed)
    if len(allowed) != batch.n_instances:
        raise ValueError(
            f"allowed has {len(allowed)} instances but X has {batch.n_instances}: it holds one "
            "list for every instance, with an entry per position"
        )
    entries: list[Any] = []
    for instance, (own, length) in enumerate(zip(allowed, batch.lengths, strict=True)):
        if own is None:  # nothing is said of the instance
            entries += [None] * int(length)
            continue
        if not _has_order(own):
            raise ValueError(f"instance {instance}: allowed holds {own!r}, not a list of entries")
        if len(own) != length:
            raise ValueError(
                f"instance {instance}: allowed has {len(own)} entries, X has {length} rows"
            )
        entries += list(own)
    return entries


def _has_order(value: Any) -> bool:
    """Whether entries have places: not those of a set or a dict, nor an array without axes."""
    if isinstance(value, str | Set | Mapping) or not hasattr(value, "__len__"):
        return False
    return not (isinstance(value, np.ndarray) and value.ndim == 0)


def _labels(entry: Any, code_of: dict[Any, int]) -> list[Any]:
    """A collection is one of labels, unless it is a label itself (labels may be tuples)."""
    if isinstance(entry, np.ndarray) and entry.ndim == 0:
        return plain_labels([entry.item()])
    if not isinstance(entry, list | tuple | set | frozenset | np.ndarray):
        return plain_labels([entry])
    if isinstance(entry, tuple | frozenset) and entry in code_of:
        return [entry]
    return plain_labels(entry)
