"""The tables of arguments agree with signatures, annotations, docstrings and the command line."""

import inspect
import re
import subprocess
import sys
from dataclasses import fields
from itertools import chain
from typing import get_args, get_type_hints

import pytest

import crfx
from crfx.cli.options import OPTIONS
from crfx.estimators.argument_kinds import Choice, Flag, OrNone, Usual, Whole
from crfx.estimators.arguments import (
    ALIASES,
    INDUCTION,
    TABLES,
    check_arguments,
    usual_value,
)
from crfx.trainers.induction import FeatureInduction

ESTIMATORS = [getattr(crfx, name) for name in crfx.__all__ if name.endswith("CRF")]
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda kind: kind.__name__)


def plain(kind):
    """Return the kind without None."""
    return plain(kind.kind) if isinstance(kind, OrNone) else kind


def literals(annotation):
    """Return the names that an annotation lists."""
    parts = get_args(annotation)
    listed = [part for part in parts if isinstance(part, str)]
    return listed or list(chain.from_iterable(map(literals, parts)))


def documented(estimator):
    """Return the arguments of a docstring: name -> head and text, in order."""
    text = inspect.cleandoc(estimator.__doc__).partition("Parameters\n----------\n")[2]
    text = text.partition("\n\nAttributes\n")[0]
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    return {
        name: entry
        for entry in entries
        for name in re.split(r", |\\\n", entry.partition("\n")[0].partition(" : ")[0])
    }


def test_argument_table_exists_for_every_class():
    assert sorted(TABLES) == sorted(estimator.__name__ for estimator in ESTIMATORS)


@each_estimator
def test_argument_table_agrees_with_signature_and_docstring(estimator):
    table = TABLES[estimator.__name__]
    assert sorted(table.kinds) == sorted(inspect.signature(estimator).parameters)
    assert sorted(table.kinds) == sorted(documented(estimator))
    check_arguments(estimator())


@each_estimator
def test_argument_choices_agree_with_annotation_and_docstring(estimator):
    hints, texts = get_type_hints(estimator.__init__), documented(estimator)
    for name, of_table in TABLES[estimator.__name__].kinds.items():
        kind, annotated = plain(of_table), literals(hints[name])
        if isinstance(kind, Choice):
            choices = [choice for choice in kind.choices if choice is not None]
            assert sorted(annotated) in ([], sorted(choices)), name
            assert [choice for choice in choices if f'"{choice}"' not in texts[name]] == [], name
        elif isinstance(kind, Flag | Whole):
            assert annotated == [], name


@each_estimator
def test_argument_table_accepts_defaults(estimator):
    table = TABLES[estimator.__name__]
    kinds, chooses = table.kinds, "scorer" if "scorer" in table.kinds else "trainer"
    for name, kind in kinds.items():
        if isinstance(kind, Usual):
            for choice in kinds[chooses].choices:
                arguments = estimator(**{chooses: choice}).get_params(deep=False)
                kind.check(name, usual_value(name, arguments, table))
                assert usual_value(name, arguments | {name: 7}, table) == 7, name


def test_settings_of_feature_induction_are_checked():
    assert list(INDUCTION) == [field.name for field in fields(FeatureInduction)]
    for name, kind in INDUCTION.items():
        kind.check(name, getattr(FeatureInduction(), name))


def test_options_and_other_names_are_of_arguments():
    names = set(chain.from_iterable(table.kinds for table in TABLES.values()))
    assert set(OPTIONS) <= names
    assert set(ALIASES.values()) <= names
    assert not set(ALIASES) & names


def test_tables_are_read_without_numpy():
    """The help of commands needs them at once."""
    code = "import sys, crfx.estimators.arguments; print('numpy' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"


def test_argument_errors_name_argument_and_valid_values(not_refused):
    cases = [
        ({"max_depth": True}, "max_depth is True: it must be a whole number of 0 or more"),
        ({"order": 33}, "order is 33: it must be at most 32"),
        ({"max_bin": 2**31}, r"max_bin is 2147483648: it must be below 2\*\*31"),
        ({"subsample": 1 + 1j}, "subsample is"),
        ({"early_stopping_rounds": 0}, "it must be a whole number of 1 or more, or None"),
        ({"start_end": 1}, "start_end is 1: it must be True or False"),
    ]

    def check(arguments):
        check_arguments(crfx.GBCRF(**arguments))

    assert not_refused(check, {str(case): (case, message) for case, message in cases}) == {}
