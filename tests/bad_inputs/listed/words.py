"""X of dicts and texts that `fit` must refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from listed.case import Case, each, values_of
from listed.subjects import X, Y, only_fitted, unfitted_and_fitted

AREA = "estimators, X of words"


def first(*positions: Any) -> list[Any]:
    """Good instances but for the first, which has three positions."""
    return [list(positions), *([{"w": "a"}] * len(labels) for labels in Y[1:])]


GOOD = {"w": "a"}


def second(*others: Any) -> Any:
    """Good instances but for one position, the second; each of several."""
    return each(*(first(GOOD, other, GOOD) for other in others))


TRIED: dict[str, tuple[Any, str]] = {
    "no list of instances": (each([{"w": "a"}, {"w": "b"}], {"w": "a"}),
        "wrap a single instance in a list"),
    "an instance that is a dict": ([{"w": "a"}, *first(GOOD)[1:]], "instance 0: X is one dict"),
    "an instance that is a text": (["abc", *first(GOOD)[1:]], "instance 0: X is one str"),
    "a position that is no dict": (second(3, None), "instance 0, position 1: its features are"),
    "an array among dicts": (second(np.eye(2)), "instance 0, position 1"),
    "values of another kind": (
        second(*({"w": bad} for bad in ([["a"]], ..., np.eye(2), 1j, b"a", np.datetime64("2020")))),
        "instance 0, position 1"),
    "an infinite value": (second({"w": np.inf}), "instance 0, position 1"),
    "a value beyond float32": (second({"w": 1e300}), "instance 0, position 1"),
    "a whole number beyond float64": (second({"w": 10**400}), "instance 0, position 1"),
    "names of another kind": (second({3: 1.0}, {None: 1.0}, {("a", "b"): 1.0}),
        "instance 0, position 1: a feature has the name"),
    "a position of numbers": (second([1, 2], [None]), "instance 0, position 1: its features hold"),
    "no feature anywhere": ([[{}] * len(labels) for labels in Y], "X has no features"),
    "half a character": (second({"\ud800": 1.0}, {"w": "\udc80"}), "instance 0, position 1"),
}  # fmt: skip


def _case(tried: str, value: Any, message: str) -> Case:
    def attempt(crf: Any, folder: Path, value: Any) -> Any:
        return crf.fit(value, Y)

    subjects = unfitted_and_fitted()
    return Case(AREA, tried, attempt, message, subjects=subjects, values=values_of(value))


CASES = [
    *(_case(tried, *value) for tried, value in TRIED.items()),
    Case(AREA, "dicts to a model of numbers",
         lambda crf, folder: crf.predict(first(GOOD, GOOD, GOOD)),
         "X holds dicts or texts, but the model was fitted on numbers", subjects=only_fitted()),
    Case(AREA, "numbers to a model of dicts", lambda crf, folder: crf.predict(X),
         "X has 3 features, but crfx is expecting|X holds numbers",
         subjects=only_fitted(data="words")),
]  # fmt: skip
