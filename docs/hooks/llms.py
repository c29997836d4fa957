"""Write `llms.txt` with the site: its title, a summary, and every page of the menu in one line.

The form is that of llmstxt.org.  A page's line is its title and the first sentence of its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jinja2 import Environment
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

LINK = re.compile(r"!?\[(?P<text>[^\]]*)\]\([^)]*\)")
NO_PROSE = ("#", "|", "-", ":::", "```", "!", "<", "**", "---", "*", "1.")
"""The beginnings of paragraphs that are not sentences: headings, tables, lists, code."""


def on_env(env: Environment, *, config: MkDocsConfig, files: Files) -> Environment:
    """Add the file to the site; the text of all pages has been read by now."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}."]
    for group in config.nav or []:
        ((title, entries),) = group.items()
        lines += ["", f"## {title}", ""]
        lines += [line_of(files.get_file_from_path(path)) for path in paths(entries)]
    files.append(File.generated(config, "llms.txt", content="\n".join(lines) + "\n"))
    return env


def paths(entries: Any) -> Iterator[str]:
    """Yield the pages of a group of the menu, those of its subgroups included, in order."""
    if isinstance(entries, str):
        yield entries
    else:
        for entry in entries.values() if isinstance(entries, dict) else entries:
            yield from paths(entry)


def line_of(file: File | None) -> str:
    """Return the entry of a page: its title, linked, and its first sentence."""
    assert file is not None  # MkDocs has checked the menu
    assert file.page is not None
    summary = first_sentence(file.page.markdown or "")
    return f"- [{file.page.title}]({file.url})" + (f": {summary}" if summary else "")


def first_sentence(markdown: str) -> str:
    """Return the first sentence of a page without its links; empty if it has no text."""
    without_code = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    paragraphs = (paragraph.strip() for paragraph in re.split(r"\n\s*\n", without_code))
    prose = (text for text in paragraphs if text and not text.startswith(NO_PROSE))
    plain = LINK.sub(r"\g<text>", " ".join(next(prose, "").split()))
    return re.split(r"(?<=[.!?])\s", plain, maxsplit=1)[0].rstrip(":")
