"""Columns of text, as in the shared tasks of CoNLL: one token per line, then an empty line.

::

    EU      NNP  B-NP  B-ORG
    rejects VBZ  B-VP  O

Columns are separated by tabs if the line of the first token has one, otherwise by blanks.  The
label is the last column by default.  Lines that start with ``-DOCSTART-`` are not tokens.  Comments
are recognised only if the user passes how they begin, since ``#`` may be a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from crfx.io.lines import mistake
from crfx.io.sentences import Line, Sentence

DOCUMENT = "-DOCSTART-"
_WORD = re.compile(r"[^ \t]+")
_CELL = re.compile(r"[^\t]+")
_SEPARATORS = {"\t": "tabs", " ": "blanks"}


class _Layout(NamedTuple):
    """The layout of the lines of a file; ``first`` is the number of the first line with a token."""

    first: int
    separator: str
    width: int
    labelled: bool


@dataclass(frozen=True)
class Conll:
    """Files with these ``columns`` and a label.

    ``label`` is the index of the label's column in the file, negative from the end.  Lines that
    start with ``comments`` are not tokens.  ``separator`` stands before a label that is added to a
    line of one column.
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
        """Yield sentences, each with the lines before its first token.

        So other lines can be written back where they were.  The last sentence may have no tokens:
        it holds the lines that remain.

        Parameters
        ----------
        lines : iterable of Line
            Such as `crfx.io.lines.open_lines` returns.
        labelled : bool, default True
            Whether every token must have a label.

        Yields
        ------
        Sentence

        Raises
        ------
        ValueError
            If a line is invalid; the error names the file and the line.

        Examples
        --------
        >>> from crfx.io.sentences import Line
        >>> lines = [Line(1, "the DT O"), Line(2, "Alps NNP B-LOC"), Line(3, "")]
        >>> (sentence,) = Conll(columns=("word", "pos")).read(lines)
        >>> sentence.tokens, sentence.labels
        ([('the', 'DT'), ('Alps', 'NNP')], ['O', 'B-LOC'])
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
        """Return the layout of the file, from the line of the first token."""
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
        """Return the lines of a sentence with other labels, also for lines that had none.

        Parameters
        ----------
        sentence : Sentence
            As `read` yields it.
        labels : list of str, one per token

        Returns
        -------
        list of str
        """
        texts = [line.text for line in sentence.lines]
        n_fields = self._width - (sentence.labels is None)
        for row, token, label in zip(sentence.rows, sentence.tokens, labels, strict=True):
            texts[row] = self._labelled(texts[row], token, label, n_fields)
        return texts

    def _labelled(self, text: str, token: tuple[str, ...], label: str, n_fields: int) -> str:
        """Return a line of so many fields with a label; its separators stay as they are."""
        place, has_label = self._label_at, n_fields == self._width
        cells = text.split("\t")
        if has_label and len(cells) == n_fields:
            del cells[place]
        # Lines may have tabs among their blanks, or blanks among their tabs.
        by_tabs = n_fields > 1 and tuple(cells) == token
        separator = self.separator if n_fields == 1 else separator_of(text)
        if place == n_fields:  # the label comes last, and there was none
            return (text if by_tabs or n_fields == 1 else text.rstrip(" \t")) + separator + label
        begin, end = [match.span() for match in (_CELL if by_tabs else _WORD).finditer(text)][place]
        if has_label:
            return text[:begin] + label + text[end:]
        return text[:begin] + label + separator + text[begin:]


def fields_of(text: str, separator: str) -> list[str]:
    """Return the columns of a line; `str.split()` would split at characters that words may hold.

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


def _columns(count: int) -> str:
    return f"{count} column{'' if count == 1 else 's'}"
