"""Table 2 of Chen et al. (2015): handwritten words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from crfx.datasets import Ocr, load_ocr
from crfx.datasets.folds import held_out
from crfx.report.experiments.task import Outcome, Task
from crfx.report.experiments.training import Part, accuracy, effort, fit

N_FOLDS = 10


@dataclass(frozen=True, slots=True)
class Options:
    """`split`: "folds", those of the data set, or "words", in which no word is in two folds.

    `validation` is the share of the training words that is held out for early stopping; `train`
    and `test` limit the number of words.
    """

    split: str = "folds"
    validation: float = 0.0
    train: int | None = None
    test: int | None = None


def run(task: Task) -> Outcome:
    """Error per letter, in percent, on one fold after training on the nine others."""
    options = task.options(Options)
    train, test = parts(options.split, task.fold(N_FOLDS))
    train, validation = train.limited(options.train).hold_out(options.validation)
    estimator = fit(task, train, validation)
    error = 100 - accuracy(estimator, test.limited(options.test))
    return Outcome({"error": error, **effort(estimator, train, validation)})


load = cache(load_ocr)


def parts(split: str, fold: int) -> tuple[Part, Part]:
    """Training and test words."""
    ocr: Ocr = load()
    if split not in ("folds", "words"):
        raise ValueError(f"split is {split!r}: choose 'folds' or 'words'")
    folds = ocr.folds if split == "folds" else word_folds(ocr.words, N_FOLDS)
    whole = Part(list(ocr.X), list(ocr.y))
    train, test = held_out(folds, fold)
    return whole.take(train), whole.take(test)


def word_folds(words: Sequence[str], n_folds: int) -> NDArray[np.int64]:
    """Deal distinct words into folds of nearly equal size: each, the commonest first, goes to the
    fold that has least.

    >>> word_folds(["a", "b", "a", "c", "a", "b", "d"], 2)
    array([0, 1, 0, 1, 0, 1, 0])
    """
    sizes = [0] * n_folds
    fold_of = {}
    for word, count in sorted(Counter(words).items(), key=lambda item: (-item[1], item[0])):
        fold_of[word] = sizes.index(min(sizes))
        sizes[fold_of[word]] += count
    return np.array([fold_of[word] for word in words], dtype=np.int64)
