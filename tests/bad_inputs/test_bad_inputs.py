"""Every bad input of the list is refused: clearly, at once, and without harm."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import report
from listed import CASES, sweep
from listed.case import Case, Subject, tried
from listed.commands import command
from listed.subjects import only_fitted


@pytest.mark.parametrize("case", report.LISTED, ids=lambda case: case.name)
def test_refused(case, tmp_path):
    for number, subject in enumerate(case.subjects):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert not tried(case, subject, folder).problems, subject.name


# One test an argument, not one a value: there are well over a thousand.
@pytest.mark.parametrize("place", sorted({(c.area, c.tried.split()[0]) for c in sweep.CASES}))
def test_arguments_that_make_no_sense_are_refused(place, tmp_path):
    for case in sweep.CASES:
        if (case.area, case.tried.split()[0]) == place:
            assert not tried(case, case.subjects[0], tmp_path).problems, case.name


@pytest.mark.filterwarnings("ignore:no tree found a split:RuntimeWarning")  # few documents
@pytest.mark.parametrize("estimator", sweep.MAKERS)
def test_what_the_sweep_holds_legal_is(estimator):
    for name, argument, value, legal in sweep.PAIRS:
        if legal and name == estimator:
            sweep.fitted_with(name, argument, sweep.VALUES[value])


def test_the_list_is_long_and_has_nothing_twice():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert len(report.LISTED) >= report.WANTED


@pytest.fixture
def recorded():
    return json.loads(report.RESULTS.read_text(encoding="utf-8"))


def test_the_page_is_rendered_from_the_results(recorded):
    assert report.PAGE.read_text(encoding="utf-8") == report.page(recorded)


def test_the_results_are_those_of_the_list(recorded):
    found = {(case["area"], case["tried"]): case for case in recorded["cases"]}
    assert list(found) == [(case.area, case.tried) for case in report.LISTED]
    for case in report.LISTED:
        own = found[case.area, case.tried]
        assert own["refused"], case.name
        assert re.search(case.message, own["told"]), case.name
    swept = [
        (row["area"], row["argument"], value)
        for row in recorded["sweep"]
        for value in row["values"]
    ]
    assert swept == [(case.area, *case.tried.split(" is ", 1)) for case in sweep.CASES]


def test_a_case_that_goes_wrong_is_marked_on_the_page(recorded):
    recorded["cases"][0]["refused"] = False
    assert "not refused as it should be" in report.page(recorded)


# What the list would be worth if nothing could fail in it.


def problems_of(attempt, tmp_path, message="it", error=ValueError, subject=None):
    case = Case("made up", "this", attempt, message, error)
    return "; ".join(tried(case, subject or case.subjects[0], tmp_path).problems)


def raising(error):
    def attempt(subject, folder):
        raise error

    return attempt


@pytest.mark.parametrize(
    ("attempt", "problem"),
    [
        (lambda subject, folder: 3, "it was accepted, and gave 3"),
        (raising(TypeError("it")), "it is no ValueError"),
        (raising(ValueError("that")), "'it' is not in 'that'"),
        (raising(ValueError("it\nand more")), "more than one line"),
        (raising(ValueError("it" * 300)), "600 characters"),
    ],
)
def test_a_bad_refusal_is_seen(attempt, problem, tmp_path):
    assert problem in problems_of(attempt, tmp_path)


def test_a_slow_refusal_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr("listed.case.PATIENCE", 0.0)
    assert "it took" in problems_of(raising(ValueError("it")), tmp_path)


def test_harm_is_seen(tmp_path):
    def attempt(crf, folder):
        crf.model_.edge.tables["edge"][:] = np.array([[0.0, -50.0], [-50.0, 0.0]])
        raise ValueError("it")

    (subject,) = only_fitted(["LinearCRF"])
    assert "is not as it was" in problems_of(attempt, tmp_path, subject=subject)


def test_a_fit_half_done_is_seen(tmp_path):
    class Thing:
        pass

    def attempt(thing, folder):
        thing.model_ = 1
        raise ValueError("it")

    subject = Subject("a thing", Thing, lambda thing: sorted(vars(thing)))
    assert "a thing is not as it was" in problems_of(attempt, tmp_path, subject=subject)


@pytest.mark.parametrize(
    ("act", "problem"),
    [
        (lambda argv: 0, "the exit code is 0"),
        (lambda argv: print("out") or 2, "on standard output there is"),
        (lambda argv: report.Path("left").write_text("x") and 2, "files were left behind"),
        (lambda argv: report.sys.stderr.write("crfx: a\nTraceback b\n") and 2, "a traceback"),
        (lambda argv: report.sys.stderr.write("crfx: a\nb\n") and 2, "more than one line"),
    ],
)
def test_a_bad_ending_of_a_command_is_seen(act, problem, tmp_path, monkeypatch):
    monkeypatch.setattr("crfx.cli.main", act)
    case = command("made up", "this", "demo", "")
    assert problem in "; ".join(tried(case, case.subjects[0], tmp_path).problems)
