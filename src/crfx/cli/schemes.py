"""The schemes in which labels of spans are learned and written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crfx.cli.sources import Labelled
    from crfx.io.reading import Reading


def choose_scheme(
    wanted: str, train: Labelled, start: Any, reading: Reading | None
) -> tuple[Any, bool]:
    """Return the argument ``constraints`` of the estimator, and whether files get BIO for BIOES.

    ``wanted`` is the option --constraints.  A model that continues training keeps its scheme.  BIO
    is learned as BIOES, which finds more entities (reports/text-template.md), and written as BIO
    again; not if labels are missing, since the ends of spans are then unknown.
    """
    if wanted != "auto":
        return None if wanted == "none" else wanted, False
    if start is not None:
        return start.constraints, start.reading_ is not None and start.reading_.as_bio
    from crfx.structures.label_schemes import scheme_of_labels

    scheme = scheme_of_labels(train.labels)
    if scheme != "bio" or reading is None or any(None in labels for labels in train.y):
        return scheme, False
    return "bioes", True


def all_tags(classes: list[str] | None, as_bio: bool) -> list[str] | None:
    """Return labels of the user with those that BIOES adds for the same types."""
    if classes is None or not as_bio:
        return classes
    kinds = {label[1:] for label in classes if label != "O"}
    return sorted({*classes, *(tag + kind for kind in kinds for tag in "BIES")})
