"""The links from page to page."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

from documented import ROOT


def links_of(page: str) -> list[str]:
    """Return where links within the repository lead, from its root."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    return [os.path.normpath(os.path.join(os.path.dirname(page), link)) for link in links]


def reached(first: str, clicks: int, links: Callable[[str], Iterable[str]] = links_of) -> set[str]:
    """The pages that a reader comes to from the first one by so many clicks."""
    reached = {first}
    for _ in range(clicks):
        reached |= {link for page in reached for link in links(page) if link.endswith(".md")}
    return reached


def navigation() -> list[str]:
    """The pages that the site's menu lists."""
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    return re.findall(r"^ +- (?:[\w ]+: )?(\S+\.md)$", menu, re.MULTILINE)
