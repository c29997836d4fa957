"""CoNLL-U, version 2: treebanks of Universal Dependencies.

::

    # text = They didn't.
    1     They    they  PRON  PRP  Case=Nom  2  nsubj  _  _
    2-3   didn't  _     _     _    _         _  _      _  _
    2     did     do    AUX   VBD  _         0  root   _  _
    3     n't     not   PART  RB   _         2  advmod _  SpaceAfter=No

Ten columns, separated by tabs.  Comments, multiword tokens (2-3) and empty nodes (5.1) are not
tokens; they are written back as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from crfx.io.lines import mistake
from crfx.io.sentences import Line, Sentence

FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
LABELS = ("upos", "xpos", "feats", "deprel")
_USABLE = ("form", "lemma", "upos", "xpos", "feats", "deprel")
_NO_TOKEN = re.compile(r"[1-9][0-9]*-[1-9][0-9]*|[0-9]+\.[1-9][0-9]*")
_NUMBER = re.compile("[0-9]{1,9}")
_HEAD = FIELDS.index("head")


@dataclass(frozen=True)
class Conllu:
    """Treebanks with one field as the ``label`` and others as ``columns``.

    A text without annotation has the form only; lemma and the rest come from an annotator or
    another program.  With ``trees`` sentences have ``parents``, from HEAD.
    """

    label: str = "upos"
    columns: tuple[str, ...] = ("form",)
    trees: bool = False
    name: ClassVar[str] = "conllu"
    has_unknown_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.label not in LABELS:
            raise ValueError(f"label is {self.label!r}: it must be one of {', '.join(LABELS)}")
        if not self.columns:
            raise ValueError(f"there are no columns: name some of {', '.join(_USABLE)}")
        for column in self.columns:
            if column not in _USABLE:
                raise ValueError(f"column {column!r}: there are {', '.join(_USABLE)}")
            if column == self.label:
                raise ValueError(f"{column} is the label: it cannot be a column too")
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"columns are {', '.join(self.columns)}: one is there twice")

    def read(self, lines: Iterable[Line], *, labelled: bool = True) -> Iterator[Sentence]:
        """Yield sentences.

        An underscore is an unknown label; in feats it means no features.

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
        """
        lines = iter(lines)
        block: list[Line] = []
        for line in lines:
            if line.text.strip():
                block.append(line)
            elif block:
                yield self._sentence(lines, block, labelled)
                block = []
        if block:
            yield self._sentence(lines, block, labelled)

    def _sentence(self, source: Iterable[Line], block: list[Line], labelled: bool) -> Sentence:
        words: list[list[str]] = []
        rows: list[int] = []
        for row, line in enumerate(block):
            if line.text.startswith("#"):
                continue
            try:
                fields = _fields(line, len(words))
                if fields is None:
                    continue
                if labelled and self._label_of(fields) is None:
                    raise ValueError(f"there is no {self.label}: it is '_'")
            except ValueError as error:
                raise mistake(source, line.number, str(error)) from None
            words.append(fields)
            rows.append(row)
        places = [FIELDS.index(column) for column in self.columns]
        labels = [self._label_of(fields) for fields in words]
        return Sentence(
            [tuple(fields[place] for place in places) for fields in words],
            labels if any(label is not None for label in labels) or not words else None,
            block,
            rows,
            self._parents(source, block, rows, words) if self.trees else None,
        )

    def _label_of(self, fields: list[str]) -> str | None:
        label = fields[FIELDS.index(self.label)]
        return None if label == "_" and self.label != "feats" else label

    @staticmethod
    def _parents(
        source: Iterable[Line], block: list[Line], rows: list[int], words: list[list[str]]
    ) -> list[int]:
        parents = []
        for number, fields in enumerate(words, 1):
            head = fields[_HEAD]
            parent = int(head) if _NUMBER.fullmatch(head) else -1
            if not 0 <= parent <= len(words) or parent == number:
                raise mistake(
                    source,
                    block[rows[number - 1]].number,
                    f"HEAD is {head!r}: it must be 0, or the number of another word, up to "
                    f"{len(words)}",
                )
            parents.append(parent - 1)
        if (node := _in_a_cycle(parents)) is not None:
            text = "its heads lead in a circle, and to no root"
            raise mistake(source, block[rows[node]].number, text)
        return parents

    def written(self, sentence: Sentence, labels: Sequence[str]) -> list[str]:
        """Return the lines of a sentence with other labels in their field.

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
        place = FIELDS.index(self.label)
        for row, label in zip(sentence.rows, labels, strict=True):
            fields = texts[row].split("\t")
            fields[place] = label
            texts[row] = "\t".join(fields)
        return texts


def _fields(line: Line, n_words: int) -> list[str] | None:
    """Return the ten fields of the next word; None if the line is not a word."""
    fields = line.text.split("\t")
    if len(fields) != len(FIELDS):
        raise ValueError(f"it has {len(fields)} fields by tabs, and should have {len(FIELDS)}")
    if _NO_TOKEN.fullmatch(fields[0]):
        return None
    if not _NUMBER.fullmatch(fields[0]) or int(fields[0]) != n_words + 1:
        raise ValueError(f"ID is {fields[0]!r}: the next word is {n_words + 1}")
    if "" in fields:
        raise ValueError(f"{FIELDS[fields.index('')].upper()} is empty: write '_'")
    return fields


def _in_a_cycle(parents: list[int]) -> int | None:
    """Return the first node from which no root is reached, None if there is none.  O(nodes)."""
    visited_from: list[int | None] = [None] * len(parents)
    for begin in range(len(parents)):
        node = begin
        while node >= 0 and visited_from[node] is None:
            visited_from[node] = begin
            node = parents[node]
        if node >= 0 and visited_from[node] == begin:
            return begin
    return None
