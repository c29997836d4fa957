"""Formats of text files: chosen by the user, kept in a model file, or guessed from the file.

>>> from crfx.io.sentences import Line
>>> format_of([Line(1, "EU NNP B-ORG"), Line(2, "rejects VBZ O")])
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
from crfx.io.sentences import Line

Format = Conll | Conllu | Crfsuite
"""A format with the settings that a file needs (columns, which of them has the label).

``name`` is what users call it.  ``columns`` are the names of a token's columns without the label,
None if tokens are features already.  ``has_unknown_labels`` tells whether a labelled file may lack
some labels.  ``read(lines, labelled=)`` yields sentences as soon as their last line has been read;
with ``labelled`` every token must have a label, otherwise a file without labels is read too.
``written(sentence, labels)`` returns the lines of a sentence with other labels.
"""
_SETTINGS: dict[str, tuple[type[Format], dict[str, Any]]] = {
    "conll": (
        Conll,
        {"columns": list, "label": int, "comments": str | None, "separator": str},
    ),
    "crfsuite": (Crfsuite, {}),
    "conllu": (Conllu, {"label": str, "columns": list, "trees": bool}),
}
"""The class of each format, and the types of its settings in a model file."""
NAMES = tuple(_SETTINGS)
"""Formats of text; arrays (`crfx.io.arrays`) are not text."""
WORD = "word"
_ATTRIBUTE = re.compile(r".+(?<!\\)[=\[:].*")
_WORD_LINE = re.compile(r"[0-9]+(?:[-.][0-9]+)?")
_ENDINGS = {".conllu": "conllu", ".crfsuite": "crfsuite"}


def format_of(
    first: Sequence[Line],
    path: str | os.PathLike[str] = "<lines>",
    *,
    name: str | None = None,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    comments: str | None = None,
) -> Format:
    """Return the format of a file, whose first lines (`Lines.peek_block`) show its columns.

    Without ``name`` the format is guessed from these lines and from the name of the file.

    ``columns`` names those of a token: in conll all but the label's, in conllu those to use.
    ``label`` is in conll the number of the label's column (0, 1, ..., or -1, the last), in conllu
    one of upos, xpos, feats and deprel.  ``comments`` is what comments of conll begin with.
    ``path`` is also used in messages.
    """
    tokens = _token_lines(first, comments)
    name = _guessed_name(tokens, Path(path)) if name is None else name
    if name == "conll":
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


def to_plain(format: Format) -> dict[str, Any]:
    """Return the name and the settings of a format as a model file keeps them."""
    settings = {"name": format.name, **vars(format)}
    return {key: list(v) if isinstance(v, tuple) else v for key, v in settings.items()}


def from_plain(plain: Any) -> Format:
    """Return the format that `to_plain` has described; raise ValueError if it is invalid."""
    if not isinstance(plain, dict) or plain.get("name") not in NAMES:
        raise ValueError(f"there is no format of text in {plain!r}: its name is unknown")
    name = plain["name"]
    format, kinds = _SETTINGS[name]
    settings = {key: value for key, value in plain.items() if key != "name"}
    if settings.keys() != kinds.keys():
        raise ValueError(f"a format {name} has {sorted(kinds)}, not {sorted(settings)}")
    for key, kind in kinds.items():
        value = settings[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ValueError(f"the {key} of the format {name} cannot be {value!r}")
    if "columns" in settings:
        if not all(isinstance(column, str) for column in settings["columns"]):
            raise ValueError(f"columns of the format {name} must be texts: {settings['columns']!r}")
        settings["columns"] = tuple(settings["columns"])
    return format(**settings)


def is_arrays(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is an archive of arrays (npz), by its first bytes."""
    if os.fspath(path) == "-" or not Path(path).is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _token_lines(first: Sequence[Line], comments: str | None) -> list[Line]:
    """Return the lines that probably have tokens."""
    return [
        line
        for line in first
        if line.text.strip()
        and not line.text.startswith(DOCUMENT)
        and not (comments and line.text.startswith(comments))
    ]


def _guessed_name(tokens: Sequence[Line], path: Path) -> str:
    """Return the format by the name of the file, or else by the lines with tokens."""
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
    """Return a format with as many columns as the line of the first token."""
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
