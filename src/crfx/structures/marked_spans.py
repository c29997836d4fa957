"""Whether labels mark spans, and in which scheme."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crfx.structures.label_schemes import OUTSIDE, TAGS, tag_and_type


def scheme_of_labels(labels: Iterable[Any]) -> str | None:
    """The narrowest scheme that all labels fit, "bio" or "bioes"; None where some mark no span, or
    all are "O".

    >>> scheme_of_labels(["O", "B-PER", "I-PER"]), scheme_of_labels(["NN", "VB"])
    ('bio', None)
    """
    tags = set()
    for label in labels:
        found = tag_and_type(label)
        if found is None:
            return None
        tags.add(found[0])
    tags.discard(OUTSIDE)
    schemes = (scheme for scheme, known in TAGS.items() if tags and tags <= set(known))
    return next(schemes, None)
