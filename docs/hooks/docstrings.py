"""Docstrings are read in a terminal first; here they are made ready for a page of Markdown.

Examples (``>>>``) would be quotations within quotations: they become blocks of code.  A paragraph
that ends with ``::`` announces a block that is indented, which Markdown takes for code by itself.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n *\S.*)*", re.MULTILINE)


class Readable(Extension):
    """Applied to every object that is read."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change the text of the docstring, before its sections are told apart."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """The text of a docstring, with its examples in fences."""
    fenced = EXAMPLE.sub(
        lambda match: f"{match['indent']}```pycon\n{match[0]}\n{match['indent']}```", text
    )
    return re.sub(r"::$", ":", fenced, flags=re.MULTILINE)
