"""Coverage of docstrings, and of estimators and commands by executed examples."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import crfx
from crfx.cli import _COMMANDS, main
from documented import ROOT
from documented.running import caught, lines_of

SOURCE = ROOT / "src" / "crfx"
ESTIMATORS = [name for name in crfx.__all__ if name.endswith("CRF")]
RANK = [("rank", action) for action in ("train", "predict", "eval")]
COMMANDS = [*((name,) for name in _COMMANDS if name != "rank"), *RANK]
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public_names(source: Path = SOURCE) -> Iterator[tuple[str, bool]]:
    """(name, whether it has a docstring) of every public module, class, function and method."""
    for path in sorted(source.rglob("*.py")):
        module = ".".join(["crfx", *path.relative_to(source).with_suffix("").parts])
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield module, ast.get_docstring(tree) is not None
        yield from _inside(module, tree)


def _inside(outer: str, node: ast.Module | ast.ClassDef) -> Iterator[tuple[str, bool]]:
    for child in node.body:
        if isinstance(child, Definition) and not child.name.startswith("_"):
            yield f"{outer}.{child.name}", ast.get_docstring(child) is not None
            if isinstance(child, ast.ClassDef):
                yield from _inside(f"{outer}.{child.name}", child)


def examples_of_estimator(name: str) -> int:
    """Return how many examples the class shows; pytest runs them with the other docstrings."""
    docstring = getattr(crfx, name).__doc__
    return len(doctest.DocTestParser().get_examples(docstring))


def examples_of_command(command: tuple[str, ...]) -> list[str]:
    """The lines of the shell under "example:" on its help page."""
    with caught() as out, suppress(SystemExit):
        main([*command, "--help"])
    lines = lines_of(out)
    below = lines[lines.index("example:") + 1 :]
    return [line.strip() for line in below if re.match(r"  (?:\w+=\w+ )?(?:crfx|cat) ", line)]
