"""Imports point one way, and the docstrings tell the same order.

Floors are listed top first. A module may import from any floor below its own and, on its
own floor, from what stands to its right; so no cycle can form. Imports inside functions count
too: they may be late, but not upward.
"""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "crfx"

FLOORS = (
    ("__main__",),
    ("cli", "report"),
    ("distributed", "scorers", "estimators"),
    ("datasets",),
    ("serialisation", "explain", "prediction"),
    ("inputs",),
    ("trainers",),
    ("io",),
    ("model",),
    ("potentials", "objectives"),
    ("inference",),
    ("structures", "batch"),
    (
        "scores",
        "tag_report",
        "calibration",
        "metrics",
        "ndcg",
        "features",
        "workers",
        "threads",
        "errors",
        "messages",
        "explanation",
        "terms",
        "state",
        "versions",
    ),
    ("_core",),
)
ORDER = [part for floor in FLOORS for part in floor]
FLOOR_OF = {part: floor for floor, parts in enumerate(FLOORS) for part in parts}


def imported_parts(path, source):
    """(line, part) for each import of something inside crfx; part is None for the root itself."""
    package = ["crfx", *path.relative_to(source).parent.parts]
    parts = {child.stem for child in source.iterdir()}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            root, *rest = name.split(".")
            if root == "crfx":
                yield node.lineno, rest[0] if rest and rest[0] in parts else None


def violations(source):
    """Every import that points up, sideways to the left, at `testing` or at the root."""
    broken = []
    for path in sorted(source.rglob("*.py")):
        relative = path.relative_to(source)
        part = relative.parts[0].removesuffix(".py")
        if part == "__init__":
            continue  # the root offers the public names, so it may import anything
        if part != "testing" and part not in FLOOR_OF:
            broken.append(f"{relative}: {part!r} stands on no floor")
            continue
        for line, other in imported_parts(path, source):
            if other != part and not may_import(part, other):
                broken.append(f"{relative}:{line}: {part} may not import {other or 'crfx itself'}")
    return broken


def may_import(part, other):
    if other not in FLOOR_OF:
        return False
    if part == "testing":
        return FLOOR_OF[other] > FLOOR_OF["estimators"]
    return ORDER.index(other) > ORDER.index(part)


def test_imports_point_one_way():
    assert violations(SOURCE) == []


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("scores.py", "from crfx.inference import sum_product", "scores may not import inference"),
        ("scores.py", "from .inference import sum_product", "scores may not import inference"),
        ("scores.py", "def f():\n    import crfx.inference", "scores.py:2: scores may not import"),
        ("structures/chain.py", "from ..inference import x", "structures may not import inference"),
        ("structures/chain.py", "from .. import cli", "structures may not import cli"),
        ("batch.py", "from crfx import structures", "batch may not import structures"),
        ("batch.py", "import crfx", "batch may not import crfx itself"),
        ("batch.py", "from crfx import Batch", "batch may not import crfx itself"),
        ("inference/x.py", "from crfx.testing import x", "inference may not import testing"),
        ("testing/x.py", "from crfx.cli import x", "testing may not import cli"),
        ("helpers.py", "", "'helpers' stands on no floor"),
    ],
)
def test_a_bad_import_is_seen(tmp_path, path, code, message):
    (result,) = violations(planted(tmp_path, path, code))
    assert message in result


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("structures/chain.py", "from crfx.batch import Batch\nfrom .forest import Forest"),
        ("structures/chain.py", "import numpy\nfrom crfx import _core"),
        ("testing/x.py", "from crfx.inference import x\nfrom crfx.testing.y import z"),
        ("__init__.py", "from crfx.cli import main"),
    ],
)
def test_a_good_import_is_let_through(tmp_path, path, code):
    assert violations(planted(tmp_path, path, code)) == []


def planted(source, path, code):
    """A tree with every part of crfx, empty but for one file."""
    for part in [*FLOOR_OF, "testing"]:
        (source / part).mkdir()
    (source / path).parent.mkdir(exist_ok=True)
    (source / path).write_text(code)
    return source


# The pipeline can be read folder by folder: the root's docstring names the parts in order (each
# first mention in backquotes counts), and every sub-package opens by saying where it stands.
OPENING = re.compile(
    r"Takes .+?, gives .+?; comes after (?P<after>.+?), before (?P<before>.+?)\.", re.IGNORECASE
)


def subpackages(source):
    return sorted(init.parent.name for init in source.glob("*/__init__.py"))


def pipeline(source):
    return list(dict.fromkeys(named_parts(docstring(source / "__init__.py"))))


def misplaced(source, part):
    """Return what the opening of a sub-package's docstring gets wrong, or None."""
    opening = " ".join(docstring(source / part / "__init__.py").split("\n\n")[0].split())
    match = OPENING.match(opening)
    if not match:
        return f"{part}: opens with {opening!r}, not 'Takes …, gives …; comes after …, before ….'"
    before, after = named_parts(match["after"]), named_parts(match["before"])
    if not before and not after:
        return f"{part}: names no neighbour in backquotes: {opening!r}"
    order = pipeline(source)
    sections = [*before, part, *after]
    if missing := [name for name in sections if name not in order]:
        return f"{part}: the docstring of crfx does not name {missing}"
    here = order.index(part)
    wrong = [name for name in before if order.index(name) >= here]
    wrong += [name for name in after if order.index(name) <= here]
    return f"{part}: the docstring of crfx places {wrong} otherwise" if wrong else None


def docstring(path):
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def named_parts(text):
    return re.findall(r"`(?:crfx\.)?(\w+)`", text)


@pytest.mark.parametrize("part", subpackages(SOURCE))
def test_subpackages_say_where_they_stand(part):
    assert misplaced(SOURCE, part) is None


@pytest.mark.parametrize(
    ("opening", "message"),
    [
        ("Takes a, gives b; comes after `batch`, before `cli`.", None),
        ("Takes a, gives b; comes after\n`batch`, before nothing.\n\nMore of it.", None),
        ("Things about chains.", "opens with 'Things about chains.'"),
        ("Takes a, gives b; comes after some, before others.", "names no neighbour"),
        ("Takes a, gives b; comes after `scores`, before `cli`.", "does not name ['scores']"),
        ("Takes a, gives b; comes after `cli`, before nothing.", "places ['cli'] otherwise"),
        ("Takes a, gives b; comes after nothing, before `batch`.", "places ['batch'] otherwise"),
    ],
)
def test_a_wrong_opening_is_seen(tmp_path, opening, message):
    (tmp_path / "__init__.py").write_text('"""First `batch`, `inference`, then `cli`."""')
    (tmp_path / "inference").mkdir()
    (tmp_path / "inference" / "__init__.py").write_text(f'"""{opening}"""')
    result = misplaced(tmp_path, "inference")
    assert result is None if message is None else message in result
