"""Pretrained word vectors, cut down to the words of the text sets here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crfx.datasets.files import find


@dataclass(frozen=True, eq=False, slots=True)
class WordVectors:
    """One row of `vectors` (n, d) per word, `index[word]` says which.

    `norms` are the original lengths of vectors that were stored at unit length, NaN where not
    known, and None where the vectors are as released. `spellings` gives what to look a word up
    under, best first: releases differ in case and in how they write digits.
    """

    vectors: NDArray[np.float32]
    index: dict[str, int]
    norms: NDArray[np.float32] | None
    spellings: Callable[[str], tuple[str, ...]]
    description: str

    def rows(self, words: Iterable[str]) -> NDArray[np.int64]:
        """Return the row of each word under the first spelling there is, -1 where there is none."""
        return np.array([self._row(word) for word in words], dtype=np.int64)

    def _row(self, word: str) -> int:
        found = (self.index[s] for s in self.spellings(word) if s in self.index)
        return next(found, -1)


def load_word_vectors(name: str = "glove_6B_100d") -> WordVectors:
    """Load `"glove_6B_100d"`, the one to use, or `"googlenews_300d_subset"`."""
    if name not in _RELEASES:
        raise ValueError(f"name must be one of {sorted(_RELEASES)}, got {name!r}")
    sha256, how_to_get, spellings, description = _RELEASES[name]
    path = find("word-vectors", f"{name}.npz", sha256, how_to_get=how_to_get)
    with np.load(path, allow_pickle=False) as arrays:
        return WordVectors(
            vectors=arrays["vectors"].astype(np.float32, copy=False),
            index={word: row for row, word in enumerate(arrays["words"].tolist())},
            norms=arrays.get("norm"),
            spellings=spellings,
            description=description,
        )


_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}"}


def _lower(word: str) -> str:
    # Treebanks write brackets and slashes their own way, which no vectors know.
    return _BRACKETS.get(word, word.replace("\\/", "/")).lower()


def _glove_spellings(word: str) -> tuple[str, ...]:
    return word, _lower(word)


def _google_spellings(word: str) -> tuple[str, ...]:
    return word, _lower(word), re.sub(r"\d", "#", word), word.capitalize()


_RELEASES: dict[str, tuple[str, str, Callable[[str], tuple[str, ...]], str]] = {
    "glove_6B_100d": (
        "d7e66c9b799b41167a25d85eb8047926e33c82a33b2b6d044752ad1f703a3461",
        (
            "It is a part of glove.6B.100d.txt (https://nlp.stanford.edu/projects/glove/), packed "
            "for crfx: the words of its text sets."
        ),
        _glove_spellings,
        (
            "GloVe 6B, 100 dimensions (Pennington, Socher and Manning 2014): 41,643 words, lower "
            "case, hardly any with a digit; PDDL 1.0"
        ),
    ),
    "googlenews_300d_subset": (
        "4c6174f2fffd44c44215a3e1c0c94c467a744a8237f24209099a4e5432cbe752",
        (
            "It is a part of GoogleNews-vectors-negative300 "
            "(https://code.google.com/archive/p/word2vec/), packed for crfx."
        ),
        _google_spellings,
        (
            "word2vec of Google News, 300 dimensions (Mikolov et al. 2013): 21,639 words, cased, "
            "digits written #, a part of the release only, in half precision; Apache 2.0"
        ),
    ),
}
"""The files by name: sha256, how to get it, what to look words up under, description."""
