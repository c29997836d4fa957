"""The pages of estimators list every argument with its default, and attributes that exist."""

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import crfx
from crfx.estimators.arguments import TABLES, Choice, OrNone
from crfx.testing import make_task

FOLDER = Path(__file__).parents[1] / "docs" / "estimators"
PAGES = {
    "GBCRF": "gbcrf.md",
    "HiddenUnitCRF": "hidden-unit-crf.md",
    "LinearCRF": "linear-crf.md",
    "RankingCRF": "ranking-crf.md",
    "TreeCRF": "treecrf.md",
}
FEW = {"n_estimators": 2, "max_iter": 2, "sweeps": 2}
"""What makes a fit short; each estimator has one of them, or more."""


def table(text, heading):
    """The cells of the first table below a heading, row by row, its own heading left out."""
    rows = re.search(rf"^## {heading}\n.*?((?:^\|[^\n]*\n)+)", text, re.MULTILINE | re.DOTALL)[1]
    return [[cell.strip() for cell in row.strip("|\n").split("|")] for row in rows.splitlines()[2:]]


def listed_arguments(text):
    """Name and default of every argument in the page's table."""
    return [
        (name.strip("`"), ast.literal_eval(default.strip("`")))
        for name, default, *_ in table(text, "Arguments")
    ]


def arguments(estimator):
    parameters = list(inspect.signature(estimator.__init__).parameters.values())[1:]
    return [(parameter.name, parameter.default) for parameter in parameters]


def page(name):
    return (FOLDER / PAGES[name]).read_text(encoding="utf-8")


def fitted(estimator):
    crf = estimator()
    crf.set_params(**{name: value for name, value in FEW.items() if name in crf.get_params()})
    if isinstance(crf, crfx.RankingCRF):
        return crf.set_params(n_estimators=None).fit(np.eye(4), [0, 1, 0, 1], group=[2, 2])
    return crf.fit(*make_task(n_instances=5))


def test_every_estimator_has_a_page():
    assert sorted(PAGES) == [name for name in crfx.__all__ if name.endswith("CRF")]
    assert {path.name for path in FOLDER.glob("*.md")} == {"index.md", *PAGES.values()}


@pytest.mark.parametrize("name", PAGES)
def test_tables_hold_arguments_defaults_choices_and_attributes(name):
    assert listed_arguments(page(name)) == arguments(getattr(crfx, name))
    kinds = TABLES[name].kinds
    for argument, default, *text in table(page(name), "Arguments"):
        kind = kinds[argument.strip("`")]
        kind = kind.kind if isinstance(kind, OrNone) else kind
        names = kind.choices if isinstance(kind, Choice) else ()
        description = f"{default} {' '.join(text)}"
        missing = [choice for choice in names if choice is not None and choice not in description]
        assert missing == [] or "see above" in description, argument
    crf = fitted(getattr(crfx, name))
    listed = [cell.strip("`") for cell, *_ in table(page(name), "Fitted attributes")]
    assert listed
    missing = [
        choice for choice in listed if choice not in vars(crf) and not hasattr(type(crf), choice)
    ]
    assert missing == []


def test_a_wrong_default_is_seen():
    text = "## Arguments\n\n| a | b |\n|---|---|\n| `x` | `2` |\n| `y` | `None` |\n"
    assert listed_arguments(text) == [("x", 2), ("y", None)]
    assert listed_arguments(text) != [("x", 3), ("y", None)]
