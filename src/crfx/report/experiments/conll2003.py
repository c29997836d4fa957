"""Table 1 of Chen et al. (2015): named entities, from word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from crfx.datasets import load_conll2003
from crfx.datasets.conll2003 import Conll2003Split
from crfx.metrics import span_f1
from crfx.report.experiments.task import Outcome, Task
from crfx.report.experiments.training import Part, effort, fit, predict
from crfx.report.experiments.words import shapes, split, vectors, vectors_with_numbers, windowed

_RADIUS = 1  # previous, current and next word


@dataclass(frozen=True, slots=True)
class Options:
    """`features`: "embedding", word vectors only, or "shapes": with word shapes and tags.

    With `numbers` those that have no vector take one made of their parts, else they are missing.
    Without `testb` nothing is measured there: for choosing settings. `train` and `test` limit the
    number of sentences.
    """

    features: str = "embedding"
    numbers: bool = False
    testb: bool = True
    train: int | None = None
    test: int | None = None


def run(task: Task) -> Outcome:
    """F1 of spans, in percent, on testa, which also stops the training early, and on testb."""
    task.only_unit("test")
    options = task.options(Options)
    if options.features not in ("embedding", "shapes"):
        raise ValueError(f"features is {options.features!r}: choose 'embedding' or 'shapes'")
    data = load()
    train = part(data.train, options).limited(options.train)
    testa = part(data.testa, options).limited(options.test)
    estimator = fit(task, train, validation=testa)
    judged = {"testa": testa}
    if options.testb:
        judged["testb"] = part(data.testb, options).limited(options.test)
    figures = {
        f"f1_{name}": 100 * span_f1(each.y, predict(estimator, each))
        for name, each in judged.items()
    }
    return Outcome({**figures, **effort(estimator, train, testa)})


load = cache(load_conll2003)


def part(sentences: Conll2003Split, options: Options) -> Part:
    """Sentences as the vectors of three words, perhaps with shapes and tags; entities as BIO2."""
    tokens = [token for sentence in sentences.X for token in sentence]
    words, lengths = [token.word for token in tokens], [len(x) for x in sentences.X]
    of_words = vectors_with_numbers if options.numbers else vectors
    X = windowed(of_words(words), lengths, _RADIUS, outside=0.0)
    if options.features == "shapes":
        number = {tag: code for code, tag in enumerate(_tags())}
        tags = np.array([number.get(token.pos, np.nan) for token in tokens], dtype=np.float32)
        more = np.column_stack([shapes(words), tags])
        X = np.hstack([X, windowed(more, lengths, _RADIUS)])
    return Part(split(X, lengths), [bio2(tags.tolist()) for tags in sentences.y])


@cache
def _tags() -> list[str]:
    """Parts of speech in training; in alphabetical order, which keeps kinds of nouns together."""
    return sorted({token.pos for sentence in load().train.X for token in sentence})


def bio2(tags: Sequence[str]) -> list[str]:
    """From IOB1, where B marks only what follows its own kind, to B at the start of every span.

    >>> bio2(["I-PER", "I-PER", "B-PER", "O", "I-LOC"])
    ['B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC']
    """
    before = ["O", *tags]
    return [
        f"B-{tag[2:]}" if tag.startswith("I-") and previous[2:] != tag[2:] else tag
        for previous, tag in zip(before, tags, strict=False)
    ]
