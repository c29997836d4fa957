"""CRFsuite's text files: a label, then attributes, by tabs; an empty line after a sequence.

::

    B-NP<TAB>w[0]=An<TAB>w[1]=A.P.<TAB>scale:0.5

An attribute is a name, or a name, a colon and a value; in names ``\\:`` is a colon and ``\\\\`` a
backslash.  As in CRFsuite, several tabs count as one, ``#`` begins no comment, and the values of a
repeated attribute are added.  Unlike in CRFsuite, a line may begin with a tab: then its label is
unknown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

from crfx.io.lines import mistake
from crfx.io.sentences import Line, Sentence

_FIELD = re.compile(r"((?:[^:\\]|\\[:\\]|\\(?![:\\]))*)(?::([^:]*))?")
_ESCAPED = re.compile(r"\\([:\\])")
_LARGEST = 3.4e38  # features are kept in 32 bits


@dataclass(frozen=True)
class Crfsuite:
    """Files whose tokens are features: lists of names, or dicts if values differ from 1."""

    name: ClassVar[str] = "crfsuite"
    has_unknown_labels: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...] | None] = None

    def read(self, lines: Iterable[Line], *, labelled: bool = True) -> Iterator[Sentence]:
        """Yield sentences; empty lines before one belong to it, and are written back.

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
        for line in chain(lines, [Line(0, "")]):
            if line.text.strip() or not block or not block[-1].text.strip():
                block.append(line)
                continue
            yield _sentence(lines, block, labelled)
            block = []

    def written(self, sentence: Sentence, labels: Sequence[str]) -> list[str]:
        """Return the lines of a sentence with other labels.

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
        for row, label in zip(sentence.rows, labels, strict=True):
            _, tab, attributes = texts[row].partition("\t")
            texts[row] = escaped(label) + tab + attributes
        return texts


def line_of(label: str, features: Iterable[str] | Mapping[str, float]) -> str:
    """Return a line of a file from a label and features, names or a dict of values.

    >>> line_of("O", {"w=:": 1, "scale": 0.5})
    'O\\tw=\\\\:\\tscale:0.5'
    """
    if isinstance(features, Mapping):
        attributes = [
            escaped(name) + ("" if value == 1 else f":{value!r}")
            for name, value in features.items()
        ]
    else:
        attributes = list(map(escaped, features))
    if label.startswith("@"):
        raise ValueError(f"the label {label!r} cannot be written: to CRFsuite @ is a declaration")
    return "\t".join([escaped(label), *attributes])


def escaped(name: str) -> str:
    """Return a name as it is written."""
    if not name or any(sign in name for sign in "\t\n\r"):
        raise ValueError(f"{name!r} cannot be written: names hold no tabs, and are not empty")
    return name.replace("\\", "\\\\").replace(":", "\\:")


def _sentence(source: Iterable[Line], block: list[Line], labelled: bool) -> Sentence:
    """Read a sentence; its labels are None if no token has one."""
    rows = [row for row, line in enumerate(block) if line.text.strip()]
    labels: list[str | None] = []
    tokens = []
    for row in rows:
        label, *attributes = block[row].text.split("\t")
        try:
            if labelled and not label:
                raise ValueError("there is no label before the first tab")
            labels.append(_label(label) if label else None)
            tokens.append(_features([text for text in attributes if text]))
        except ValueError as error:
            raise mistake(source, block[row].number, str(error)) from None
    has_labels = any(label is not None for label in labels)
    return Sentence(tokens, labels if has_labels else None, block, rows)


def _label(text: str) -> str:
    if text.startswith("@"):
        raise ValueError(
            f"{text!r} is a declaration, as @weight: weights of sequences are not read; take it out"
        )
    name, value = _name_and_value(text)
    if value is not None:
        raise ValueError(f"the label {text!r} has a colon: write it as \\:")
    return name


def _features(attributes: list[str]) -> list[str] | dict[str, float]:
    """Return features: a list of names if all values are 1, otherwise a dict."""
    if not any(":" in text or "\\" in text for text in attributes):
        return attributes
    pairs = [_name_and_value(text) for text in attributes]
    if all(value is None for _, value in pairs):
        return [name for name, _ in pairs]
    features: dict[str, float] = {}
    for name, value in pairs:
        features[name] = features.get(name, 0.0) + (1.0 if value is None else value)
    return features


def _name_and_value(text: str) -> tuple[str, float | None]:
    """Return the name of an attribute and its value, None if it has none."""
    match = _FIELD.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} has more than one colon: in a name, write \\:")
    name, value = _ESCAPED.sub(r"\1", match[1]), match[2]
    if not name:
        raise ValueError(f"{text!r} has no name before the colon: in a name, write \\:")
    if not value:  # a colon without a value is a value of 1, as in CRFsuite
        return name, None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not abs(number) <= _LARGEST:
        raise ValueError(
            f"the value of {name!r} is {value!r}: it must be a number (in a name, write \\:)"
        )
    return name, number
