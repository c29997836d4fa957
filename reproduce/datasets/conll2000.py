"""Chunks of Wall Street Journal sentences: the CoNLL-2000 shared task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crfx.datasets.files import find, read_blocks

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_SHA256 = {
    "train.txt": "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea",
    "test.txt": "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628",
}
_HOW_TO_GET = (
    "train.txt and test.txt are in packages/corpora/conll2000.zip of "
    "https://github.com/nltk/nltk_data (branch gh-pages)."
)


class Conll2000Token(NamedTuple):
    """A word with its part of speech from the Brill tagger, which is not gold."""

    word: str
    pos: str


@dataclass(frozen=True, eq=False, slots=True)
class Conll2000Split:
    """Per sentence the tokens and their chunk tags, BIO2: `B-NP` starts every noun phrase."""

    X: list[list[Conll2000Token]]
    y: list[NDArray[np.str_]]


@dataclass(frozen=True, eq=False, slots=True)
class Conll2000:
    """The official split: sections 15 to 18 to train on, section 20 to test on."""

    train: Conll2000Split
    test: Conll2000Split
    description: str


def load_conll2000() -> Conll2000:
    """Load the sentences with their chunks."""
    train, test = (
        _read(find("conll2000", name, sha256, how_to_get=_HOW_TO_GET))
        for name, sha256 in _SHA256.items()
    )
    return Conll2000(
        train,
        test,
        description=(
            "CoNLL-2000: Wall Street Journal text in 11 types of chunk (Tjong Kim Sang and "
            "Buchholz 2000); 8,936 / 2,012 sentences, 211,727 / 47,377 tokens; the text is the "
            "Penn Treebank's, terms not stated"
        ),
    )


def _read(path: Path) -> Conll2000Split:
    X, y = [], []
    for block in read_blocks(path):
        words, pos, tags = zip(*(line.split(" ") for line in block), strict=True)
        X.append(list(map(Conll2000Token, words, pos)))
        y.append(np.array(tags))
    return Conll2000Split(X, y)
