"""Equations become MathML while the site is built: browsers draw it, no script is loaded.

The Markdown extension arithmatex finds ``$…$`` and ``$$…$$`` and leaves them in elements of its
class; here these are replaced.  What the converter does not understand it would print as it is:
that is an error instead, which names the page.
"""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

EQUATION = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
# Words of LaTeX that the converter lacks, in terms of those it has.
SYNONYMS = {
    r"\begin{aligned}": r"\begin{split}",
    r"\end{aligned}": r"\end{split}",
    r"\arg": r"\operatorname{arg}\,",
    r"\dfrac": r"\frac",
}


def on_page_content(text: str, page: Page, **_: object) -> str:
    """Replace the equations of a page."""

    def replaced(match: re.Match[str]) -> str:
        try:
            return mathml(html.unescape(match["latex"]), display=match["tag"] == "div")
        except ValueError as error:
            raise PluginError(f"{page.file.src_uri}: {error}") from None

    return EQUATION.sub(replaced, text)


def mathml(latex: str, *, display: bool) -> str:
    """An equation in MathML; ValueError where a word of it is not known."""
    told = latex.strip()
    for word, synonym in SYNONYMS.items():
        told = re.sub(re.escape(word) + r"(?![a-zA-Z])", lambda _, new=synonym: new, told)
    try:
        found = convert(told, display="block" if display else "inline")
    except Exception as error:  # the converter has many, StopIteration among them
        raise ValueError(f"cannot read the equation {latex!r}: {error!r}") from None
    depth = told.replace(r"\{", "").replace(r"\}", "")
    if depth.count("{") != depth.count("}"):
        raise ValueError(f"the braces of the equation {latex!r} do not match")
    if unknown := re.search(r"\\\w+|(?<=<mi>)&(?=<)", found):
        raise ValueError(f"the equation {latex!r} has {unknown[0]!r}, which latex2mathml lacks")
    return found
