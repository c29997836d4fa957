"""Check that a page loads nothing from elsewhere: no script, style, font or image."""

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
    """Raise an error if a page would fetch something from elsewhere; links are allowed."""
    if match := FETCHED.search(output):
        raise PluginError(f"{page.file.src_uri} would fetch something from elsewhere: {match[0]}")
    return output
