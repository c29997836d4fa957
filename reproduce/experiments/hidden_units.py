"""Figures 2 and 3 of van der Maaten, Welling and Saul (2011): four tasks, linear or with units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfx.datasets.folds import held_out
from crfx.features import windows
from reproduce.datasets import load_cb513, load_faq
from reproduce.experiments import ocr
from reproduce.experiments.tagging import parts_of_speech
from reproduce.experiments.task import Outcome, Task
from reproduce.experiments.training import Part, accuracy, effort, fit

N_FOLDS = 10
_HALF_WINDOW = 6  # residues on either side


@dataclass(frozen=True, slots=True)
class Options:
    """`data`: "ocr", "faq" or "cb513", whose units are folds, or a half of the folds, to choose
    settings (trained on four, judged on the fifth); "treebank-sample" or "ud-ewt", whose units are
    "test", and "dev" to choose settings.

    `train` and `test` limit the number of instances.
    """

    data: str = "ocr"
    train: int | None = None
    test: int | None = None


def run(task: Task) -> Outcome:
    """Error per position, in percent."""
    options = task.options(Options)
    train, test = _parts(task, options.data)
    train = train.limited(options.train)
    estimator = fit(task, train)
    error = 100 - accuracy(estimator, test.limited(options.test))
    return Outcome({"error": error, **effort(estimator, train)})


def _parts(task: Task, data: str) -> tuple[Part, Part]:
    if data in FOLDED:
        whole, folds = FOLDED[data]()
        if task.unit in ocr.HALVES:
            *first, judged = ocr.HALVES[task.unit]
            return tuple(  # type: ignore[return-value]
                whole.take(np.flatnonzero(np.isin(folds, chosen))) for chosen in (first, judged)
            )
        train, test = held_out(folds, task.fold(N_FOLDS))
        return whole.take(train), whole.take(test)
    parts = _described(data)
    if task.unit not in ("dev", "test"):
        raise ValueError("units are 'test', and 'dev' to choose settings")
    return parts["train"], parts[task.unit]


@cache
def _ocr() -> tuple[Part, NDArray[np.int64]]:
    """Pixels as -1 and 1."""
    data = ocr.load()
    return Part([2 * np.asarray(x, np.float32) - 1 for x in data.X], list(data.y)), data.folds


@cache
def _faq() -> tuple[Part, NDArray[np.int64]]:
    """24 features and all products of two, as -1 and 1."""
    data = load_faq(n_folds=N_FOLDS)
    return Part([_with_products(x) for x in data.X], list(data.y)), data.folds


def _with_products(x: NDArray[np.float32]) -> NDArray[np.float32]:
    products = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    return np.concatenate([x, products], axis=1) * np.float32(2) - np.float32(1)


@cache
def _cb513() -> tuple[Part, NDArray[np.int64]]:
    """Profiles from -1 to 1 within 13 residues, 0 beyond the ends."""
    data = load_cb513(n_folds=N_FOLDS)
    scaled = [2 * x - 1 for x in data.X]
    X = windows(scaled, _HALF_WINDOW, _HALF_WINDOW, outside=0.0)
    return Part(list(X), list(data.q3)), data.folds


FOLDED: dict[str, Callable[[], tuple[Part, NDArray[np.int64]]]] = {
    "ocr": _ocr,
    "faq": _faq,
    "cb513": _cb513,
}


@cache
def _described(source: str) -> dict[str, Part]:
    """Sentences with the features of the paper."""
    parts = parts_of_speech(source)
    return {name: Part([describe(list(x)) for x in part.X], part.y) for name, part in parts.items()}


def describe(words: Sequence[str]) -> list[list[str]]:
    """Words, their first and last four letters, and four properties of their spelling, within one
    position.

    >>> describe(["Running", "on"])[1]
    ['-1 word Running', '-1 prefix Runn', '-1 suffix ning', '-1 capital', '-1 ing', '0 word on']
    """
    spelled = [_spelled(word) for word in words]
    return [
        [
            f"{shift} {feature}"
            for shift in (-1, 0, 1)
            if 0 <= at + shift < len(words)
            for feature in spelled[at + shift]
        ]
        for at in range(len(words))
    ]


def _spelled(word: str) -> list[str]:
    names = [f"word {word}"]
    if len(word) > 4:
        names += [f"prefix {word[:4]}", f"suffix {word[-4:]}"]
    properties: dict[str, Any] = {
        "hyphen": "-" in word,
        "capital": any(letter.isupper() for letter in word),
        "number": any(letter.isdigit() for letter in word),
        "ing": word.endswith("ing"),
    }
    return names + [name for name, holds in properties.items() if holds]
