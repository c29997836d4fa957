"""Constraints, allowed labels, thresholds and spans that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from crfx import Constraints
from listed.case import NOTHING, Case, each, values_of
from listed.subjects import (
    LENGTHS,
    X,
    Y,
    only_fitted,
    only_unfitted,
    unfitted_and_fitted,
)

NAN = np.nan
TAGS = [["B-X", "I-X", "O"], list("OOOO"), ["O", "B-X"], list("OOOOO")]
CHAINS = [list(range(-1, length - 1)) for length in LENGTHS]


def allowed(*sets: Any) -> list[Any]:
    """Return allowed labels that restrict the first instance only."""
    return [list(sets), *([None] * length for length in LENGTHS[1:])]


CONSTRAINTS: dict[str, tuple[Any, str]] = {
    "a scheme that there is not": ("iob", "constraints is 'iob'"),
    "no list": (each(3, np.array("A"), Constraints), "constraints"),
    "a dict": (each({"A": "B"}, {("A", "B"): 1}), "pass a list of pairs"),
    "no pairs": (
        each({"A"}, ["A", "B"], [{"A", "B"}], [frozenset("AB")], [{"A": 1, "B": 2}],
             [np.array("A")], np.array([["A", "B", "A"]])),
        "is no pair of labels",
    ),
    "pairs of three": ([("A", "B", "A")], "constraints"),
    "a label that y has not": (each([(1, 2)], [("A", "Z")], Constraints(start_forbidden=["Z"])),
        "constraints name the label (1|'Z')"),
    "pairs of lists": ([(["A"], ["B"])], "constraints"),
    "pairs that the truth breaks": (each([("A", "A")], []), "instance 0, position"),
    "a scheme that labels do not have": (each("bio", "bioes"), "instance 0, position 0: .*'A'"),
    "an end that the truth breaks": (
        each(Constraints(start_forbidden=["A"]), Constraints(end_forbidden=["A", "B"])),
        "instance 0"),
}  # fmt: skip
MADE: dict[str, tuple[dict[str, Any], str, Any]] = {
    "no list of pairs": (each(*({"forbidden": value} for value in (None, "AB", ["A"]))),
        "forbidden", ValueError),
    "no list of labels": (each(*({"start_forbidden": value} for value in ("A", 1, {"A": 1}))),
        "start_forbidden is .*: pass a list", ValueError),
    "an argument that there is not": ({"middle": ["A"]}, "middle", TypeError),
}  # fmt: skip
ALLOWED: dict[str, tuple[Any, str]] = {
    "no list": (
        each(3, "A", np.array("A"), {0: "A"}, dict(enumerate(allowed(None, None, None))),
             {(None,) * length for length in (1, 2, 3, 4)}),
        "allowed is",
    ),
    "too few instances": ([[None]], "allowed has 1 instances but X has 4"),
    "too few positions": (allowed(None), "instance 0: allowed has 1"),
    "one label for an instance": (["A"] * 4, "instance 0"),
    "a label that the model has not": (
        each(allowed(None, "Z", None), allowed(None, ["A", "Z"], None)),
        "instance 0, position 1: .*'Z'"),
    "no label at a position": (allowed(None, None, []), "instance 0, position 2"),
    "a list of lists": (allowed(None, [["A"]], None), "instance 0, position 1"),
    "a number at a position": (allowed(None, 7, None), "instance 0, position 1: .*7"),
    "an instance that is no list": (
        each(*([value, *allowed()[1:]] for value in (
            {"A", "B", None}, frozenset(("A", "B", None)), {0: "A", 1: "A", 2: "B"}, np.array("A")
        ))),
        "instance 0: allowed holds",
    ),
}  # fmt: skip


def _constrained(tried: str, value: Any, message: str) -> Case:
    def attempt(crf: Any, folder: Path, value: Any) -> Any:
        return crf.set_params(constraints=value).fit(X, Y)

    area, values = "estimators, constraints", values_of(value)
    return Case(area, tried, attempt, message, subjects=only_unfitted(), values=values)


def _made(tried: str, value: Any, message: str, error: Any) -> Case:
    def attempt(subject: Any, folder: Path, arguments: dict[str, Any]) -> Any:
        return Constraints(**arguments)

    area = "estimators, constraints"
    return Case(area, tried, attempt, message, error, (NOTHING,), values_of(value))


def _predict(tried: str, value: Any, message: str) -> Case:
    def attempt(crf: Any, folder: Path, value: Any) -> Any:
        return crf.predict(X, allowed=value)

    area, values = "estimators, allowed", values_of(value)
    return Case(area, tried, attempt, message, subjects=only_fitted(), values=values)


def _ask(tried: str, ask: Callable[..., Any], message: str, *values: Any) -> Case:
    def attempt(crf: Any, folder: Path, value: Any) -> Any:
        return ask(crf, value)

    area = "estimators, confidence"
    return Case(area, tried, attempt, message, subjects=only_fitted(), values=each(*values))


def _fit_forest(crf: Any, folder: Path) -> Any:
    return crf.set_params(constraints="bio").fit(X, TAGS, parents=CHAINS)


def _fit_forest_ends(crf: Any, folder: Path) -> Any:
    return crf.set_params(constraints=Constraints(end_forbidden=["A"])).fit(X, Y, parents=CHAINS)


CASES = [
    *(_constrained(tried, *value) for tried, value in CONSTRAINTS.items()),
    *(_made(tried, *value) for tried, value in MADE.items()),
    Case("estimators, constraints", "a scheme for forests", _fit_forest, "is for chains",
         subjects=only_unfitted()),
    Case("estimators, constraints", "an end of forests", _fit_forest_ends, "has no last position",
         subjects=only_unfitted()),
    *(_predict(tried, *value) for tried, value in ALLOWED.items()),
    Case("estimators, allowed", "labels that the truth does not have, in training",
         lambda crf, folder: crf.fit(X, Y, allowed=allowed("B", None, None)),
         "instance 0, position 0", subjects=unfitted_and_fitted()),
    _ask("another probability", lambda crf, value: crf.predict(X, min_probability=value),
         "min_probability is ", 2.0, -0.1, NAN, "high", True),
    _ask("spans of labels that are no tags",
         lambda crf, value: crf.predict_spans(X, min_probability=value), "'A'|probability is 0.0",
         None, 0.0),
]  # fmt: skip
