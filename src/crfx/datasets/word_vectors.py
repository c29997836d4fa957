"""Pretrained word vectors for the words of the text sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crfx.datasets.files import find


@dataclass(frozen=True, eq=False, slots=True)
class WordVectors:
    """Word vectors: row `index[word]` of `vectors` (n, d).

    `norms` are the original norms of vectors that were stored with unit norm, NaN if unknown; None
    if the vectors are as released. `spellings` returns the spellings under which to look a word up,
    best first: releases differ in case and in digits.
    """

    vectors: NDArray[np.float32]
    index: dict[str, int]
    norms: NDArray[np.float32] | None
    spellings: Callable[[str], tuple[str, ...]]
    description: str

    def rows(self, words: Iterable[str]) -> NDArray[np.int64]:
        """Return the row of each word under its first known spelling, -1 for unknown words."""
        spellings = ([s for s in self.spellings(word) if s in self.index] for word in words)
        return np.array([self.index[known[0]] if known else -1 for known in spellings], np.int64)


def load_word_vectors(name: str = "glove_6B_100d") -> WordVectors:
    """Load word vectors.

    Parameters
    ----------
    name : str, default "glove_6B_100d"
        "glove_6B_100d", the better one, or "googlenews_300d_subset".

    Returns
    -------
    WordVectors

    Raises
    ------
    FileNotFoundError
        If the data set is missing; the error says where to get it.

    Examples
    --------
    >>> vectors = load_word_vectors()  # doctest: +SKIP
    >>> vectors.vectors.shape[1]  # doctest: +SKIP
    100
    """
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
    # Treebanks have their own spelling of brackets and slashes, which vectors lack.
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
"""The files by name: sha256, how to get it, spellings of words, description."""
