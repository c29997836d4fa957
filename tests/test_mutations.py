"""Mutations are found again by their text, and by the tests that cover them."""

import ast
import importlib
import sys
import textwrap
from pathlib import Path

import pytest

MUTATIONS = Path(__file__).parents[1] / "benchmarks" / "mutations"
NAMES = ("draw", "covering", "scratch")


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(MUTATIONS))
    yield tuple(importlib.import_module(name) for name in NAMES[:2])
    for name in NAMES:
        sys.modules.pop(name, None)


SOURCE = textwrap.dedent(
    '''\
    from typing import TYPE_CHECKING

    __all__ = ["area"]
    Number = int | float
    LIMIT = 2**31 - 1


    @cached(size=3)
    def area(width: Number, height: int = 1) -> int | None:
        """Return 1."""
        if width > (
            LIMIT
        ):
            return None
        try:
            return width * height
        except TypeError:
            return 0


    class Box:
        sides = 4

        def volume(self):
            return 1
    '''
)
AREA, VOLUME = set(range(10, 19)), {25}


def test_apply_mutation_finds_the_repeated_line_after_lines_moved(scripts):
    draw, _ = scripts
    mutation = {"before": "x = 1\n", "after": "x = 2\n", "repeat": 1}
    assert draw.apply_mutation("# new\nx = 1\ny = 0\nx = 1\n", mutation) == (
        "# new\nx = 1\ny = 0\nx = 2\n",
        4,
    )


def test_apply_mutation_returns_none_if_the_line_is_gone(scripts):
    draw, _ = scripts
    assert draw.apply_mutation("x = 1\n", {"before": "x = 1\n", "after": "", "repeat": 1}) is None


def test_without_behaviour_has_types_decorators_and_exports(scripts):
    draw, _ = scripts
    lines = SOURCE.splitlines()
    skipped = {
        lines[first[0] - 1][first[1] : last[1]]
        for first, last in draw.without_behaviour(ast.parse(SOURCE))
    }
    assert skipped == {
        '__all__ = ["area"]',
        "Number = int | float",
        "@cached(size=3)",
        "Number",
        "int",
        "int | None",
    }


def test_shares_follow_lines_but_leave_no_folder_out(scripts):
    draw, _ = scripts
    assert draw.shares({"large": 1000, "medium": 500, "small": 1}, 30) == {
        "large": 18,
        "medium": 9,
        "small": 3,
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return width", (True, [{16}, AREA | VOLUME])),
        ("        LIMIT\n", (True, [{11, 12, 13}, AREA | VOLUME])),  # a condition
        ("except TypeError", (True, [{17}, AREA | VOLUME])),
        ("def area", (False, [AREA, AREA | VOLUME])),
        ("sides", (False, [VOLUME, AREA | VOLUME])),
        ("LIMIT = ", (False, [AREA | VOLUME])),
    ],
)
def test_lines_to_cover_says_who_tests_a_line(scripts, line, expected):
    _, covering = scripts
    number = SOURCE[: SOURCE.index(line)].count("\n") + 1
    assert covering.lines_to_cover(ast.parse(SOURCE), number) == expected


def test_distance_prefers_the_file_of_the_module_then_its_folder(scripts):
    _, covering = scripts
    tests = (
        "src/crfx/io/npz.py::crfx.io.npz",
        "tests/io/test_npz.py::test_a",
        "tests/io/test_b.py",
    )
    assert [covering.distance("crfx/io/npz.py", test) for test in tests] == [0, 0, 1]
    assert covering.distance("crfx/io/npz.py", "tests/cli/test_b.py::test_c[io]") == 2
