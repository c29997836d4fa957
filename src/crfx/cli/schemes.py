"""Which scheme labels that mark spans are learned in, and which they are written in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crfx.cli.sources import Labelled
    from crfx.io.reading import Reading


@dataclass(frozen=True)
class Scheme:
    """The argument ``constraints`` of an estimator; ``as_bio``: files get BIO, not its BIOES."""

    constraints: Any = None
    as_bio: bool = False

    def all_tags(self, classes: list[str] | None) -> list[str] | None:
        """Labels of a user, with those that the model needs beside them for the same types."""
        if classes is None or not self.as_bio:
            return classes
        kinds = {label[1:] for label in classes if label != "O"}
        return sorted({*classes, *(tag + kind for kind in kinds for tag in "BIES")})


def choose_scheme(wanted: str, train: Labelled, start: Any, reading: Reading | None) -> Scheme:
    """What --constraints means for these labels; a model that goes on keeps its own.

    BIO is learned as BIOES, which finds more entities (reports/text-template.md), and written as
    BIO again; not where labels are missing, since one cannot tell then where spans end.
    """
    if wanted != "auto":
        return Scheme(None if wanted == "none" else wanted)
    if start is not None:
        return Scheme(start.constraints, start.reading_ is not None and start.reading_.as_bio)
    from crfx.structures.label_schemes import scheme_of_labels

    found = scheme_of_labels(train.labels)
    if found != "bio" or reading is None or any(None in labels for labels in train.y):
        return Scheme(found)
    return Scheme("bioes", as_bio=True)


def log_scheme(scheme: Scheme, wanted: str, log: Callable[[str], None]) -> None:
    """Say what was chosen."""
    if wanted != "auto" or not isinstance(scheme.constraints, str):
        return
    how = "learned as BIOES, written as BIO" if scheme.as_bio else scheme.constraints.upper()
    log(f"labels mark spans: {how} (--constraints)")
