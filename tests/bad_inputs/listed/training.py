"""What goes with a training: eval_set, init_model, callbacks, partial_fit, saving."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from crfx import Checkpoint, LinearCRF, load
from listed.case import Case
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
Attempt = Callable[[Any, Path], Any]


def _fit(tried: str, message: str, **given: Any) -> Case:
    def attempt(crf: Any, folder: Path) -> Any:
        return crf.fit(X, Y, **given)

    area = f"estimators, {next(iter(given))}"
    return Case(area, tried, attempt, message, subjects=unfitted_and_fitted())


EVAL_SETS: dict[str, tuple[Any, str]] = {
    "a number": (3, "eval_set is not a pair"),
    "a text": ("Xy", "eval_set is not a pair"),
    "True": (True, "eval_set is not a pair"),
    "X alone": (X, "eval_set"),
    "an array": (STACKED, "eval_set is not a pair"),
    "three parts": ((X, Y, Y), "eval_set is not a pair"),
    "two sets": ([(X, Y), (X, Y)], "eval_set has 2 sets: pass one"),
    "an empty list": ([], "eval_set is not a pair"),
    "an empty dict": ({}, "eval_set has no X"),
    "without y": ({"X": X}, "eval_set has no y"),
    "another key": ({"X": X, "y": Y, "weight": 1}, "eval_set has 'weight'"),
    "y of None": ((X, None), "eval_set: y is missing"),
    "X of None": ((None, Y), "eval_set: X is None"),
    "other features": (([own[:, :2] for own in X], Y), "eval_set: X has 2 features, but crfx"),
    "words": ((WORDS, Y), "X holds dicts or texts"),
    "other labels": (
        (X, [["Z"] * len(own) for own in Y]),
        "eval_set has no label that",
    ),
    "no instances": (([], []), "nothing to judge"),
    "unknown labels only": ((X, [[None] * len(own) for own in Y]), "nothing to judge"),
    "too few labels": ((X, Y[:2]), "y has 2 instances but X has 4"),
    "stacked without lengths": ((STACKED, Y), "pass lengths="),
    "infinity": (([np.full((3, 3), np.inf)], Y[:1]), "instance 0, position 0: .*infinite"),
    "parents for chains": (
        {"X": X, "y": Y, "parents": [list(range(-1, n - 1)) for n in LENGTHS]},
        "parents",
    ),
}
INIT_MODELS: dict[str, tuple[Any, str]] = {
    "a number": (3, "init_model is a int: pass a fitted"),
    "a class": (LinearCRF, "init_model is a type|init_model is a ABCMeta"),
    "an estimator of another library": (LogisticRegression(), "init_model is a LogisticRegression"),
    "one that ranks": (fitted("RankingCRF"), "init_model is a RankingCRF"),
    "one with other features": (
        LinearCRF(max_iter=1).fit([own[:, :2] for own in X], Y),
        "X has 3 features, but crfx is expecting 2",
    ),
    "one with other labels": (
        LinearCRF(max_iter=1).fit(X, [["C"] * len(own) for own in Y]),
        "y has the label 'A', which was not seen in",
    ),
    "one of words": (fitted("LinearCRF", "words"), "X holds numbers, but the model was fitted on"),
}
CALLBACKS: dict[str, tuple[Any, str]] = {
    "one function": (print, "callbacks is one function: pass a list"),
    "a number": (3, "callbacks"),
    "a list of numbers": ([3], "callbacks"),
    "a text": ("stop", "callbacks"),
    "a class in place of an object": ([Checkpoint], "callbacks"),
}


def _init_from_nowhere(crf: Any, folder: Path) -> Any:
    return crf.fit(X, Y, init_model="nothing.crfx")


def _init_from_rubbish(crf: Any, folder: Path) -> Any:
    (folder / "rubbish.crfx").write_bytes(b"rubbish")
    return crf.fit(X, Y, init_model=folder / "rubbish.crfx")


def _init_of_order_2(crf: Any, folder: Path) -> Any:
    crf.set_params(order=1)
    below = LinearCRF(order=2, max_iter=1).fit(X, Y)
    return crf.fit(X, Y, init_model=below)


def _early(crf: Any, folder: Path) -> Any:
    return type(crf)(early_stopping_rounds=2).fit(X, Y)


def _nan_metric(crf: Any, folder: Path) -> Any:
    other = type(crf)(eval_metric=lambda true, found: NAN, random_state=0)
    return other.fit(X, Y, eval_set=(X, Y))


def _text_metric(crf: Any, folder: Path) -> Any:
    other = type(crf)(eval_metric=lambda true, found: "good", random_state=0)
    return other.fit(X, Y, eval_set=(X, Y))


def _own(
    area: str, tried: str, attempt: Attempt, message: str, error: Any = ValueError, **more: Any
) -> Case:
    return Case(f"estimators, {area}", tried, attempt, message, error, **more)


BOTH = {"subjects": unfitted_and_fitted()}
LINEAR = {"subjects": only_fitted(["LinearCRF"])}
FITTED = {"subjects": only_fitted()}

CASES = [
    *(_fit(tried, message, eval_set=own) for tried, (own, message) in EVAL_SETS.items()),
    *(_fit(tried, message, init_model=own) for tried, (own, message) in INIT_MODELS.items()),
    *(_fit(tried, message, callbacks=own) for tried, (own, message) in CALLBACKS.items()),
    _own("init_model", "not fitted", lambda crf, folder: crf.fit(X, Y, init_model=LinearCRF()),
         "this LinearCRF is not fitted", NotFittedError, **BOTH),
    _own("init_model", "the path of nothing", _init_from_nowhere, "nothing.crfx", OSError, **BOTH),
    _own("init_model", "a folder", lambda crf, folder: crf.fit(X, Y, init_model="."), ".",
         OSError, **BOTH),
    _own("init_model", "a file that is no model", _init_from_rubbish, "rubbish.crfx", **BOTH),
    _own("init_model", "one of another order", _init_of_order_2, "order", **BOTH),
    _own("eval_set", "none for early stopping", _early,
         "early_stopping_rounds needs an eval_set", **BOTH),
    _own("eval_metric", "a function that gives NaN", _nan_metric, "eval_metric gave NaN",
         subjects=only_unfitted()),
    _own("eval_metric", "a function that gives text", _text_metric, "eval_metric",
         subjects=only_unfitted()),
    _own("callbacks", "a Checkpoint in no folder", lambda crf, folder: Checkpoint("no/m.crfx"),
         "there is no folder no", OSError),
    _own("callbacks", "a Checkpoint every 0 rounds",
         lambda crf, folder: Checkpoint("m.crfx", every=0), "every is 0"),
    _own("callbacks", "a Checkpoint every 1.5 rounds",
         lambda crf, folder: Checkpoint("m.crfx", every=1.5), "every is 1.5"),
    _own("callbacks", "a Checkpoint of no path", lambda crf, folder: Checkpoint(3), "PathLike",
         TypeError),
    _own("saving", "before fit", lambda crf, folder: crf.save("m.crfx"), "not fitted: call fit",
         NotFittedError, subjects=only_unfitted()),
    _own("saving", "into no folder", lambda crf, folder: crf.save("no/m.crfx"), "no",
         OSError, **FITTED),
    _own("saving", "as a folder", lambda crf, folder: crf.save(folder), "is a folder", OSError,
         **FITTED),
    _own("saving", "to a number", lambda crf, folder: crf.save(3), "PathLike", TypeError,
         **FITTED),
    _own("saving", "to None", lambda crf, folder: crf.save(None), "PathLike", TypeError,
         **FITTED),
    _own("saving", "on a full disk", lambda crf, folder: crf.save("/dev/full"), "/dev/full",
         OSError, **FITTED),
    _own("loading", "nothing", lambda crf, folder: load("no.crfx"), "no.crfx", OSError),
    _own("loading", "a folder", lambda crf, folder: load(folder), "folder|director", OSError),
    _own("loading", "a number", lambda crf, folder: load(3), "PathLike", TypeError),
    _own("loading", "None", lambda crf, folder: load(None), "PathLike", TypeError),
    _own("partial_fit", "by L-BFGS", lambda crf, folder: crf.partial_fit(X, Y), "trainer",
         **LINEAR),
    _own("partial_fit", "a new label that is not named",
         lambda crf, folder: _sgd().partial_fit(X, [["Z"] * n for n in LENGTHS]),
         "name it in classes"),
    _own("partial_fit", "classes that are a text",
         lambda crf, folder: _sgd().partial_fit(X, Y, classes="AB"), "classes is 'AB'"),
    _own("partial_fit", "classes that are a number",
         lambda crf, folder: _sgd().partial_fit(X, Y, classes=3), "classes is 3"),
    _own("partial_fit", "classes with None",
         lambda crf, folder: _sgd().partial_fit(X, Y, classes=["A", None]), "classes hold"),
    _own("partial_fit", "classes of another kind",
         lambda crf, folder: _sgd().partial_fit(X, Y, classes=[1, 2]), "y mixes labels|classes"),
    _own("partial_fit", "classes that are lists",
         lambda crf, folder: _sgd().partial_fit(X, Y, classes=[["A"], ["B"]]), "classes"),
]  # fmt: skip


def _sgd() -> Any:
    return LinearCRF("sgd", sweeps=1, random_state=0).fit(X, Y)
