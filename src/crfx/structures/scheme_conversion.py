"""One scheme of labels from another: IOB1 becomes IOB2, and both become BIOES."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from crfx.batch import Batch
from crfx.structures.label_schemes import MOST_REMEMBERED, OUTSIDE, goes_on, tag_of


def converted(scheme: str, labels: Sequence[Any], batch: Batch) -> list[Any]:
    """The labels of all rows in the scheme: IOB1 becomes IOB2, and both become BIOES.

    Labels among which there is an E or an S are BIOES already.  None is unknown: an I after it is
    taken to go on with what is unknown.  Labels of no scheme are left as they are.
    """
    if not labels or {tag_of(label) for label in set(labels)} & {"E", "S"}:
        return list(labels)
    filled = batch.lengths > 0
    firsts, lasts = batch.offsets[:-1][filled], batch.offsets[1:][filled] - 1
    before = [OUTSIDE, *labels[:-1]]
    for row in firsts.tolist():
        before[row] = OUTSIDE
    found = [_in_iob2(a, b) for a, b in zip(before, labels, strict=True)]
    if scheme == "bio":
        return found
    after = [*found[1:], OUTSIDE]
    for row in lasts.tolist():
        after[row] = OUTSIDE
    result = [_in_bioes(a, b) for a, b in zip(found, after, strict=True)]
    if _UNTOLD in result:
        _fail_untold(result.index(_UNTOLD), found, batch)
    return result


@lru_cache(maxsize=MOST_REMEMBERED)
def _in_iob2(before: Any, label: Any) -> Any:
    """Spans begin with B: an I that begins one becomes a B."""
    begins = before is not None and not goes_on(before, label)
    return "B" + label[1:] if begins and tag_of(label) == "I" else label


_UNTOLD = object()


@lru_cache(maxsize=MOST_REMEMBERED)
def _in_bioes(label: Any, after: Any) -> Any:
    """From IOB2: the last label of a span becomes E, the only one S."""
    tag = tag_of(label)
    if tag not in ("B", "I") or goes_on(label, after):
        return label
    if after is None:
        return _UNTOLD
    return {"B": "S", "I": "E"}[tag] + label[1:]


def _fail_untold(row: int, labels: Sequence[Any], batch: Batch) -> None:
    raise ValueError(
        f"{batch.place(row)}: the label after {labels[row]!r} is unknown, so "
        'that it cannot be told whether the span ends here, as constraints="bioes" asks: pass '
        "labels in BIOES"
    )
