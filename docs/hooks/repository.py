"""Give the site the layout of the repository, so that one link serves both.

A page of docs/ links to `../reports/ocr.md`, as it must for those who read it in the repository.
Here every file of the site is given its path in the repository as source, and MkDocs, which
resolves links between sources, finds and checks them by itself.  Besides docs/ the site holds the
reports, and whatever is linked from a page that it holds; a folder becomes a page that lists it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"\]\((?P<path>[^)#:\s]+)(?P<rest>#[^)\s]*)?\)")
SHOWN_BY_BROWSERS = {".md", ".png", ".svg", ".jpg", ".json"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Give the pages of docs/ their paths in the repository, and add what they link to."""
    root = repository(config)
    pages = [file for file in files if file.src_dir == config.docs_dir]
    for file in pages:
        files.remove(file)
    start = [f"docs/{file.src_uri}" for file in pages if not file.src_uri.startswith("hooks/")]
    start += sorted(f"reports/{page.name}" for page in (root / "reports").glob("*.md"))
    for path in linked(root, start):
        files.append(folder(config, path) if (root / path).is_dir() else file_at(config, path))
    return files


def on_page_markdown(text: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Let links to folders lead to their pages: MkDocs knows files only."""

    def led(match: re.Match[str]) -> str:
        target = joined(page.file.src_uri, match["path"])
        is_folder = target is not None and (repository(config) / target).is_dir()
        return f"]({match['path'].rstrip('/')}/index.md)" if is_folder else match[0]

    return LINK.sub(led, text)


def linked(root: Path, paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths and all that their pages link to, each once, relative to ``root``."""
    waiting, seen = list(paths), set()
    while waiting:
        path = waiting.pop()
        if path in seen or not (root / path).exists():
            continue  # MkDocs reports links to missing files
        seen.add(path)
        yield path
        if (root / path).is_dir():
            waiting += [f"{path}/{name}" for name in names(root / path)]
        elif path.endswith(".md"):
            text = (root / path).read_text(encoding="utf-8")
            targets = (joined(path, match["path"]) for match in LINK.finditer(text))
            waiting += [target for target in targets if target is not None]


def joined(page: str, link: str) -> str | None:
    """Return the path in the repository of a link on a page; None if it leads out of it."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    return None if target.startswith(("..", "/")) else target


def file_at(config: MkDocsConfig, path: str) -> File:
    """Return a file of the repository at its place in the site, whose root is docs/."""
    file = File.generated(config, path, abs_src_path=str(repository(config) / path))
    if path == "README.md":
        file.dest_uri = "readme/index.html"  # docs/index.md is the front page
    elif path.startswith("docs/"):
        file.dest_uri = file.dest_uri.removeprefix("docs/")
    elif Path(path).suffix not in SHOWN_BY_BROWSERS:
        file.dest_uri += ".txt"  # source code, which servers would offer to save
    return file


def folder(config: MkDocsConfig, path: str) -> File:
    """Return a page that lists a folder, excluded from the search, which it would flood."""
    lines = [f"- [{name}]({name})" for name in names(repository(config) / path)]
    text = "\n".join(["---", "search: {exclude: true}", "---", f"# {path}", "", *lines])
    return File.generated(config, f"{path}/index.md", content=text)


def names(folder: Path) -> list[str]:
    """Return the files of a folder and its subfolders, except caches and hidden files."""
    inside = (child.relative_to(folder) for child in folder.rglob("*") if child.is_file())
    return sorted(path.as_posix() for path in inside if all(p[0] not in "._" for p in path.parts))


def repository(config: MkDocsConfig) -> Path:
    """Return the root of the repository, the folder of mkdocs.yml."""
    return Path(config.config_file_path).parent
