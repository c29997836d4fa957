"""Invalid arguments of training: eval_set, init_model, callbacks, partial_fit, saving."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from crfx import Checkpoint, LinearCRF, load
from listed.case import Case, arguments_of, each, values_of
from listed.subjects import (
    LENGTHS,
    STACKED,
    WORDS,
    X,
    Y,
    fitted,
    only_fitted,
    only_unfitted,
    unfitted_and_fitted,
)

NAN = np.nan


def _fit(tried: str, message: str, **arguments: Any) -> Case:
    def attempt(crf: Any, folder: Path, arguments: dict[str, Any]) -> Any:
        return crf.fit(X, Y, **arguments)

    area, values = f"estimators, {next(iter(arguments))}", arguments_of(arguments)
    return Case(area, tried, attempt, message, subjects=unfitted_and_fitted(), values=values)


EVAL_SETS: dict[str, tuple[Any, str]] = {
    "no pair": (each(3, "Xy", True, X, STACKED, (X, Y, Y), []), "eval_set is not a pair"),
    "two sets": ([(X, Y), (X, Y)], "eval_set has 2 sets: pass one"),
    "an empty dict": ({}, "eval_set has no X"),
    "without y": ({"X": X}, "eval_set has no y"),
    "another key": ({"X": X, "y": Y, "weight": 1}, "eval_set has 'weight'"),
    "y of None": ((X, None), "eval_set: y is missing"),
    "X of None": ((None, Y), "eval_set: X is None"),
    "other features": (([x[:, :2] for x in X], Y), "eval_set: X has 2 features, but crfx"),
    "words": ((WORDS, Y), "X holds dicts or texts"),
    "other labels": ((X, [["Z"] * n for n in LENGTHS]), "eval_set has no label that"),
    "no known label": (each(([], []), (X, [[None] * n for n in LENGTHS])), "nothing to judge"),
    "too few labels": ((X, Y[:2]), "y has 2 instances but X has 4"),
    "stacked without lengths": ((STACKED, Y), "pass lengths="),
    "infinity": (([np.full((3, 3), np.inf)], Y[:1]), "instance 0, position 0: .*infinite"),
    "parents for chains": ({"X": X, "y": Y, "parents": [list(range(-1, n - 1)) for n in LENGTHS]},
        "parents"),
}  # fmt: skip
INIT_MODELS: dict[str, tuple[Any, str]] = {
    "no model": (each(3, LogisticRegression()), "init_model is a .*: pass a fitted"),
    "a class": (LinearCRF, "init_model is a type|init_model is a ABCMeta"),
    "one that ranks": (fitted("RankingCRF"), "init_model is a RankingCRF"),
    "one with other features": (LinearCRF(max_iter=1).fit([x[:, :2] for x in X], Y),
        "X has 3 features, but crfx is expecting 2"),
    "one with other labels": (LinearCRF(max_iter=1).fit(X, [["C"] * len(labels) for labels in Y]),
        "y has the label 'A', which was not seen in"),
    "one of words": (fitted("LinearCRF", "words"), "X holds numbers, but the model was fitted on"),
}  # fmt: skip
CALLBACKS: dict[str, tuple[Any, str]] = {
    "one function": (print, "callbacks is one function: pass a list"),
    "no list": (each(3, "stop"), "callbacks is "),
    "a list of other things": (each([3], [Checkpoint]), "callbacks holds"),
}


def _init_from_rubbish(crf: Any, folder: Path) -> Any:
    (folder / "rubbish.crfx").write_bytes(b"rubbish")
    return crf.fit(X, Y, init_model=folder / "rubbish.crfx")


def _init_of_order_2(crf: Any, folder: Path) -> Any:
    crf.set_params(order=1)
    below = LinearCRF(order=2, max_iter=1).fit(X, Y)
    return crf.fit(X, Y, init_model=below)


def _early(crf: Any, folder: Path) -> Any:
    return type(crf)(early_stopping_rounds=2).fit(X, Y)


def _judged(crf: Any, folder: Path, value: Any) -> Any:
    other = type(crf)(eval_metric=lambda true, predicted: value, random_state=0)
    return other.fit(X, Y, eval_set=(X, Y))


def _sgd() -> Any:
    return LinearCRF("sgd", sweeps=1, random_state=0).fit(X, Y)


def _own(
    area: str, tried: str, attempt: Callable[..., Any], message: str, error: Any = ValueError,
    **more: Any,
) -> Case:  # fmt: skip
    return Case(f"estimators, {area}", tried, attempt, message, error, **more)


def _init(tried: str, init_model: Any, message: str, error: Any) -> Case:
    def attempt(crf: Any, folder: Path) -> Any:
        return crf.fit(X, Y, init_model=init_model)

    return _own("init_model", tried, attempt, message, error, **BOTH)


def _save(tried: str, path: Any, message: str, error: Any) -> Case:
    def attempt(crf: Any, folder: Path, path: Any) -> Any:
        return crf.save(path)

    return _own("saving", tried, attempt, message, error, values=values_of(path), **FITTED)


def _load(tried: str, path: Any, message: str, error: Any) -> Case:
    return _own("loading", tried, lambda crf, folder, path: load(path), message, error,
                values=values_of(path))  # fmt: skip


def _classes(tried: str, classes: Any, message: str) -> Case:
    def attempt(crf: Any, folder: Path, classes: Any) -> Any:
        return _sgd().partial_fit(X, Y, classes=classes)

    return _own("partial_fit", tried, attempt, message, values=values_of(classes))


BOTH: dict[str, Any] = {"subjects": unfitted_and_fitted()}
FITTED: dict[str, Any] = {"subjects": only_fitted()}

CASES = [
    *(_fit(tried, message, eval_set=value) for tried, (value, message) in EVAL_SETS.items()),
    *(_fit(tried, message, init_model=value) for tried, (value, message) in INIT_MODELS.items()),
    *(_fit(tried, message, callbacks=value) for tried, (value, message) in CALLBACKS.items()),
    _init("not fitted", LinearCRF(), "this LinearCRF is not fitted", NotFittedError),
    _init("the path of nothing", "nothing.crfx", "nothing.crfx", OSError),
    _init("a folder", ".", ".", OSError),
    _own("init_model", "a file that is no model", _init_from_rubbish, "rubbish.crfx", **BOTH),
    _own("init_model", "one of another order", _init_of_order_2, "order", **BOTH),
    _own("eval_set", "none for early stopping", _early,
         "early_stopping_rounds needs an eval_set", **BOTH),
    _own("eval_metric", "a function that gives no number", _judged, "eval_metric gave (NaN|'good')",
         subjects=only_unfitted(), values=each(NAN, "good")),
    _own("callbacks", "a Checkpoint in no folder", lambda crf, folder: Checkpoint("no/m.crfx"),
         "there is no folder no", OSError),
    _own("callbacks", "a Checkpoint every 0 rounds",
         lambda crf, folder, every: Checkpoint("m.crfx", every=every), "every is (0|1.5)",
         values=each(0, 1.5)),
    _own("callbacks", "a Checkpoint of no path", lambda crf, folder: Checkpoint(3), "PathLike",
         TypeError),
    _own("saving", "before fit", lambda crf, folder: crf.save("m.crfx"), "not fitted: call fit",
         NotFittedError, subjects=only_unfitted()),
    _save("into no folder", "no/m.crfx", "no", OSError),
    _save("as a folder", Path(), "is a folder", OSError),
    _save("to no path", each(3, None), "PathLike", TypeError),
    _save("on a full disk", "/dev/full", "/dev/full", OSError),
    _load("nothing", "no.crfx", "no.crfx", OSError),
    _load("a folder", ".", "folder|director", OSError),
    _load("no path", each(3, None), "PathLike", TypeError),
    _own("partial_fit", "by L-BFGS", lambda crf, folder: crf.partial_fit(X, Y), "trainer",
         subjects=only_fitted(["LinearCRF"])),
    _own("partial_fit", "a new label that is not named",
         lambda crf, folder: _sgd().partial_fit(X, [["Z"] * n for n in LENGTHS]),
         "name it in classes"),
    _classes("classes that are no list", each("AB", 3), "classes is ('AB'|3)"),
    _classes("classes with None", ["A", None], "classes hold"),
    _classes("classes of another kind", [1, 2], "y mixes labels|classes"),
    _classes("classes that are lists", [["A"], ["B"]], "classes"),
]  # fmt: skip
