"""Columns of text, as in the shared tasks of CoNLL: a token a line, an empty line after a sentence.

::

    EU      NNP  B-NP  B-ORG
    rejects VBZ  B-VP  O

Columns are parted by tabs where the first token's line has one, else by blanks.  The label is the
last column unless said otherwise.  Lines that start with ``-DOCSTART-`` are no tokens; comments
there are only where the user says how they begin, since ``#`` may be a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from crfx.io.lines import mistake
from crfx.io.sentences import Line, PlainValues, Sentence

DOCUMENT = "-DOCSTART-"
_WORD = re.compile(r"[^ \t]+")
_SEPARATORS = {"\t": "tabs", " ": "blanks"}


class _Layout(NamedTuple):
    """How the lines of a file look, by the number of the first line with a token."""

    first: int
    separator: str
    width: int
    labelled: bool


@dataclass(frozen=True)
class Conll(PlainValues):
    """Files with these ``columns``, and a label.

    ``label`` says which column of the file has it, counted from 0, or from the end below 0.  Lines
    that start with ``comments`` are no tokens.  ``separator`` is what a label is added with where
    a line has one column only.
    """

    columns: tuple[str, ...]
    label: int = -1
    comments: str | None = None
    separator: str = "\t"
    name: ClassVar[str] = "conll"
    has_unknown_labels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError("there is no column beside the label: name one or more")
        if not -self._width <= self.label < self._width:
            raise ValueError(
                f"the label is column {self.label}: there are {self._width}, from 0 to "
                f"{self._width - 1}, or from -{self._width} to -1"
            )
        if self.comments is not None and not self.comments.strip():
            raise ValueError("comments must begin with some sign, like '#'")
        if self.separator not in _SEPARATORS:
            raise ValueError(f"separator is {self.separator!r}: it must be a tab or a blank")

    @property
    def _width(self) -> int:
        """The number of columns of a file with labels."""
        return len(self.columns) + 1

    @property
    def _label_at(self) -> int:
        return self.label % self._width

    def read(self, lines: Iterable[Line], *, labelled: bool = True) -> Iterator[Sentence]:
        """Yield sentences; lines before the first token belong to the one that follows.

        So what is no token is written back where it was.  After the last sentence there may be one
        without tokens, for the lines that are left.
        """
        lines = iter(lines)
        layout = None
        block: list[Line] = []
        rows: list[int] = []
        for line in lines:
            is_blank, is_document = not line.text.strip(), line.text.startswith(DOCUMENT)
            if rows and (is_blank or is_document):
                yield self._sentence(lines, block, rows, layout)
                block, rows = [], []
                if is_blank:
                    continue
            is_comment = self.comments is not None and line.text.startswith(self.comments)
            if not (is_blank or is_document or is_comment):
                layout = layout or self._layout(lines, line, labelled)
                rows.append(len(block))
            block.append(line)
        if rows or any(line.text.strip() for line in block):
            yield self._sentence(lines, block, rows, layout)

    def _layout(self, source: Iterable[Line], line: Line, must_be_labelled: bool) -> _Layout:
        """Return how lines look, from the first token."""
        separator = separator_of(line.text)
        if self.separator == "\t" and self._width == 2 and not must_be_labelled:
            separator = "\t"  # a word without its label, which may hold blanks
        width, expected = len(fields_of(line.text, separator)), self._width
        if width == expected or (width == expected - 1 and not must_be_labelled):
            return _Layout(line.number, separator, width, width == expected)
        wanted = f"{expected} columns ({', '.join(self.columns)} and a label)"
        if not must_be_labelled:
            wanted += ", or one fewer without labels"
        if width == expected - 1:
            wanted += ": there are no labels"
        text = f"it has {_columns(width)}, and should have {wanted}"
        raise mistake(source, line.number, text)

    def _sentence(
        self, source: Iterable[Line], block: list[Line], rows: list[int], layout: _Layout | None
    ) -> Sentence:
        """Read the tokens in some rows of a block of lines."""
        if layout is None:  # no line of the file has a token
            return Sentence([], [], block, rows)
        tokens: list[Any] = []
        labels: list[str | None] = []
        for row in rows:
            number, text = block[row].number, block[row].text
            fields = fields_of(text, layout.separator)
            if len(fields) != layout.width:
                raise mistake(
                    source,
                    number,
                    f"it has {_columns(len(fields))}, line {layout.first} has {layout.width}: all "
                    f"lines must have as many, parted by {_SEPARATORS[layout.separator]}",
                )
            if "" in fields:
                place = fields.index("") + 1
                raise mistake(source, number, f"column {place} is empty: write a sign there")
            if layout.labelled:
                labels.append(fields.pop(self._label_at))
            tokens.append(tuple(fields))
        return Sentence(tokens, labels if layout.labelled else None, block, rows)

    def written(self, sentence: Sentence, labels: Sequence[str]) -> list[str]:
        """The lines, each label in the place of the one there was, or added where none was."""
        texts = [line.text for line in sentence.lines]
        n_fields = self._width - (sentence.labels is None)
        for row, token, label in zip(sentence.rows, sentence.tokens, labels, strict=True):
            by_tabs = self._is_parted_by_tabs(texts[row], token, n_fields)
            texts[row] = self._labelled(texts[row], label, n_fields, by_tabs)
        return texts

    def _is_parted_by_tabs(self, text: str, token: tuple[str, ...], n_fields: int) -> bool:
        """Whether it was read so: other lines may have tabs among their blanks, or the reverse."""
        fields = text.split("\t")
        if len(fields) != n_fields or n_fields == 1:
            return False
        if n_fields == self._width:
            del fields[self._label_at]
        return tuple(fields) == token

    def _labelled(self, text: str, label: str, n_fields: int, by_tabs: bool) -> str:
        """A line of so many fields with a label; what parts the fields stays as it is."""
        at, own = self._label_at, separator_of(text)
        if at == n_fields:  # it comes last, and none was there
            text = text if by_tabs or n_fields == 1 else text.rstrip(" \t")
            return f"{text}{self.separator if n_fields == 1 else own}{label}"
        begin, end = _places(text, "\t" if by_tabs else " ")[at]
        if n_fields == self._width:
            return text[:begin] + label + text[end:]
        return f"{text[:begin]}{label}{self.separator if n_fields == 1 else own}{text[begin:]}"


def fields_of(text: str, separator: str) -> list[str]:
    """Return the columns of a line; `str.split()` would part at signs that words may hold.

    >>> fields_of("New\\u00a0York  NNP\\tO", " ")
    ['New\\xa0York', 'NNP', 'O']
    """
    fields = text.split(separator)
    if separator == "\t" or ("" not in fields and "\t" not in text):
        return fields
    return _WORD.findall(text)


def separator_of(text: str) -> str:
    """Return a tab if there is one, otherwise a blank."""
    return "\t" if "\t" in text else " "


def _places(text: str, separator: str) -> list[tuple[int, int]]:
    """Return where the fields of a line begin and end."""
    if separator == " ":
        return [match.span() for match in _WORD.finditer(text)]
    places, begin = [], 0
    for field in text.split("\t"):
        places.append((begin, begin + len(field)))
        begin += len(field) + 1
    return places


def _columns(count: int) -> str:
    return f"{count} column{'' if count == 1 else 's'}"
