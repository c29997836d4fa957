"""Constraints, allowed labels, thresholds and spans that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from crfx import Constraints
from listed.case import NOTHING, Case
from listed.subjects import (
    LABELLERS,
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


def allowed(*own: Any) -> list[Any]:
    """Of the first instance; all others may have any label."""
    return [list(own), *([None] * length for length in LENGTHS[1:])]


CONSTRAINTS: dict[str, tuple[Any, str]] = {
    "a scheme that there is not": ("iob", "constraints is 'iob'"),
    "a number": (3, "constraints"),
    "a set of labels": ({"A"}, "constraints"),
    "a dict": ({"A": "B"}, "constraints"),
    "sets as pairs": ([{"A", "B"}], "is no pair of labels"),
    "frozen sets as pairs": ([frozenset("AB")], "is no pair of labels"),
    "dicts as pairs": ([{"A": 1, "B": 2}], "is no pair of labels"),
    "an array without axes": (np.array("A"), "constraints"),
    "arrays without axes as pairs": ([np.array("A")], "is no pair of labels"),
    "arrays of three": (np.array([["A", "B", "A"]]), "is no pair of labels"),
    "a dict of pairs": ({("A", "B"): 1}, "pass a list of pairs"),
    "pairs of three": ([("A", "B", "A")], "constraints"),
    "labels that are no pairs": (["A", "B"], "constraints"),
    "pairs of numbers": ([(1, 2)], "constraints name the label 1"),
    "a label that y has not": ([("A", "Z")], "constraints name the label 'Z'"),
    "pairs of lists": ([(["A"], ["B"])], "constraints"),
    "no pair at all": ([], "constraints"),
    "pairs that the truth breaks": ([("A", "A")], "instance 0, position"),
    "a scheme that labels do not have": ("bio", "instance 0, position 0: .*'A'"),
    "another scheme that labels do not have": ("bioes", "instance 0, position 0: .*'A'"),
    "a start that the truth breaks": (
        Constraints(start_forbidden=["A"]),
        "instance 0, position 0",
    ),
    "an end that the truth breaks": (Constraints(end_forbidden=["A", "B"]), "instance 0"),
    "a start of a label that y has not": (
        Constraints(start_forbidden=["Z"]),
        "constraints name the label 'Z'",
    ),
    "the class in place of an object": (Constraints, "constraints"),
}
MADE: dict[str, tuple[Callable[[], Any], str, Any]] = {
    "forbidden of None": (lambda: Constraints(forbidden=None), "forbidden is None", ValueError),
    "forbidden of a text": (lambda: Constraints(forbidden="AB"), "forbidden is 'AB'", ValueError),
    "forbidden of single labels": (lambda: Constraints(forbidden=["A"]), "forbidden", ValueError),
    "start_forbidden of a text": (
        lambda: Constraints(start_forbidden="A"),
        "start_forbidden is 'A'",
        ValueError,
    ),
    "start_forbidden of a number": (
        lambda: Constraints(start_forbidden=1),
        "start_forbidden is 1",
        ValueError,
    ),
    "start_forbidden of a dict": (
        lambda: Constraints(start_forbidden={"A": 1}),
        "start_forbidden is {'A': 1}: pass a list",
        ValueError,
    ),
    "an argument that there is not": (lambda: Constraints(middle=["A"]), "middle", TypeError),
}
ALLOWED: dict[str, tuple[Any, str]] = {
    "a number": (3, "allowed"),
    "a text": ("A", "allowed"),
    "too few instances": ([[None]], "allowed has 1 instances but X has 4"),
    "too few positions": (allowed(None), "instance 0: allowed has 1"),
    "one label for an instance": (["A"] * 4, "instance 0"),
    "a label that the model has not": (allowed("Z", None, None), "instance 0, position 0: .*'Z'"),
    "labels that the model has not": (
        allowed(None, ["A", "Z"], None),
        "instance 0, position 1: .*'Z'",
    ),
    "no label at a position": (allowed(None, None, []), "instance 0, position 2"),
    "a list of lists": (allowed(None, [["A"]], None), "instance 0, position 1"),
    "a number at a position": (allowed(None, 7, None), "instance 0, position 1: .*7"),
    "a dict": ({0: "A"}, "allowed"),
    "a dict of instances": (dict(enumerate(allowed(None, None, None))), "pass a list"),
    "a set of instances": ({(None,) * length for length in (1, 2, 3, 4)}, "pass a list"),
    "a set of positions": ([{"A", "B", None}, *allowed()[1:]], "instance 0: allowed holds {"),
    "a frozen set of positions": (
        [frozenset(("A", "B", None)), *allowed()[1:]],
        "instance 0: allowed holds frozenset",
    ),
    "a dict of positions": ([{0: "A", 1: "A", 2: "B"}, *allowed()[1:]], "instance 0: allowed"),
    "an array without axes": (np.array("A"), "allowed is"),
    "an instance of an array without axes": ([np.array("A")] * 4, "instance 0: allowed holds"),
}


def _constrained(tried: str, given: Any, message: str) -> Case:
    def attempt(crf: Any, folder: Path) -> Any:
        return crf.set_params(constraints=given).fit(X, Y)

    return Case("estimators, constraints", tried, attempt, message, subjects=only_unfitted())


def _made(tried: str, make: Callable[[], Any], message: str, error: Any) -> Case:
    def attempt(subject: Any, folder: Path) -> Any:
        return make()

    return Case("estimators, constraints", tried, attempt, message, error, (NOTHING,))


def _predict(tried: str, given: Any, message: str) -> Case:
    def attempt(crf: Any, folder: Path) -> Any:
        return crf.predict(X, allowed=given)

    return Case("estimators, allowed", tried, attempt, message, subjects=only_fitted())


def _ask(tried: str, ask: Callable[[Any], Any], message: str, names: Any = LABELLERS) -> Case:
    def attempt(crf: Any, folder: Path) -> Any:
        return ask(crf)

    return Case("estimators, confidence", tried, attempt, message, subjects=only_fitted(names))


def _fit_forest(crf: Any, folder: Path) -> Any:
    return crf.set_params(constraints="bio").fit(X, TAGS, parents=CHAINS)


def _fit_forest_ends(crf: Any, folder: Path) -> Any:
    return crf.set_params(constraints=Constraints(end_forbidden=["A"])).fit(X, Y, parents=CHAINS)


CASES = [
    *(_constrained(tried, *given) for tried, given in CONSTRAINTS.items()),
    *(_made(tried, *given) for tried, given in MADE.items()),
    Case("estimators, constraints", "a scheme for forests", _fit_forest, "is for chains",
         subjects=only_unfitted()),
    Case("estimators, constraints", "an end of forests", _fit_forest_ends, "has no last position",
         subjects=only_unfitted()),
    *(_predict(tried, *given) for tried, given in ALLOWED.items()),
    Case("estimators, allowed", "labels that the truth does not have, in training",
         lambda crf, folder: crf.fit(X, Y, allowed=allowed("B", None, None)),
         "instance 0, position 0", subjects=unfitted_and_fitted()),
    _ask("a probability of 2", lambda crf: crf.predict(X, min_probability=2.0),
         "min_probability is 2.0"),
    _ask("a probability below 0", lambda crf: crf.predict(X, min_probability=-0.1),
         "min_probability is -0.1"),
    _ask("a probability of NaN", lambda crf: crf.predict(X, min_probability=NAN),
         "min_probability is nan"),
    _ask("a probability of text", lambda crf: crf.predict(X, min_probability="high"),
         "min_probability is 'high'"),
    _ask("a probability of True", lambda crf: crf.predict(X, min_probability=True),
         "min_probability is True"),
    _ask("spans of labels that are no tags", lambda crf: crf.predict_spans(X), "'A'"),
    _ask("spans of probability 0", lambda crf: crf.predict_spans(X, min_probability=0.0),
         "min_probability is 0.0|'A'"),
]  # fmt: skip
