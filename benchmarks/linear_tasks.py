"""The data and features that `linear.py` gives to LinearCRF and to CRFsuite."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from crfx import LinearCRF
from crfx.datasets import load_ocr
from crfx.features import Template, Vocabulary
from reproduce.crfsuite import Trace
from reproduce.datasets import load_brown, load_conll2000
from reproduce.experiments.tagging import TEMPLATES

L2, MAX_ITER, TOL = 1.0, 1000, 1e-6

CHUNKING = TEMPLATES["neighbours"]
ENTITIES = """
word[-2..2]
word[-1..0] & word[0..1]
pos[-1..1]
chunk[-1..1]
prefix(word[0], 1..4)
suffix(word[0], 1..4)
shape(word[-1..1])
true
"""
TAGS = """
word[-1..1]
prefix(word[0], 1..2)
suffix(word[0], 1..3)
"""
Texts = list[list[list[str]]]


def as_lists(y: Sequence[Any]) -> list[list[str]]:
    """Labels as CRFsuite takes them."""
    return [labels.tolist() for labels in y]


def as_dicts(template: Template, sentence: Any, names: dict[str, str]) -> list[dict[str, str]]:
    """Features as users of sklearn-crfsuite write them: {"word[0]": "the", ...}.

    In memory too they are what a function of a user makes: ``names`` are there once, words are
    those of the sentence, and what is computed from them is new.
    """
    texts = {text: text for token in sentence for text in token}
    dicts = []
    for features in template.features(sentence):
        pairs = (feature.partition("=")[::2] for feature in features)
        dicts.append({names.setdefault(key, key): texts.get(text, text) for key, text in pairs})
    return dicts


def all_dicts(template: Template, sentences: Sequence[Any]) -> list[list[dict[str, str]]]:
    """Return the dicts of all sentences."""
    names: dict[str, str] = {}
    return [as_dicts(template, sentence, names) for sentence in sentences]


def new_crf(n_jobs: int, max_iter: int = MAX_ITER, tol: float = TOL) -> LinearCRF:
    """Ours, with CRFsuite's objective."""
    return LinearCRF(l2=L2, start_end=False, max_iter=max_iter, tol=tol, n_jobs=n_jobs)


def train_ours(
    texts: Any, y: Sequence[Any], n_jobs: int, max_iter: int = MAX_ITER, tol: float = TOL
) -> tuple[LinearCRF, Vocabulary, Trace]:
    """Read the features into a matrix, then train on it: reading is timed apart."""
    trace, vocabulary = Trace(), Vocabulary()
    begin = time.perf_counter()
    X, lengths = vocabulary.encode(texts, learn=True)
    trace.reading = time.perf_counter() - begin
    labels = np.concatenate(y)
    crf = new_crf(n_jobs, max_iter, tol)
    begin = time.perf_counter()

    def note(progress: Any) -> None:
        trace.note(time.perf_counter() - begin, progress.history["objective"][-1])

    crf.fit(X, labels, lengths=lengths, callbacks=[note])
    trace.n_weights = count_weights(crf)
    return crf, vocabulary, trace


def count_weights(crf: LinearCRF) -> int:
    """Weights that training moved."""
    node = np.count_nonzero(crf.model_.node.weights)
    return int(node + np.count_nonzero(crf.transitions_))


def chunking_task() -> tuple[Texts, list[Any]]:
    """Return the training sentences of CoNLL-2000, as lists of names."""
    train = load_conll2000().train
    template = Template(CHUNKING, ("word", "pos"))
    return [template.features(sentence) for sentence in train.X], train.y


def letters_task() -> tuple[Texts, list[Any]]:
    """Return all OCR letters, as lists of the pixels that are on."""
    letters = load_ocr()
    names = np.array([f"pixel{number}" for number in range(letters.X[0].shape[1])])
    return [[names[row > 0].tolist() for row in word] for word in letters.X], letters.y


TASKS = {"chunking": chunking_task, "letters": letters_task}
"""What both tools are trained on, by name."""


def brown_task(every: int) -> tuple[Iterator[list[list[str]]], list[Any]]:
    """Return every ``every``-th sentence, and all with a new tag, so that all tags occur."""
    brown = load_brown()
    seen: set[str] = set()
    chosen = []
    for number, labels in enumerate(brown.y):
        new = set(labels.tolist()) - seen
        if new or number % every == 0:
            chosen.append(number)
        seen |= new
    template = Template(TAGS, ("word",))
    features = (template.features(brown.X[number]) for number in chosen)
    return features, [brown.y[number] for number in chosen]
