"""BIO and BIOES: labels that mark spans, and what may follow them.

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
MOST_REMEMBERED = 4096
"""Labels and pairs of them that have been read: the same come again and again."""


@lru_cache(maxsize=MOST_REMEMBERED)
def tag_and_type(label: Any) -> tuple[str, str] | None:
    """The two parts of a label; None where it marks no span and is not "O".

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


@lru_cache(maxsize=MOST_REMEMBERED)
def goes_on(before: Any, label: Any) -> bool:
    """Whether a label continues the span that the label before it has open (conlleval's rule).

    >>> goes_on("I-PER", "I-PER"), goes_on("I-PER", "B-PER"), goes_on("E-PER", "I-PER")
    (True, False, False)
    """
    one, other = tag_and_type(before), tag_and_type(label)
    if one is None or other is None:
        return False
    return one[0] in "BI" and other[0] in "IE" and one[1] == other[1]


def check_labels(scheme: str, labels: Sequence[Any], batch: Batch) -> None:
    """Raise ValueError at the first known label that no variant of the scheme has."""
    tags = OUTSIDE + TAGS[scheme]
    good = {label for label in set(labels) if label is None or (tag_of(label) or " ") in tags}
    for row, label in enumerate(labels):
        if label not in good:
            forms = ", ".join(f"'{tag}-TYPE'" for tag in TAGS[scheme])
            raise ValueError(
                f"{batch.place(row)}: label {label!r} does not fit "
                f'constraints="{scheme}": labels are {OUTSIDE!r}, {forms}'
            )


def tag_of(label: Any) -> str | None:
    """O, B, I, E or S; None where a label marks no span and is not "O"."""
    parts = tag_and_type(label)
    return None if parts is None else parts[0]


def completed(scheme: str, labels: Iterable[Any]) -> set[Any]:
    """The labels that must exist beside those given, or these could not be reached, or in BIOES
    not be told from spans of two positions.

    >>> completed("bio", ["O", "I-PER"])
    {'B-PER'}
    """
    found = set()
    for label in set(labels):
        if tag_of(label) in ("B", "I", "E"):
            found |= {tag + label[1:] for tag in ("B" if scheme == "bio" else "BIE")}
    return found - set(labels)


def allowed_pairs(scheme: str, classes: Sequence[Any]) -> tuple[BoolArray, BoolArray, BoolArray]:
    """(K, K) which label may follow which, (K,) which may be first, (K,) and last."""
    ahead = np.array([tag_of(label) in ("I", "E") for label in classes], dtype=bool)
    first, last = ~ahead, np.ones(len(classes), bool)
    on = continuing(classes)
    # What needs a span before it must go on with one; in BIOES an open span must go on too.
    pair = ~ahead[None, :] | on
    if scheme == "bioes":
        is_open = np.array([tag_of(label) in ("B", "I") for label in classes], dtype=bool)
        pair &= ~is_open[:, None] | on
        last = ~is_open
    return pair, first, last


def continuing(classes: Sequence[Any]) -> BoolArray:
    """(K, K) whether the second label continues the span that the first has open."""
    found = [[goes_on(before, label) for label in classes] for before in classes]
    return np.array(found, dtype=bool).reshape(len(classes), len(classes))
