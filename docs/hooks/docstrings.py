"""Docstrings are read in a terminal first; here they are made ready for a page of Markdown.

Examples (``>>>``) would be quotations within quotations: they become blocks of code.  A paragraph
that ends with ``::`` announces a block that is indented, which Markdown takes for code by itself.
Arguments that are told together (``start, end : array``) are told one by one: griffe would give all
of them the default of the first.
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
    """Applied to every object that is read."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change the text of the docstring, before its sections are told apart."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """The text of a docstring, with its examples in fences and a line for each argument."""
    text = TOGETHER.sub(one_by_one, text)
    fenced = EXAMPLE.sub(
        lambda match: f"{match['indent']}```pycon\n{match[0]}\n{match['indent']}```", text
    )
    return re.sub(r"::$", ":", fenced, flags=re.MULTILINE)


def one_by_one(match: re.Match[str]) -> str:
    """Arguments that are told together, each with the whole text."""
    text = match["text"].rstrip("\n")
    told = [f"{name}{match['kind'] or ''}\n{text}\n" for name in match["names"].split(", ")]
    return "".join(told)
