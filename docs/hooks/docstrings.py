"""Turn docstrings, which are written for a terminal, into Markdown.

Examples (``>>>``) would become quotations within quotations: they become blocks of code.  After a
paragraph that ends with ``::`` comes an indented block, which Markdown shows as code.  Arguments
that share an entry (``start, end : array``) get an entry each: griffe would give all of them the
default of the first.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n *\S.*)*", re.MULTILINE)

TOGETHER = re.compile(
    r"^(?P<names>\w+(?:, \w+)+)(?P<kind> : .*)?\n(?P<text>(?: {4}.*(?:\n|\Z))+)", re.MULTILINE
)


class Readable(Extension):
    """An extension of griffe that changes the docstring of every object."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change the text of the docstring, before its sections are parsed."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """Return a docstring with its examples in fences and an entry for each argument."""
    text = TOGETHER.sub(one_by_one, text)
    fenced = EXAMPLE.sub(
        lambda match: f"{match['indent']}```pycon\n{match[0]}\n{match['indent']}```", text
    )
    return re.sub(r"::$", ":", fenced, flags=re.MULTILINE)


def one_by_one(match: re.Match[str]) -> str:
    """Return an entry for each argument of a shared one, each with the whole text."""
    text = match["text"].rstrip("\n")
    entries = [f"{name}{match['kind'] or ''}\n{text}\n" for name in match["names"].split(", ")]
    return "".join(entries)
