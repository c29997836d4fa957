"""Labels as codes: of positions, of classes, in a scheme, allowed at a position, or unknown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.errors import BadInstance
from crfx.features.matrix import unwrapped
from crfx.inputs.passed import Input, by_instance
from crfx.inputs.rows import SWAPPED, has_entries
from crfx.io.shards import labels_in
from crfx.messages import shown, warn
from crfx.objectives.truth import UNKNOWN
from crfx.scores import IntArray
from crfx.structures.constraints import scheme_of
from crfx.structures.label_schemes import check_labels, completed, converted

MOST_NAMED = 5
"""Unknown labels that a warning names."""


def flat_labels(y: Any, data: Input) -> list[Any]:
    """Return the labels of all rows, in order; None where unknown (None, NaN and pandas' NA)."""
    batch = data.batch
    if y is None:
        raise ValueError(
            "y is missing: crfx requires y to be passed, but the target y is None; None is for "
            "single labels that are unknown"
        )
    y = labels_in(unwrapped(y))
    if not hasattr(y, "__len__") and hasattr(y, "__iter__"):
        y = list(y)
    if not _is_list(y):
        raise ValueError(f"y is {shown(y)}, not a list of labels")
    if data.as_list:
        labels = []
        hint = ": y holds one list of labels for every instance"
        for instance, entries, length in by_instance("y", y, batch, hint):
            if not _is_list(entries):
                raise BadInstance(instance, f"y holds {shown(entries)}, not a list of labels")
            if len(entries) != length:
                raise BadInstance(instance, _unequal(instance, y, batch.lengths.tolist()))
            labels += plain_labels(entries)
    else:
        labels = plain_labels(y)
        if len(labels) != batch.n_rows:
            listed = labels and isinstance(labels[0], list | np.ndarray)
            remedy = ": beside lengths y is one flat list, np.concatenate(y)" if listed else ""
            raise ValueError(f"y has {len(labels)} labels but X has {batch.n_rows} rows{remedy}")
    _check_labels(labels, batch)
    return labels


def _is_list(labels: Any) -> bool:
    """Return whether it has labels in an order; text is one label, and a set has no order."""
    unordered = isinstance(labels, str | bytes | bytearray | set | frozenset | dict)
    return not unordered and has_entries(labels)


def _unequal(instance: int, y: Sequence[Any], lengths: Sequence[int]) -> str:
    """Say what to do about the first instance whose labels are more or fewer than its rows."""
    text = f"y has {len(y[instance])} labels, X has {lengths[instance]} rows"
    counts = {len(entries) for entries in y if hasattr(entries, "__len__")}
    if len(counts) == 1 < len(set(lengths)):
        return f"{text}; if y is padded, cut it: [own[:len(x)] for own, x in zip(y, X)]"
    if len(set(lengths)) == 1 < len(counts):
        return f"{text}; if X is padded, cut it: [x[:len(own)] for x, own in zip(X, y)]"
    return text


def is_label(value: Any) -> bool:
    """Return whether it is one value, which a dict can have as key."""
    return value.__hash__ is not None


def _check_labels(labels: list[Any], batch: Batch) -> None:
    if _are_plain(labels):
        return
    for row, label in enumerate(labels):
        if not is_label(label):
            raise batch.bad_row(
                row,
                f"y holds {shown(label)}: a label is text, a number or another single value; "
                f"{SWAPPED}",
            )
        if isinstance(label, float) and math.isinf(label):
            raise batch.bad_row(row, f"y holds {label}, which is no label")


def plain_labels(y: Any) -> list[Any]:
    """Return labels as Python's own values; None where unknown."""
    labels = y.tolist() if hasattr(y, "tolist") else list(y)
    if _are_plain(labels):
        return labels
    return [None if _is_missing(label) else _plain(label) for label in labels]


def _are_plain(labels: list[Any]) -> bool:
    """Return whether all are text, whole numbers, booleans or None: each is a label as it is."""
    return {str, int, bool, NoneType}.issuperset(map(type, labels))


def _plain(label: Any) -> Any:
    """Return numbers and text of NumPy as those of Python: both kinds of 1 are one label."""
    return label.item() if isinstance(label, np.generic) else label


def _is_missing(label: Any) -> bool:
    """Return whether a label is NaN or pandas' NA, which data frames make of None."""
    return (isinstance(label, float) and label != label) or type(label).__name__ == "NAType"


def find_classes(labels: Sequence[Any]) -> npt.NDArray[Any]:
    """Return the distinct known labels, sorted."""
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
    """Return labels in an array that gives each of them back as it was.

    NumPy's own kinds where they do: its text loses zeros at the end, 2**63 and -1 become floats.
    """
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | float):
        array: npt.NDArray[Any] = np.array(labels)
        kind = "U" if isinstance(labels[0], str) else "f" if isinstance(labels[0], float) else "biu"
        if array.dtype.kind in kind and array.tolist() == list(labels):
            return array
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def encode(
    labels: Sequence[Any],
    classes: npt.NDArray[Any],
    data: Input,
    what: str,
    seen_in: str = "training",
) -> IntArray:
    """Return codes (rows,), ``UNKNOWN`` for None; raise at the first label that is no class."""
    codes_of = {label: code for code, label in enumerate(classes.tolist())}
    codes_of[None] = UNKNOWN
    try:
        return np.fromiter(map(codes_of.__getitem__, labels), np.int64, len(labels))
    except KeyError:
        row, label = next(each for each in enumerate(labels) if each[1] not in codes_of)
        reason = f"{what} has the label {label!r}, which was not seen in {seen_in}"
        raise data.batch.bad_row(row, reason) from None


# Classes ------------------------------------------------------------------------------------------


def read_classes(classes: Any) -> list[Any]:
    """Return the labels of the argument ``classes``."""
    if isinstance(classes, str) or not hasattr(classes, "__iter__"):
        raise ValueError(f"classes is {classes!r}: pass a list of labels")
    labels = plain_labels(classes)
    for label in labels:
        if label is None:
            raise ValueError("classes hold an unknown label (None or NaN)")
        if not is_label(label):
            raise ValueError(f"classes hold {shown(label)}, which is not a single value")
    return labels


def named_classes(classes: Any, known: npt.NDArray[Any], constraints: Any) -> list[Any] | None:
    """Read the argument ``classes`` beside the ``known`` labels of a fitted model.

    Add the labels that a scheme needs for all of these to be reached.
    """
    if classes is None:
        return None
    return scheme_classes(constraints, [*known.tolist(), *read_classes(classes)])[len(known) :]


# Schemes ------------------------------------------------------------------------------------------


def scheme_labels(
    constraints: Any, labels: Sequence[Any], data: Input, *, strict: bool = False
) -> list[Any]:
    """Return the labels of all rows in the scheme of the constraints, if they have one.

    ``strict``: raise at a label that does not fit it.
    """
    scheme = scheme_of(constraints)
    if scheme is None:
        return list(labels)
    if strict:
        check_labels(scheme, labels, data.batch)
    return converted(scheme, labels, data.batch)


def scheme_classes(constraints: Any, labels: Sequence[Any]) -> list[Any]:
    """Return the labels, and those without which they could not be reached."""
    scheme = scheme_of(constraints)
    return list(labels) if scheme is None else [*labels, *completed(scheme, labels)]


# Allowed labels -----------------------------------------------------------------------------------


def with_allowed(data: Input, allowed: Any, classes: npt.NDArray[Any]) -> Input:
    """Return the input with the labels that each position may have."""
    mask = read_allowed(allowed, data, classes)
    return data if mask is None else replace(data, batch=replace(data.batch, allowed=mask))


def read_allowed(
    allowed: Any, data: Input, classes: npt.NDArray[Any]
) -> npt.NDArray[np.bool_] | None:
    """Return (rows, K) from a list per instance (stacked X: one list) with an entry per position.

    An entry is None (any label), one label, or a list, tuple, set or array of labels.
    """
    if allowed is None:
        return None
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    mask = np.ones((data.batch.n_rows, len(classes)), bool)
    for row, entry in enumerate(_entries(allowed, data)):
        if entry is None:
            continue
        labels = _labels(entry, code_of)
        if not labels:
            raise data.batch.bad_row(row, "allowed holds no label, so none is left")
        for label in labels:
            if not is_label(label) or label not in code_of:
                reason = f"allowed has the label {label!r}, which the model does not know"
                raise data.batch.bad_row(row, reason)
        mask[row] = False
        mask[row, [code_of[label] for label in labels]] = True
    return mask


def _entries(allowed: Any, data: Input) -> list[Any]:
    if not _has_order(allowed):
        raise ValueError(f"allowed is {allowed!r}: pass a list with an entry per position")
    batch = data.batch
    if not data.as_list:
        if len(allowed) != batch.n_rows:
            raise ValueError(f"allowed has {len(allowed)} entries but X has {batch.n_rows} rows")
        return list(allowed)
    entries: list[Any] = []
    hint = ": it holds one list for every instance, with an entry per position"
    for instance, listed, length in by_instance("allowed", allowed, batch, hint):
        if listed is None:  # any label at every position
            entries += [None] * length
            continue
        if not _has_order(listed):
            raise BadInstance(instance, f"allowed holds {listed!r}, not a list of entries")
        if len(listed) != length:
            raise BadInstance(instance, f"allowed has {len(listed)} entries, X has {length} rows")
        entries += list(listed)
    return entries


def _has_order(value: Any) -> bool:
    """Return whether entries have places: not those of a set, a dict or an array without axes."""
    return not isinstance(value, Set | Mapping) and has_entries(value)


def _labels(entry: Any, code_of: dict[Any, int]) -> list[Any]:
    """Return the labels of an entry: a collection, unless it is a label itself (e.g. a tuple)."""
    if isinstance(entry, np.ndarray) and entry.ndim == 0:
        entry = entry.item()
    if not isinstance(entry, list | tuple | set | frozenset | np.ndarray):
        return plain_labels([entry])
    if isinstance(entry, tuple | frozenset) and entry in code_of:
        return [entry]
    return plain_labels(entry)


# Labels that a model does not know ----------------------------------------------------------------
#
# They are mistakes of the data or of the training set, so warnings name them. Figures keep their
# meaning: a label that the model cannot predict is never right, and has probability 0.


def known_codes(
    labels: Sequence[Any], classes: npt.NDArray[Any]
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Return codes (rows,), ``UNKNOWN`` for None and for labels that are no class.

    Also return (rows,) whether the label is no class.
    """
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([code_of.get(label, UNKNOWN) for label in labels], dtype=np.int64)
    missing = np.array([label is None for label in labels], dtype=bool)
    return codes, (codes == UNKNOWN) & ~missing


def unknown_counts(labels: Sequence[Any], is_strange: npt.NDArray[np.bool_]) -> Counter[Any]:
    """Count every label that the model does not know."""
    return Counter(labels[int(row)] for row in np.flatnonzero(is_strange))


def warn_of_unknown(counts: Counter[Any], where: str, effect: str) -> None:
    """Warn of the labels that the model does not know, if there are any, and of the effect."""
    if not counts:
        return
    named = [f"{label!r} ({count})" for label, count in counts.most_common(MOST_NAMED)]
    if len(counts) > MOST_NAMED:
        named.append(f"and {len(counts) - MOST_NAMED} more")
    warn(
        f"{where} has labels that the model was not trained on, so often: {', '.join(named)}; "
        f"{effect}",
        UserWarning,
    )
