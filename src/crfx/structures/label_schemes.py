"""Label schemes, BIO and BIOES: how labels mark spans, what may follow them, and conversion.

A label is "O", or a tag (B, I, E, S), alone or followed by a hyphen and a type: "B-PER".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch

BoolArray = npt.NDArray[np.bool_]

TAGS = {"bio": "BI", "bioes": "BIES"}
OUTSIDE = "O"
_CACHED = 4096
"""Number of labels, and of pairs of them, whose parts are cached."""
_AMBIGUOUS = object()
"""A label whose BIOES form depends on an unknown label."""


@lru_cache(maxsize=_CACHED)
def tag_and_type(label: Any) -> tuple[str, str] | None:
    """Return the two parts of a label; None if it marks no span and is not "O".

    >>> tag_and_type("B-PER"), tag_and_type("O"), tag_and_type("NN")
    (('B', 'PER'), ('O', ''), None)
    """
    if not isinstance(label, str):
        return None
    if label == OUTSIDE:
        return OUTSIDE, ""
    tag, hyphen, kind = label.partition("-")
    if tag not in ("B", "I", "E", "S") or (hyphen and not kind):
        return None
    return tag, kind


def tag_of(label: Any) -> str | None:
    """Return O, B, I, E or S; None if a label marks no span and is not "O"."""
    parts = tag_and_type(label)
    return None if parts is None else parts[0]


@lru_cache(maxsize=_CACHED)
def continues(before: Any, label: Any) -> bool:
    """Return whether a label continues the span of the label before it (conlleval's rule).

    >>> continues("I-PER", "I-PER"), continues("I-PER", "B-PER"), continues("E-PER", "I-PER")
    (True, False, False)
    """
    one, other = tag_and_type(before), tag_and_type(label)
    if one is None or other is None:
        return False
    return one[0] in "BI" and other[0] in "IE" and one[1] == other[1]


def continuing(classes: Sequence[Any]) -> BoolArray:
    """Return (K, K) whether the second label continues the span that the first has open."""
    pairs = [[continues(before, label) for label in classes] for before in classes]
    return np.array(pairs, dtype=bool).reshape(len(classes), len(classes))


def scheme_of_labels(labels: Iterable[Any]) -> str | None:
    """Return the narrowest scheme that all labels fit; None if some mark no span, or all are "O".

    >>> scheme_of_labels(["O", "B-PER", "I-PER"]), scheme_of_labels(["NN", "VB"])
    ('bio', None)
    """
    tags = {tag_of(label) or " " for label in labels} - {OUTSIDE}
    schemes = (scheme for scheme, known in TAGS.items() if tags and tags <= set(known))
    return next(schemes, None)


def check_labels(scheme: str, labels: Sequence[Any], batch: Batch) -> None:
    """Raise ValueError at the first known label that no variant of the scheme has."""
    tags = OUTSIDE + TAGS[scheme]
    good = {label for label in set(labels) if label is None or (tag_of(label) or " ") in tags}
    for row, label in enumerate(labels):
        if label not in good:
            forms = ", ".join(f"'{tag}-TYPE'" for tag in TAGS[scheme])
            raise batch.bad_row(
                row,
                f'label {label!r} does not fit constraints="{scheme}": labels are {OUTSIDE!r}, '
                f"{forms}",
            )


def completed(scheme: str, labels: Iterable[Any]) -> set[Any]:
    """Return the labels that must exist for these to be reached.

    In BIOES these include the labels by which longer spans differ from those of two positions.

    >>> completed("bio", ["O", "I-PER"])
    {'B-PER'}
    """
    tags = "B" if scheme == "bio" else "BIE"
    spans = [label for label in set(labels) if tag_of(label) in ("B", "I", "E")]
    return {tag + label[1:] for label in spans for tag in tags} - set(labels)


def allowed_pairs(scheme: str, classes: Sequence[Any]) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Return (K, K) which label may follow which, (K,) which may be first, and (K,) last."""
    needs_span = np.array([tag_of(label) in ("I", "E") for label in classes], dtype=bool)
    first, last = ~needs_span, np.ones(len(classes), bool)
    is_continued = continuing(classes)
    # In BIOES an open span must also be continued.
    pair = ~needs_span[None, :] | is_continued
    if scheme == "bioes":
        is_open = np.array([tag_of(label) in ("B", "I") for label in classes], dtype=bool)
        pair &= ~is_open[:, None] | is_continued
        last = ~is_open
    return pair, first, last


def converted(scheme: str, labels: Sequence[Any], batch: Batch) -> list[Any]:
    """Return the labels of all rows in the scheme: IOB1 becomes IOB2, and both become BIOES.

    If an E or an S is among them, they are BIOES already.  None is unknown: an I after it
    continues the unknown span.  Labels of no scheme stay as they are.
    """
    if not labels or {tag_of(label) for label in set(labels)} & {"E", "S"}:
        return list(labels)
    is_filled = batch.lengths > 0
    before = [OUTSIDE, *labels[:-1]]
    for row in batch.offsets[:-1][is_filled].tolist():
        before[row] = OUTSIDE
    iob2 = [_in_iob2(a, b) for a, b in zip(before, labels, strict=True)]
    if scheme == "bio":
        return iob2
    after = [*iob2[1:], OUTSIDE]
    for row in (batch.offsets[1:][is_filled] - 1).tolist():
        after[row] = OUTSIDE
    bioes = [_in_bioes(a, b) for a, b in zip(iob2, after, strict=True)]
    if _AMBIGUOUS in bioes:
        row = bioes.index(_AMBIGUOUS)
        raise batch.bad_row(
            row,
            f"the label after {iob2[row]!r} is unknown, so that it cannot be told whether the span "
            'ends here, as constraints="bioes" asks: pass labels in BIOES',
        )
    return bioes


@lru_cache(maxsize=_CACHED)
def _in_iob2(before: Any, label: Any) -> Any:
    """Return a label whose I is a B if it begins a span."""
    is_first = before is not None and not continues(before, label)
    return "B" + label[1:] if is_first and tag_of(label) == "I" else label


@lru_cache(maxsize=_CACHED)
def _in_bioes(label: Any, after: Any) -> Any:
    """Return a label of IOB2 in BIOES: the last of a span is E, the only one S."""
    tag = tag_of(label)
    if tag not in ("B", "I") or continues(label, after):
        return label
    if after is None:
        return _AMBIGUOUS
    return {"B": "S", "I": "E"}[tag] + label[1:]
