"""The template for text files when the user has none: good for entities, chunks and tags alike.

Chosen on parts of data that are kept for choosing; reports/text-template.md tells what was tried.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = """\
{word}[-2..2]
lower({word}[-1..1])
{word}[-1..0] & {word}[0..1]
prefix({word}[0], 1..4)
suffix({word}[0], 1..4)
shape({word}[-1..1])
kind({word}[-2..2])
kind({word}[-1..0]) & kind({word}[0..1])
kind({word}[-1]) & kind({word}[0]) & kind({word}[1])
lower({word}[-1]) & kind({word}[0])
lower({word}[1]) & kind({word}[0])
"""
_FURTHER = """\
{column}[-2..2]
{column}[-1..0] & {column}[0..1]
"""
_NAME = re.compile(r"[A-Za-z_]\w*")


def text_template(columns: Sequence[str]) -> str:
    """The text of a `Template`: the first column is the word, others say something about it.

    >>> print(text_template(["word", "pos"]).splitlines()[-2])
    pos[-2..2]
    """
    if not columns:
        raise ValueError("there is no column to make features of")
    for name in columns:
        if _NAME.fullmatch(name) is None:
            raise ValueError(
                f"the column {name!r} cannot stand in a template: names have letters, digits and _"
            )
    word, *further = columns
    return _WORD.format(word=word) + "".join(_FURTHER.format(column=name) for name in further)
