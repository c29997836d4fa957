"""Runs the blocks of a page as a reader would: one after the other, in one folder.

python  executed; prints what the comments behind its prints promise, and the text below it
sh      every line executed, or checked: `make` words and `pip` extras exist
text    what the block above printed, or a file that crfx reads
json, toml  read
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stdout
from itertools import zip_longest
from pathlib import Path
from typing import Any

from crfx.cli import main
from crfx.features import Template
from crfx.io.conll import Conll
from crfx.io.lines import open_lines
from documented import ROOT
from documented.blocks import Block

SHELL = re.compile(r"[|<>;&$*]|^\w+=")
"""What a line needs a shell for."""


class Page:
    """A reader who works through a page, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.namespace: dict[str, Any] = {}
        self.exported: dict[str, str] = {}

    def run(self, blocks: Sequence[Block]) -> None:
        """Run all of them; AssertionError where one does not do what the page says."""
        printed: list[str] = []
        with chdir(self.folder):
            for block, below in zip_longest(blocks, blocks[1:]):
                if block.kind == "python":
                    printed = self.python(block)
                    self.compare(block, printed, below)
                elif block.kind == "sh":
                    printed = [
                        line for command in commands(block) for line in self.command(*command)
                    ]
                else:
                    check_text(block, printed)

    def python(self, block: Block) -> list[str]:
        """Execute it; the lines that it printed."""
        code = compile("\n" * block.line + block.text, block.page, "exec")
        with caught() as out:
            exec(code, self.namespace)
        return lines_of(out)

    def compare(self, block: Block, printed: list[str], below: Block | None) -> None:
        """A print has its result behind it, or in the text below the block, which may leave out."""
        prints = re.findall(r"^ *print\((?:.*\)  # (.+))?", block.text, re.MULTILINE)
        promised = list(filter(None, prints))
        assert all(prints[: len(promised)]), (
            f"{block.place}: a print that says nothing stands before one that says what it prints"
        )
        below_is_text = below is not None and below.kind == "text"
        shown = below.text.splitlines() if below_is_text else []
        result = [line.rstrip() for line in printed]
        rest = result[len(promised) :]
        as_shown = rest in ([], shown) or ("…" in shown and was_printed(below.text, rest))
        difference = f"{block.place} promises {promised} and prints {printed}"
        assert result[: len(promised)] == promised, difference
        assert as_shown, difference

    def command(self, place: str, line: str) -> list[str]:
        """Run one line of the shell, or see that what it names exists; the lines it printed."""
        word, *arguments = shlex.split(line, comments=True)
        if word == "make":
            check_make(place, arguments)
        elif word == "pip":
            check_pip(place, arguments)
        elif word == "export":
            self.exported.update(argument.split("=", 1) for argument in arguments)
        elif word == "python" and arguments[0].startswith(("examples/", "benchmarks/", "tests/")):
            assert (ROOT / arguments[0]).is_file(), f"{place}: there is no {arguments[0]}"
        elif word == "crfx" and not SHELL.search(line) and not self.exported:
            with caught() as out:
                code = main(arguments)
            assert code == 0, f"{place}: {line!r} ended with {code}"
            return lines_of(out)
        elif re.search(r"(^|[|=&] *|\w )(crfx|python -m reproduce) ", line):
            return self.shell(place, line)
        else:
            raise AssertionError(f"{place}: {line!r} is executed by nothing")
        return []

    def shell(self, place: str, line: str) -> list[str]:
        """Run a line that needs a shell, with this interpreter, its crfx, and `reproduce`."""
        python = f'python() {{ {shlex.quote(sys.executable)} "$@"; }}'
        words = f'{python}; crfx() {{ python -m crfx "$@"; }}; less() {{ cat; }}'
        ended = subprocess.run(
            ["bash", "-c", f"{words}; set -e -o pipefail; {line}"],
            env={**os.environ, "PYTHONPATH": str(ROOT), **self.exported},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, f"{place}: {line!r}: {ended.stderr}"
        return ended.stdout.splitlines()


@contextmanager
def caught() -> Iterator[io.TextIOWrapper]:
    """Standard output, caught; bytes written to its buffer too."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with redirect_stdout(out):
        yield out


def lines_of(out: io.TextIOWrapper) -> list[str]:
    """Return the captured output line by line."""
    raw = out.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode("utf-8").splitlines()


def commands(block: Block) -> list[tuple[str, str]]:
    """(place, line) of the lines of a block: without comments, continued ones joined."""
    text = re.sub(r" *\\\n *", " ", block.text)
    lines = [re.split(r"(?:^|  )#", line)[0].strip() for line in text.splitlines()]
    return [(block.place, line) for line in lines if line]


def check_make(place: str, arguments: Sequence[str]) -> None:
    """The words are the Makefile's."""
    known = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    unknown = [word for word in arguments if "=" not in word and word not in known]
    assert not unknown, f"{place}: make does not know {unknown}"


def check_pip(place: str, arguments: Sequence[str]) -> None:
    """Check that a pip command installs crfx and that the extras exist."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert arguments[0] == "install", f"{place}: pip {arguments[0]} is executed by nothing"
    (target,) = arguments[1:]
    assert re.fullmatch(r"(\.|crfx)(\[[\w,]+\])?", target), f"{place}: what is {target}?"
    for extra in re.findall(r"\w+", target.partition("[")[2]):
        assert extra in project["optional-dependencies"], f"{place}: there is no extra {extra!r}"


def check_text(block: Block, printed: Sequence[str]) -> None:
    """A block that is no program: data that can be read, or what was printed above."""
    if block.kind == "json":
        json.loads(block.text)
    elif block.kind == "toml":
        tomllib.loads(block.text)
    else:
        assert block.kind == "text", f"{block.place}: a block of {block.kind!r} is run by nothing"
        assert (
            was_printed(block.text, printed) or is_template(block.text) or is_conll(block.text)
        ), f"{block.place} is neither what the block above printed nor a file that crfx reads"


def was_printed(text: str, printed: Sequence[str]) -> bool:
    """Return whether these lines were printed in this order; "…" stands for any others."""
    left = iter(line.rstrip() for line in printed)
    return all(line.rstrip() in left for line in text.splitlines() if line.strip() not in ("", "…"))


def is_template(text: str) -> bool:
    """Return whether this is a template of features."""
    try:
        Template(text, sorted(set(re.findall(r"(\w+)\[", text))))
    except ValueError:
        return False
    return True


def is_conll(text: str) -> bool:
    """Return whether these are sentences in columns whose last column holds labels."""
    Path("shown.conll").write_text(text, encoding="utf-8")
    width = len(text.split("\n", 1)[0].split())
    try:
        with open_lines("shown.conll") as lines:
            sentences = list(Conll(tuple(f"c{k}" for k in range(width - 1))).read(lines))
    except ValueError:
        return False
    labels = {str(label) for sentence in sentences for label in sentence.labels}
    is_span = [re.fullmatch(r"[BIES]-\S+", label) is not None for label in labels - {"O"}]
    return width > 1 and any(is_span) and all(is_span)
