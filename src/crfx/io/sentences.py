"""Sentences of text files, whatever the format: what readers give and writers take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, without its end, and its number, from 1."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """One instance of a text file, and the lines it came from.

    ``tokens`` has a tuple of columns per token, the label left out, or where tokens have no columns
    their features, as `crfx.features.words` reads them.  ``labels`` has one per token, None where
    it is not known; it is None where the file has no labels at all.  ``rows`` says which of
    ``lines`` each token stands in: comments, and words that are no tokens, have lines too.
    ``parents`` counts within the sentence, -1 at a root.
    """

    tokens: list[Any]
    labels: list[str | None] | None
    lines: list[Line]
    rows: list[int]
    parents: list[int] | None = None

    @property
    def number(self) -> int:
        """Of its first line."""
        return self.lines[0].number


class PlainValues:
    """A dataclass that can be written as plain values; `crfx.io.formats.from_plain` reads them."""

    name: ClassVar[str]

    def to_plain(self) -> dict[str, Any]:
        """Return its name and settings as a model file keeps them."""
        settings: dict[str, Any] = {"name": self.name, **vars(self)}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in settings.items()}


class Format(Protocol):
    """A format of text files, with what a file says about itself (columns, which has the label).

    ``name`` is what users call it; ``has_unknown_labels`` says whether a token of a file with
    labels may be without one.
    """

    name: ClassVar[str]
    has_unknown_labels: ClassVar[bool]

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns of a token without its label; None: tokens are features already."""
        ...

    def read(self, lines: Iterable[Line], *, labelled: bool = True) -> Iterator[Sentence]:
        """Yield sentences as soon as their last line is there.

        ``labelled``: every token must have a label; otherwise a file without them is read too.  A
        mistake raises ValueError with its line.
        """
        ...

    def written(self, sentence: Sentence, labels: Sequence[str]) -> list[str]:
        """Return the lines of a sentence with other labels, without a last empty one."""
        ...

    def to_plain(self) -> dict[str, Any]:
        """Return what a model file keeps of it, ``name`` among it."""
        ...
