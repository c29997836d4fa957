"""Which format a text file has: said by the user, kept in a model file, or guessed from the file.

>>> from crfx.io.sentences import Line
>>> guess([Line(1, "EU NNP B-ORG"), Line(2, "rejects VBZ O")])
Conll(columns=('word', 'c1'), label=-1, comments=None, separator=' ')
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crfx.io.conll import DOCUMENT, Conll, fields_of, separator_of
from crfx.io.conllu import FIELDS, Conllu
from crfx.io.crfsuite import Crfsuite
from crfx.io.lines import mistake
from crfx.io.sentences import Format, Line

NAMES = ("conll", "crfsuite", "conllu")
"""Formats of text; arrays (`crfx.io.arrays`) are no text."""
WORD = "word"
_ATTRIBUTE = re.compile(r".+(?<!\\)[=\[:].*")
_WORD_LINE = re.compile(r"[0-9]+(?:[-.][0-9]+)?")
_ENDINGS = {".conllu": "conllu", ".crfsuite": "crfsuite"}


def guess(
    first: Sequence[Line],
    path: str | os.PathLike[str] = "<lines>",
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    comments: str | None = None,
) -> Format:
    """The format of a file from its first lines (`Lines.peek_block`) and its name.

    What the user says about it must fit: see `by_name`.
    """
    found = _guessed_name(_token_lines(first, comments), Path(path))
    return by_name(found, first, path, columns=columns, label=label, comments=comments)


def by_name(
    name: str,
    first: Sequence[Line],
    path: str | os.PathLike[str] = "<lines>",
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    comments: str | None = None,
) -> Format:
    """A format whose name is known, with what its first lines say about columns.

    ``columns`` names those of a token: in conll all but the label's, in conllu those to use.
    ``label`` is in conll a number, which column has it (0, 1, ..., or -1, the last), in conllu one
    of upos, xpos, feats and deprel.  ``comments``, of conll, is what they begin with.  ``path`` is
    for messages.
    """
    if name == "conll":
        tokens = _token_lines(first, comments)
        if not tokens:
            text = "there is no line with a token: a word and its label, say, in columns"
            raise ValueError(f"{os.fspath(path)}: {text}")
        try:
            return _conll(tokens[0].text, columns, label, comments)
        except ValueError as error:
            raise mistake(path, tokens[0].number, str(error)) from None
    if comments is not None:
        raise ValueError(f"comments can be chosen in conll only, and the format is {name}")
    if name == "conllu":
        used = ("form",) if columns is None else tuple(columns)
        return Conllu(label="upos" if label is None else label, columns=used)
    if name == "crfsuite":
        if columns is not None or label is not None:
            raise ValueError("crfsuite has no columns to name: the label comes first")
        return Crfsuite()
    raise ValueError(f"there is no format {name!r}: there are {', '.join(NAMES)}")


def from_plain(plain: Any) -> Format:
    """A format from what `Format.to_plain` gave; a mistake raises ValueError."""
    if not isinstance(plain, dict) or plain.get("name") not in NAMES:
        raise ValueError(f"there is no format of text in {plain!r}: its name is unknown")
    name = plain["name"]
    rest = {key: value for key, value in plain.items() if key != "name"}
    kinds: dict[str, dict[str, type | tuple[type, ...]]] = {
        "conll": {"columns": list, "label": int, "comments": (str, type(None)), "separator": str},
        "conllu": {"label": str, "columns": list, "trees": bool},
        "crfsuite": {},
    }
    if rest.keys() != kinds[name].keys():
        raise ValueError(f"a format {name} has {sorted(kinds[name])}, not {sorted(rest)}")
    for key, kind in kinds[name].items():
        if not isinstance(rest[key], kind) or (kind is int and isinstance(rest[key], bool)):
            raise ValueError(f"the {key} of the format {name} cannot be {rest[key]!r}")
    if "columns" in rest:
        if not all(isinstance(column, str) for column in rest["columns"]):
            raise ValueError(f"columns of the format {name} must be texts: {rest['columns']!r}")
        rest["columns"] = tuple(rest["columns"])
    if name == "conll":
        return Conll(**rest)
    return Conllu(**rest) if name == "conllu" else Crfsuite()


def is_arrays(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an archive of arrays (npz), by its first bytes."""
    if os.fspath(path) == "-" or not Path(path).is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _token_lines(first: Sequence[Line], comments: str | None) -> list[Line]:
    """The lines that have tokens, as far as one can tell."""
    return [
        line
        for line in first
        if line.text.strip()
        and not line.text.startswith(DOCUMENT)
        and not (comments and line.text.startswith(comments))
    ]


def _guessed_name(tokens: Sequence[Line], path: Path) -> str:
    endings = [ending.lower() for ending in path.suffixes]
    for ending, name in _ENDINGS.items():
        if ending in endings[-2:]:
            return name
    rows = [line.text.split("\t") for line in tokens if not line.text.startswith("#")]
    if rows and all(len(row) == len(FIELDS) and _WORD_LINE.fullmatch(row[0]) for row in rows):
        return "conllu"
    attributes = [field for row in rows for field in row[1:] if field]
    named = sum(_ATTRIBUTE.fullmatch(field) is not None for field in attributes)
    # Words with = or : are rare; names of attributes without one of [ = : are too.
    return "crfsuite" if attributes and 2 * named > len(attributes) else "conll"


def _conll(
    text: str, columns: Sequence[str] | None, label: str | None, comments: str | None
) -> Conll:
    """With as many columns as the first token's line has."""
    separator = separator_of(text)
    width = len(fields_of(text, separator))
    if width < 2:
        hint = ", parted by blanks or tabs and not by commas" if "," in text else ""
        raise ValueError(f"{text!r} has one column: it needs a label too{hint}")
    if columns is None:
        columns = (WORD, *(f"c{number}" for number in range(1, width - 1)))
    if len(columns) != width - 1:
        raise ValueError(
            f"it has {width} columns, and {len(columns)} are named ({', '.join(columns)}): name "
            f"{width - 1}, all but the label"
        )
    return Conll(tuple(columns), _column(label), comments, separator)


def _column(label: str | None) -> int:
    if label is None:
        return -1
    if not re.fullmatch("-?[0-9]{1,6}", label):
        raise ValueError(f"label is {label!r}: in conll it is a number, 0 for the first column")
    return int(label)
