"""Table 2 of Chen et al. (2015): handwritten words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from crfx.datasets import Ocr, load_ocr
from crfx.datasets.folds import held_out
from reproduce.experiments.task import Outcome, Task
from reproduce.experiments.training import Part, accuracy, effort, fit

N_FOLDS = 10
HALVES = {"folds-0-4": (0, 1, 2, 3, 4), "folds-5-9": (5, 6, 7, 8, 9)}


@dataclass(frozen=True, slots=True)
class Options:
    """`split`: "folds", those of the data set, or "words", in which no word is in two folds.

    `deleted` is the share of the pixels that are made missing, in training and in test.
    `validation` is the share of the training words that is held out for early stopping; `train`
    and `test` limit the number of words.
    """

    split: str = "folds"
    deleted: float = 0.0
    validation: float = 0.0
    train: int | None = None
    test: int | None = None


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """`train` and `test` limit the number of words."""

    train: int | None = None
    test: int | None = None


def run(task: Task) -> Outcome:
    """Error per letter, in percent, on one fold after training on the nine others."""
    options = task.options(Options)
    train, test = (
        without(part, options.deleted) for part in parts(options.split, task.fold(N_FOLDS))
    )
    train, validation = train.limited(options.train).hold_out(options.validation)
    estimator = fit(task, train, validation)
    error = 100 - accuracy(estimator, test.limited(options.test))
    return Outcome({"error": error, **effort(estimator, train, validation)})


def judge_settings(task: Task) -> Outcome:
    """Error of settings within one half of the folds: trained on four, judged on the fifth.

    The settings must ask for the metric "token_accuracy": the curve of the error comes from there.

    What is chosen on one half is used for the test folds of the other, which it has never seen.
    """
    if task.unit not in HALVES:
        raise ValueError(f"units are the halves: {', '.join(HALVES)}")
    ocr: Ocr = load()
    *train_folds, judged = HALVES[task.unit]
    whole, folds = Part(list(ocr.X), list(ocr.y)), np.asarray(ocr.folds)
    train, judge = (
        whole.take(np.flatnonzero(np.isin(folds, chosen))) for chosen in (train_folds, judged)
    )
    options = task.options(JudgeOptions)
    train, judge = train.limited(options.train), judge.limited(options.test)
    estimator = fit(task, train, validation=judge)
    errors = [100 * (1 - right) for right in estimator.history_["eval_metric"]]
    figures = {"error": 100 - accuracy(estimator, judge), "lowest": min(errors)}
    return Outcome({**figures, **effort(estimator, train)}, {"error": errors})


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


def without(part: Part, share: float) -> Part:
    """Return the features with a random share of all values missing."""
    if not share:
        return part
    random = np.random.default_rng(0)
    X = [
        np.where(random.random(x.shape) < share, np.float32("nan"), np.asarray(x, np.float32))
        for x in part.X
    ]
    return replace(part, X=X)


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
