"""Every bad input of the list is refused: clearly, at once, and without harm."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import report
from listed import CASES, sweep
from listed.case import Case, Subject, each, tried
from listed.commands import command
from listed.subjects import only_fitted


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input_is_refused(case, tmp_path):
    assert not tried(case, tmp_path).problems


# One test an estimator, not one a value: there are well over a thousand.
@pytest.mark.parametrize("estimator", sweep.MAKERS)
def test_arguments_that_make_no_sense_are_refused(estimator, tmp_path):
    problems = {}
    for argument in sweep.ARGUMENTS[estimator]:
        (tmp_path / argument).mkdir()
    for case in sweep.CASES:
        if case.area == f"arguments of {estimator}":
            problems[case.tried] = tried(case, tmp_path / case.tried).problems
    assert {argument: problem for argument, problem in problems.items() if problem} == {}


@pytest.mark.filterwarnings("ignore:no tree found a split:RuntimeWarning")  # few documents
@pytest.mark.parametrize("estimator", sweep.MAKERS)
def test_values_that_the_sweep_holds_legal_are(estimator):
    for argument in sweep.ARGUMENTS[estimator]:
        for value in filter(None, sweep.legal(estimator, argument)):
            sweep.fit(sweep.MAKERS[estimator](**{argument: sweep.VALUES[value]}))


def test_list_is_long_unique_and_covers_every_estimator():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) >= report.WANTED
    shared = [case for case in CASES if len(case.subjects) > 1]
    turns = {case.subjects[case.turn % len(case.subjects)].name for case in shared}
    assert turns == {subject.name for case in shared for subject in case.subjects}


@pytest.fixture
def recorded():
    return json.loads(report.RESULTS.read_text(encoding="utf-8"))


def test_the_page_is_rendered_from_the_results(recorded):
    assert report.PAGE.read_text(encoding="utf-8") == report.page(recorded)


def test_the_results_are_those_of_the_list(recorded):
    for rows, cases in ((recorded["cases"], CASES), (recorded["sweep"], sweep.CASES)):
        listed = [(case.area, case.tried, case.n_inputs) for case in cases]
        assert [(row["area"], row["tried"], row["inputs"]) for row in rows] == listed
        for row, case in zip(rows, cases, strict=True):
            assert row["refused"], case.name
            assert re.search(case.message, row["told"]), case.name


def test_a_case_that_goes_wrong_is_marked_on_the_page(recorded):
    recorded["cases"][0]["refused"] = False
    assert "not refused as it should be" in report.page(recorded)


# What the list would be worth if nothing could fail in it.


def problems_of(attempt, tmp_path, **more):
    return "; ".join(tried(Case("made up", "this", attempt, "it", **more), tmp_path).problems)


def raising(error):
    def attempt(subject, folder):
        raise error

    return attempt


def test_a_bad_refusal_is_seen(tmp_path, monkeypatch):
    for number, (attempt, problem) in enumerate(
        [
            (lambda subject, folder: 3, "it was accepted, and gave 3"),
            (raising(TypeError("it")), "it is no ValueError"),
            (raising(ValueError("that")), "'it' is not in 'that'"),
            (raising(ValueError("it\nand more")), "more than one line"),
            (raising(ValueError("it" * 300)), "600 characters"),
        ]
    ):
        (tmp_path / f"case {number}").mkdir()
        assert problem in problems_of(attempt, tmp_path / f"case {number}")
    monkeypatch.setattr("listed.case.PATIENCE", 0.0)
    assert "it took" in problems_of(raising(ValueError("it")), tmp_path)


def test_harm_is_seen(tmp_path):
    def attempt(crf, folder):
        crf.model_.edge.tables["edge"][:] = np.array([[0.0, -50.0], [-50.0, 0.0]])
        raise ValueError("it")

    subjects = only_fitted(["LinearCRF"])
    assert "is not as it was" in problems_of(attempt, tmp_path, subjects=subjects)


def test_a_fit_half_done_is_seen(tmp_path):
    class Thing:
        pass

    def attempt(thing, folder):
        thing.model_ = 1
        raise ValueError("it")

    subject = Subject("a thing", Thing, lambda thing: sorted(vars(thing)))
    assert "a thing is not as it was" in problems_of(attempt, tmp_path, subjects=(subject,))


def test_one_bad_refusal_of_several_is_seen(tmp_path):
    def attempt(subject, folder, value):
        raise ValueError("it") if value < 3 else TypeError("it")

    problems = problems_of(attempt, tmp_path, values=each(1, 2, 3))
    assert problems == "3: it is no ValueError: TypeError('it')"


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
    assert problem in "; ".join(tried(case, tmp_path).problems)
