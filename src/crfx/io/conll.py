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
from typing import Any, ClassVar

from crfx.io.lines import mistake
from crfx.io.sentences import Line, PlainValues, Sentence

DOCUMENT = "-DOCSTART-"
_WORD = re.compile(r"[^ \t]+")
_SEPARATORS = {"\t": "tabs", " ": "blanks"}


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
        """Columns of a file with labels."""
        return len(self.columns) + 1

    @property
    def _label_at(self) -> int:
        return self.label % self._width

    def read(self, lines: Iterable[Line], *, labelled: bool = True) -> Iterator[Sentence]:
        """Sentences; lines before the first token, empty ones too, belong to the one that follows.

        So what is no token is written back where it was.  After the last sentence there may be one
        without tokens, for the lines that are left.
        """
        lines = iter(lines)
        reader = _Reader(self, lines, labelled)
        for line in lines:
            if not line.text.strip():
                if reader.rows:
                    yield reader.sentence()
                else:
                    reader.lines.append(line)
            elif line.text.startswith(DOCUMENT):
                if reader.rows:
                    yield reader.sentence()
                reader.lines.append(line)
            elif self.comments is not None and line.text.startswith(self.comments):
                reader.lines.append(line)
            else:
                reader.add(line)
        if reader.rows or any(line.text.strip() for line in reader.lines):
            yield reader.sentence()

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
        at, own = self._label_at, "\t" if "\t" in text else " "
        if at == n_fields:  # it comes last, and none was there
            text = text if by_tabs or n_fields == 1 else text.rstrip(" \t")
            return f"{text}{self.separator if n_fields == 1 else own}{label}"
        begin, end = _places(text, "\t" if by_tabs else " ")[at]
        if n_fields == self._width:
            return text[:begin] + label + text[end:]
        return f"{text[:begin]}{label}{self.separator if n_fields == 1 else own}{text[begin:]}"


def fields_of(text: str, separator: str) -> list[str]:
    """The columns of a line; not `str.split()`, which parts at signs that words may hold.

    >>> fields_of("New\\u00a0York  NNP\\tO", " ")
    ['New\\xa0York', 'NNP', 'O']
    """
    fields = text.split(separator)
    if separator == "\t" or ("" not in fields and "\t" not in text):
        return fields
    return _WORD.findall(text)


def separator_of(text: str) -> str:
    """A tab where there is one, else a blank."""
    return "\t" if "\t" in text else " "


def _places(text: str, separator: str) -> list[tuple[int, int]]:
    """Where the fields of a line begin and end."""
    if separator == " ":
        return [match.span() for match in _WORD.finditer(text)]
    found, begin = [], 0
    for field in text.split("\t"):
        found.append((begin, begin + len(field)))
        begin += len(field) + 1
    return found


class _Reader:
    """Gathers one sentence after another; the first token says how all lines look."""

    def __init__(self, format: Conll, source: Iterable[Line], labelled: bool) -> None:
        self.format, self.source, self.must_be_labelled = format, source, labelled
        self.first: Line | None = None
        self.separator, self.width, self.labelled = " ", 0, True
        self._clear()

    def _clear(self) -> None:
        self.lines: list[Line] = []
        self.rows: list[int] = []
        self.tokens: list[Any] = []
        self.labels: list[str | None] = []

    def sentence(self) -> Sentence:
        found = Sentence(self.tokens, self.labels if self.labelled else None, self.lines, self.rows)
        self._clear()
        return found

    def add(self, line: Line) -> None:
        if self.first is None:
            self._begin(line)
        fields = fields_of(line.text, self.separator)
        if len(fields) != self.width:
            assert self.first is not None
            raise mistake(
                self.source,
                line.number,
                f"it has {_columns(len(fields))}, line {self.first.number} has {self.width}: all "
                f"lines must have as many, parted by {_SEPARATORS[self.separator]}",
            )
        if "" in fields:
            number = fields.index("") + 1
            raise mistake(self.source, line.number, f"column {number} is empty: write a sign there")
        if self.labelled:
            self.labels.append(fields.pop(self.format._label_at))
        self.rows.append(len(self.lines))
        self.lines.append(line)
        self.tokens.append(tuple(fields))

    def _begin(self, line: Line) -> None:
        self.first, self.separator = line, separator_of(line.text)
        if self.format.separator == "\t" and self.format._width == 2 and not self.must_be_labelled:
            self.separator = "\t"  # a word without its label, which may hold blanks
        self.width = len(fields_of(line.text, self.separator))
        expected, names = self.format._width, ", ".join(self.format.columns)
        self.labelled = self.width == expected
        if self.labelled or (self.width == expected - 1 and not self.must_be_labelled):
            return
        wanted = f"{expected} columns ({names} and a label)"
        if not self.must_be_labelled:
            wanted += ", or one fewer without labels"
        if self.width == expected - 1:
            wanted += ": there are no labels"
        text = f"it has {_columns(self.width)}, and should have {wanted}"
        raise mistake(self.source, line.number, text)


def _columns(count: int) -> str:
    return f"{count} column{'' if count == 1 else 's'}"
