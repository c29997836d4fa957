"""Equations become MathML while the site is built: browsers draw it, no script is loaded.

The Markdown extension arithmatex finds ``$…$`` and ``$$…$$`` and leaves them in elements of its
class; this hook replaces them.  The converter would print what it does not understand unchanged:
here that is an error, which names the page.
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
# Commands of LaTeX that the converter lacks, written with those that it has.
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
    """Return an equation in MathML; raises ValueError if a command of it is not known."""
    source = latex.strip()
    for word, synonym in SYNONYMS.items():
        source = re.sub(re.escape(word) + r"(?![a-zA-Z])", lambda _, new=synonym: new, source)
    try:
        converted = convert(source, display="block" if display else "inline")
    except Exception as error:  # the converter has many, StopIteration among them
        raise ValueError(f"cannot read the equation {latex!r}: {error!r}") from None
    braces = source.replace(r"\{", "").replace(r"\}", "")
    if braces.count("{") != braces.count("}"):
        raise ValueError(f"the braces of the equation {latex!r} do not match")
    if unknown := re.search(r"\\\w+|(?<=<mi>)&(?=<)", converted):
        raise ValueError(f"the equation {latex!r} has {unknown[0]!r}, which latex2mathml lacks")
    return converted
