"""The fenced blocks of the pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from documented import ROOT

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w*)(?: [^`\n]*)?\n(?P<text>.*?)^(?P=indent)``` *$", re.M | re.S
)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
UNSEEN = re.compile(r"^[ >]*(?:[-*+] +|\d+[.)] +)?(?:```|~~~)|(?:\A|(?<=\n\n))(?: {4}|\t).*", re.M)
"""What shows code too, and what the tests would not find: other fences, and indented lines."""
INDENTED = {"docs/examples.md"}
"""Pages whose indented lines something else compares: tests/test_examples.py."""


@dataclass(frozen=True)
class Block:
    """One block: where it stands, the word behind its fence, what is in it."""

    page: str
    line: int
    kind: str
    text: str

    @property
    def place(self) -> str:
        """Return the place for messages, such as README.md:12."""
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """README.md and the pages of docs/, from the repository's root; decisions have no blocks."""
    return ["README.md", *(name(path) for path in sorted((ROOT / "docs").rglob("*.md")))]


def name(path: Path) -> str:
    """The path of a page, as links and messages write it."""
    return path.relative_to(ROOT).as_posix()


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    return found_in(page, (ROOT / page).read_text(encoding="utf-8"))


def found_in(page: str, text: str) -> list[Block]:
    """The blocks of a text; what is in comments is not shown, and does not count."""
    shown = COMMENT.sub(_blank, text)
    rest = FENCE.sub(_blank, shown)
    for match in UNSEEN.finditer(rest):
        if "```" in match[0] or "~~~" in match[0] or page not in INDENTED:
            line = rest.count("\n", 0, match.start()) + 1
            raise ValueError(f"{page}:{line}: only blocks between lines of ``` are run")
    return [
        Block(page, shown.count("\n", 0, match.start()) + 1, match["kind"], match["text"])
        for match in FENCE.finditer(shown)
    ]


def _blank(match: re.Match[str]) -> str:
    """Lines without anything, as many: what stands below keeps its number."""
    return "\n" * match[0].count("\n")
