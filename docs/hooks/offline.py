"""Nothing is fetched when a page is read: scripts, styles, fonts and pictures are our own."""

from __future__ import annotations

import re

from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*>"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|preconnect|icon))[^>]*"""
    r"""\bhref=["']?(?:https?:)?//[^>]*>"""
)


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Refuse a page that would fetch something from elsewhere; links are free."""
    if found := FETCHED.search(output):
        raise PluginError(f"{page.file.src_uri} would fetch something from elsewhere: {found[0]}")
    return output
