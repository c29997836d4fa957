"""Table 1 of Chen et al. (2015): named entities, from word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.datasets import load_conll2003
from crfx.datasets.conll2003 import Conll2003Split
from crfx.features import Template, Vocabulary, windowed
from crfx.metrics import span_f1
from reproduce.experiments.task import Outcome, Task
from reproduce.experiments.training import Part, effort, fit, predict
from reproduce.experiments.words import letters, shapes, split, vectors, vectors_with_numbers

Array32 = npt.NDArray[np.float32]
Array64 = npt.NDArray[np.float64]

FEATURES = ("embedding", "shapes", "text", "words")
_TEMPLATE = Template("word[-1..1]\npos[-1..1]\nkind(word[-1..1])\ntrue", ("word", "pos"))
_RADIUS = 1  # previous, current and next word
_HEADLINE = 0.7  # a sentence with a larger share of words in capitals


@dataclass(frozen=True, slots=True)
class Options:
    """`features`: "embedding", word vectors only; "shapes", with word shapes and parts of speech;
    "text", also with letters, the place in the sentence, and what the document says of the word;
    "words", vectors beside the words, tags and cases themselves, for linear potentials.

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
    if options.features not in FEATURES:
        raise ValueError(f"features is {options.features!r}: choose one of {', '.join(FEATURES)}")
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
    X = windowed(of_words(words), lengths, _RADIUS, _RADIUS, outside=0.0)
    entities = [bio2(tags.tolist()) for tags in sentences.y]
    if options.features == "words":
        return Part(split(_beside_words(X, sentences), lengths), entities)
    if options.features != "embedding":
        number = {tag: code for code, tag in enumerate(_tags())}
        tags = np.array([number.get(token.pos, np.nan) for token in tokens], dtype=np.float32)
        more = [shapes(words), tags]
        if options.features == "text":
            more += [letters(words), elsewhere(sentences)]
        X = np.hstack([X, windowed(np.column_stack(more), lengths, _RADIUS, _RADIUS)])
    if options.features == "text":
        X = np.hstack([X, _places(sentences)])
    return Part(split(X, lengths), entities)


def _beside_words(X: Array32, sentences: Conll2003Split) -> Any:
    """CSR of vectors, 0 where they are missing, and of what a template says of the words."""
    said, _ = _TEMPLATE.encode(_columns(sentences), _vocabulary())
    return sparse.hstack([said, sparse.csr_matrix(np.nan_to_num(X))], format="csr")


@cache
def _vocabulary() -> Vocabulary:
    """Return the vocabulary of the template's features in the training sentences."""
    vocabulary = Vocabulary()
    _TEMPLATE.encode(_columns(load().train), vocabulary, learn=True)
    return vocabulary


def _columns(sentences: Conll2003Split) -> list[list[tuple[str, str]]]:
    return [[(token.word, token.pos) for token in sentence] for sentence in sentences.X]


def _places(sentences: Conll2003Split) -> Array32:
    """(tokens, 3): words before and after in the sentence, and its share of words in capitals."""
    return np.array(
        [
            (place, len(sentence) - 1 - place, capitals)
            for sentence in sentences.X
            for capitals in [np.mean([token.word.isupper() for token in sentence])]
            for place in range(len(sentence))
        ],
        dtype=np.float32,
    )


def elsewhere(sentences: Conll2003Split) -> Array32:
    """(tokens, 4): other mentions of the word in the document, however they are written.

    How many, and of those that begin no sentence and are not in a headline, the share that begins
    with a capital, that follows a word which does, and that precedes one; missing if there is none.
    """
    mentioned = [_mentions([token.word for token in sentence]) for sentence in sentences.X]
    totals: dict[tuple[int, str], Array64] = {}
    keys = [
        [(int(document), token.word.lower()) for token in sentence]
        for document, sentence in zip(sentences.documents, sentences.X, strict=True)
    ]
    for words, mentions in zip(keys, mentioned, strict=True):
        for word, mention in zip(words, mentions, strict=True):
            totals[word] = totals.get(word, 0.0) + mention
    all_own = np.concatenate(mentioned)
    others = np.array([totals[word] for words in keys for word in words]) - all_own
    with np.errstate(invalid="ignore"):
        shares = others[:, 2:] / others[:, 1:2]
    return np.column_stack([others[:, 0], shares]).astype(np.float32)


def _mentions(words: Sequence[str]) -> Array64:
    """(words, 5): 1; whether it counts; and if so, whether it, the last and the next begin with a
    capital.
    """
    capital = np.array([word[:1].isupper() for word in words], dtype=np.float64)
    counts = np.ones(len(words))
    counts[0] = 0
    if np.mean([word.isupper() for word in words]) > _HEADLINE:
        counts[:] = 0
    last, following = np.append(0.0, capital[:-1]), np.append(capital[1:], 0.0)
    return np.column_stack(
        [np.ones(len(words)), counts, counts * capital, counts * last, counts * following]
    )


@cache
def _tags() -> list[str]:
    """Parts of speech in training; in alphabetical order, which keeps kinds of nouns together."""
    return sorted({token.pos for sentence in load().train.X for token in sentence})


def bio2(tags: Sequence[str]) -> list[str]:
    """Convert IOB1, where B only separates spans of one kind, to B at the start of every span.

    >>> bio2(["I-PER", "I-PER", "B-PER", "O", "I-LOC"])
    ['B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC']
    """
    before = ["O", *tags]
    return [
        f"B-{tag[2:]}" if tag.startswith("I-") and previous[2:] != tag[2:] else tag
        for previous, tag in zip(before, tags, strict=False)
    ]
