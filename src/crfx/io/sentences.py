"""Lines and sentences of text files, whatever the format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, without its end, and its number, from 1."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """One instance of a text file, and the lines that it was read from.

    ``tokens`` has one tuple of columns per token, without the label.  In formats without columns
    it has the features of each token instead, as `crfx.features.words` reads them.  ``labels`` has
    one label per token, None for an unknown one; it is None if the file has no labels at all.
    ``rows`` gives the index in ``lines`` of each token, since comments have lines too.  ``parents``
    counts within the sentence, -1 at a root.
    """

    tokens: list[Any]
    labels: list[str | None] | None
    lines: list[Line]
    rows: list[int]
    parents: list[int] | None = None

    @property
    def number(self) -> int:
        """The number of the first line."""
        return self.lines[0].number
