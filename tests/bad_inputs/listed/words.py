"""X of dicts and texts that `fit` must refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from listed.case import Case
from listed.subjects import X, Y, only_fitted, unfitted_and_fitted

AREA = "estimators, X of words"


def first(*positions: Any) -> list[Any]:
    """Good instances but for the first, which has three positions."""
    return [list(positions), *([{"w": "a"}] * len(own) for own in Y[1:])]


GOOD = {"w": "a"}
TRIED: dict[str, tuple[Any, str]] = {
    "one instance": ([{"w": "a"}, {"w": "b"}], "wrap a single instance in a list"),
    "one position": ({"w": "a"}, "wrap a single instance in a list"),
    "an instance that is a dict": ([{"w": "a"}, *first(GOOD)[1:]], "instance 0: X is one dict"),
    "an instance that is a text": (["abc", *first(GOOD)[1:]], "instance 0: X is one str"),
    "a number among dicts": (first(GOOD, 3, GOOD), "instance 0, position 1"),
    "None among dicts": (first(GOOD, None, GOOD), "instance 0, position 1"),
    "an array among dicts": (first(GOOD, np.eye(2), GOOD), "instance 0, position 1"),
    "a value that is a list of lists": (first(GOOD, {"w": [["a"]]}, GOOD), "instance 0, position"),
    "a value that is an object": (first(GOOD, {"w": ...}, GOOD), "instance 0, position 1"),
    "a value that is an array": (first(GOOD, {"w": np.eye(2)}, GOOD), "instance 0, position 1"),
    "a value that is complex": (first(GOOD, {"w": 1j}, GOOD), "instance 0, position 1"),
    "a value that is bytes": (first(GOOD, {"w": b"a"}, GOOD), "instance 0, position 1"),
    "a value that is a date": (
        first(GOOD, {"w": np.datetime64("2020-01-01")}, GOOD),
        "instance 0, position 1",
    ),
    "an infinite value": (first(GOOD, {"w": np.inf}, GOOD), "instance 0, position 1"),
    "a value beyond float32": (first(GOOD, {"w": 1e300}, GOOD), "instance 0, position 1"),
    "a whole number beyond float64": (first(GOOD, {"w": 10**400}, GOOD), "instance 0, position 1"),
    "a name that is a number": (first(GOOD, {3: 1.0}, GOOD), "instance 0, position 1"),
    "a name that is None": (first(GOOD, {None: 1.0}, GOOD), "instance 0, position 1"),
    "a name that is a tuple": (first(GOOD, {("a", "b"): 1.0}, GOOD), "instance 0, position 1"),
    "a position of numbers": (first(GOOD, [1, 2], GOOD), "instance 0, position 1"),
    "a position of None": (first(GOOD, [None], GOOD), "instance 0, position 1"),
    "no feature anywhere": ([[{}] * len(own) for own in Y], "X has no features"),
    "half a character": (first(GOOD, {"\ud800": 1.0}, GOOD), "instance 0, position 1"),
    "half a character as value": (first(GOOD, {"w": "\udc80"}, GOOD), "instance 0, position 1"),
}


def _case(tried: str, given: Any, message: str) -> Case:
    def attempt(crf: Any, folder: Path) -> Any:
        return crf.fit(given, Y)

    return Case(AREA, tried, attempt, message, subjects=unfitted_and_fitted())


CASES = [
    *(_case(tried, *given) for tried, given in TRIED.items()),
    Case(
        AREA,
        "dicts to a model of numbers",
        lambda crf, folder: crf.predict(first(GOOD, GOOD, GOOD)),
        "X holds dicts or texts, but the model was fitted on numbers",
        subjects=only_fitted(),
    ),
    Case(
        AREA,
        "numbers to a model of dicts",
        lambda crf, folder: crf.predict(X),
        "X has 3 features, but crfx is expecting|X holds numbers",
        subjects=only_fitted(data="words"),
    ),
]
