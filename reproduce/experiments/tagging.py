"""Words to tags by linear potentials on text: chunks of CoNLL-2000, and parts of speech."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from crfx.features import Template
from crfx.metrics import span_f1, token_accuracy
from reproduce import crfsuite
from reproduce.datasets import load_conll2000, load_treebank_sample, load_ud_ewt
from reproduce.experiments.task import Outcome, Task
from reproduce.experiments.training import Part, effort, fit, predict

# What the tutorial of CRFsuite uses for chunks.
_NEIGHBOURS = """
word[-2..2]
word[-1..0] & word[0..1]
pos[-2..2]
pos[-2..1] & pos[-1..2]
pos[-2..0] & pos[-1..1] & pos[0..2]
"""
_SPELLING = """
prefix(word[0], 1..4)
suffix(word[0], 1..4)
kind(word[-1..1])
"""
_CHUNKS = (
    _NEIGHBOURS
    + """
word[0] & pos[-1..1]
lower(word[0])
"""
    + _SPELLING
)
_JOINED = (
    _CHUNKS
    + """
word[-1] & pos[0]
word[1] & pos[0]
word[0] & pos[-1] & pos[1]
pos[-2..-1] & pos[-1..0] & pos[0..1] & pos[1..2]
lower(word[-1])
lower(word[1])
suffix(word[-1], 2..3)
suffix(word[1], 2..3)
"""
)
# Nothing joined by hand.
_ATOMS = """
word[-2..2]
pos[-2..2]
suffix(word[0], 1..3)
kind(word[0])
"""
_WORDS = """
word[-2..2]
word[-1..0] & word[0..1]
"""
_SPELLED = (
    _WORDS
    + """
lower(word[-1..1])
suffix(word[-1], 2..3)
suffix(word[1], 2..3)
"""
    + _SPELLING
)
TEMPLATES = {
    "neighbours": _NEIGHBOURS,
    "chunks": _CHUNKS,
    "joined": _JOINED,
    "atoms": _ATOMS,
    "words": _WORDS + _SPELLING,
    "spelled": _SPELLED,
}

# Files of the Treebank sample that are trained on, judged on and tested on; there is no standard.
_TREEBANK_FILES = {"train": (1, 179), "dev": (180, 189), "test": (190, 199)}


@dataclass(frozen=True, slots=True)
class Options:
    """`template` names one of `TEMPLATES`; `source` of parts of speech: "treebank-sample" or
    "ud-ewt".

    Without `tested` figures are those of sentences that are kept for choosing settings: a tenth of
    those to train on (chunks), or the part meant for it (parts of speech). `train` and `test` limit
    the number of sentences.
    """

    template: str = "neighbours"
    source: str = "treebank-sample"
    tested: bool = True
    train: int | None = None
    test: int | None = None


def chunking(task: Task) -> Outcome:
    """F1 of chunks, in percent."""
    task.only_unit("test")
    options = task.options(Options)
    data = _conll2000()
    train = Part(list(data.train.X), list(data.train.y))
    test: Part | None = Part(list(data.test.X), list(data.test.y))
    if not options.tested:
        train, test = train.hold_out(0.1)
    assert test is not None
    test = test.limited(options.test)
    predicted, figures = _tagged(task, options, train.limited(options.train), test, ("word", "pos"))
    right = 100 * token_accuracy(test.y, predicted)
    return Outcome({"f1": 100 * span_f1(test.y, predicted), "accuracy": right, **figures})


def pos(task: Task) -> Outcome:
    """Share of words with the right part of speech, in percent."""
    task.only_unit("test")
    options = task.options(Options)
    parts = parts_of_speech(options.source)
    test = parts["test" if options.tested else "dev"].limited(options.test)
    train = parts["train"].limited(options.train)
    predicted, figures = _tagged(task, options, train, test, ("word",))
    return Outcome({"accuracy": 100 * token_accuracy(test.y, predicted), **figures})


def _tagged(
    task: Task, options: Options, train: Part, test: Part, columns: tuple[str, ...]
) -> tuple[list[Any], dict[str, float]]:
    """Tags of the test sentences, and what the training took."""
    if options.template not in TEMPLATES:
        raise ValueError(f"template is {options.template!r}: choose one of {', '.join(TEMPLATES)}")
    template = Template(TEMPLATES[options.template], columns)

    def seen(part: Part) -> Part:
        return replace(part, X=template(part.X))

    if task.settings.get("estimator") == "CRFsuite":
        return _tagged_by_crfsuite(task, seen(train), seen(test))
    estimator = fit(task, seen(train))
    return predict(estimator, seen(test)), effort(estimator, train)


def _tagged_by_crfsuite(
    task: Task, train: Part, test: Part
) -> tuple[list[list[str]], dict[str, float]]:
    """Tag by CRFsuite; settings other than `estimator` are its parameters."""
    params = {name: value for name, value in task.settings.items() if name != "estimator"}
    labels = (list(tags) for tags in train.y)
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "model")
        trace = crfsuite.train(train.X, labels, params, model)
        predicted = crfsuite.tag(crfsuite.open_tagger(model), test.X)
    return predicted, {
        "rounds": len(trace.seconds),
        # The median, as of ours; what lies between iterations, not what comes before the first.
        "seconds_per_round": float(np.median(np.diff(trace.seconds))) if trace.seconds[1:] else 0.0,
        "train_instances": len(train),
        "train_positions": sum(map(len, train.y)),
    }


_conll2000 = cache(load_conll2000)


@cache
def parts_of_speech(source: str) -> dict[str, Part]:
    """Sentences with their tags, to train on, to choose settings by and to test on."""
    if source == "ud-ewt":
        ewt = load_ud_ewt()
        splits = {"train": ewt.train, "dev": ewt.dev, "test": ewt.test}
        return {name: Part(split.tokens, list(split.upos)) for name, split in splits.items()}
    if source != "treebank-sample":
        raise ValueError(f"source is {source!r}: choose 'treebank-sample' or 'ud-ewt'")
    sample = load_treebank_sample()
    whole = Part(sample.X, list(sample.y))
    return {
        name: whole.take(np.flatnonzero((sample.files >= first) & (sample.files <= last)))
        for name, (first, last) in _TREEBANK_FILES.items()
    }
