"""Docstrings of what users call describe every argument, and their examples run."""

import doctest
import importlib
import inspect
import re

import pytest
from documented.coverage import ESTIMATORS

import crfx

MODULES = (
    "crfx.calibration",
    "crfx.datasets",
    "crfx.distributed.cluster",
    "crfx.inference",
    "crfx.metrics",
    "crfx.ndcg",
    "crfx.report",
    "crfx.scorers",
    "crfx.testing",
)
"""Modules whose functions users call."""
READERS = ("arrays.read", "arrays.write", "letor.join", "letor.read", "letor.write")


def functions_of(module):
    names = getattr(module, "__all__", None) or vars(module)
    for name in names:
        value = getattr(module, name)
        is_ours = hasattr(module, "__all__") or getattr(value, "__module__", "") == module.__name__
        if inspect.isfunction(value) and is_ours and not name.startswith("_"):
            yield f"{module.__name__}.{name}", value


def methods_of(kind):
    for name in dir(kind):
        method = getattr(kind, name)
        is_ours = inspect.isfunction(method) and method.__module__.startswith("crfx.")
        if is_ours and not name.startswith("_"):
            yield f"{kind.__name__}.{name}", method


CALLED = dict(functions_of(crfx))
for each in MODULES:
    CALLED.update(functions_of(importlib.import_module(each)))
for each in READERS:
    file, name = each.split(".")
    CALLED[f"crfx.io.{each}"] = getattr(importlib.import_module(f"crfx.io.{file}"), name)
for each in ESTIMATORS:
    CALLED.update(methods_of(getattr(crfx, each)))


def undescribed(function):
    """The arguments that a docstring does not describe under Parameters."""
    _, _, described = (inspect.getdoc(function) or "").partition("Parameters\n-----")
    described = re.split(r"\n\w[\w ]*\n---", described)[0]
    lines = [line for line in described.splitlines() if re.match(r"[\w*]", line)]
    names = {name.strip(" *") for line in lines for name in line.split(" : ")[0].split(",")}
    arguments = inspect.signature(inspect.unwrap(function)).parameters
    return [name for name in arguments if name not in (*names, "self")]


def test_docstrings_describe_all_arguments():
    assert {name: missing for name, f in CALLED.items() if (missing := undescribed(f))} == {}


def test_docstrings_show_examples():
    """Those of ``fit`` are in the docstrings of classes."""
    silent = [name for name, function in CALLED.items() if ">>>" not in function.__doc__]
    assert [name for name in silent if not name.endswith(".fit")] == []


def test_an_argument_that_is_not_described_is_found():
    def function(a, b, *, c):
        """Do it.

        Parameters
        ----------
        a, c : int

        Returns
        -------
        b
        """

    assert undescribed(function) == ["b"]


WRAPPED = {
    name: method
    for name, method in CALLED.items()
    if hasattr(method, "__wrapped__") and ">>>" in method.__doc__
}


@pytest.mark.parametrize("name", WRAPPED)
def test_examples_of_wrapped_methods_run(name):
    """Python's doctest passes over methods that a decorator of another module has wrapped."""
    test = doctest.DocTestParser().get_doctest(WRAPPED[name].__doc__, {}, name, None, 0)
    output = []
    results = doctest.DocTestRunner().run(test, out=output.append)
    assert results.failed == 0, "".join(output)
