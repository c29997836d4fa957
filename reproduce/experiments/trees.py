"""Trees against chains and against no edges: parts of speech, and sentiment of phrases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from crfx.datasets import load_sst
from crfx.datasets.sst import SstSplit
from crfx.features import windowed
from crfx.metrics import token_accuracy
from reproduce.datasets import load_ud_ewt
from reproduce.datasets.ud_ewt import UdEwtSplit
from reproduce.experiments.task import Outcome, Task
from reproduce.experiments.training import Part, accuracy, effort, fit, predict
from reproduce.experiments.words import shapes, split, vectors


@dataclass(frozen=True, slots=True)
class UposOptions:
    """`structure`: "tree", along the dependencies, or "chain".

    A word is seen with its neighbours within `window`; `train` and `test` limit the number of
    sentences.
    """

    structure: str = "tree"
    window: int = 0
    train: int | None = None
    test: int | None = None


def upos(task: Task) -> Outcome:
    """Share of words with the right universal tag, in percent; dev stops the training early."""
    task.only_unit("test")
    options = task.options(UposOptions)
    if options.structure not in ("tree", "chain"):
        raise ValueError(f"structure is {options.structure!r}: choose 'tree' or 'chain'")
    data = _ud_ewt()
    train = _sentences(data.train, options).limited(options.train)
    dev, test = (_sentences(each, options).limited(options.test) for each in (data.dev, data.test))
    estimator = fit(task, train, validation=dev)
    return Outcome({"accuracy": accuracy(estimator, test), **effort(estimator, train, dev)})


_ud_ewt = cache(load_ud_ewt)


def _sentences(data: UdEwtSplit, options: UposOptions) -> Part:
    words, lengths = [word for each in data.tokens for word in each], list(map(len, data.tokens))
    X = windowed(
        np.hstack([vectors(words), shapes(words)]), lengths, options.window, options.window
    )
    parents = list(data.parents) if options.structure == "tree" else None
    return Part(split(X, lengths), list(data.upos), parents)


@dataclass(frozen=True, slots=True)
class SstOptions:
    """`sides`: left and right children have edge types of their own.

    `train` and `test` limit the number of trees.
    """

    sides: bool = False
    train: int | None = None
    test: int | None = None


def sst(task: Task) -> Outcome:
    """Share of phrases, and of whole sentences, with the right of 5 sentiments, in percent."""
    task.only_unit("test")
    options = task.options(SstOptions)
    data = _sst()
    train = _phrases(data.train, options).limited(options.train)
    dev, test = (_phrases(each, options).limited(options.test) for each in (data.dev, data.test))
    estimator = fit(task, train, validation=dev)
    labels = predict(estimator, test)
    figures = {
        "accuracy": 100 * token_accuracy(test.y, labels),
        "roots": 100 * token_accuracy([y[:1] for y in test.y], [y[:1] for y in labels]),
    }
    return Outcome({**figures, **effort(estimator, train, dev)})


_sst = cache(load_sst)


def _phrases(data: SstSplit, options: SstOptions) -> Part:
    X = [
        phrase_features(words, parents)
        for words, parents in zip(data.words, data.parents, strict=True)
    ]
    types = list(data.edge_types) if options.sides else None
    return Part(X, list(data.y), list(data.parents), types)


def phrase_features(words: list[str | None], parents: NDArray[np.int64]) -> NDArray[np.float32]:
    """(nodes, 102): mean vector of the words below a node that have one, how many words there
    are, and how many of them have a vector.

    Nodes come before their children, so that the nodes below a node follow it directly: sums over
    them are differences of running sums.
    """
    sizes = np.ones(len(parents), dtype=np.int64)
    for node in range(len(parents) - 1, 0, -1):
        sizes[parents[node]] += sizes[node]
    begin = np.arange(len(parents))
    is_word = np.array([word is not None for word in words])
    embedded = vectors([word or "" for word in words]).astype(np.float64)
    known = is_word & ~np.isnan(embedded[:, 0])
    embedded[~known] = 0.0
    summed = [
        running[begin + sizes] - running[begin]
        for column in (embedded, is_word[:, None], known[:, None])
        for running in [np.concatenate([np.zeros((1, column.shape[1])), column.cumsum(axis=0)])]
    ]
    total, n_words, n_known = summed
    with np.errstate(invalid="ignore"):
        mean = total / n_known  # of no known word: NaN, missing
    return np.hstack([mean, n_words, n_known]).astype(np.float32)
