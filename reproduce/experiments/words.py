"""Words as numbers: vectors, shapes, and windows over neighbours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from crfx.datasets import WordVectors, load_word_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array32 = NDArray[np.float32]

SHAPES = (
    "begins with a capital",
    "all capitals",
    "all small letters",
    "has a digit",
    "all digits",
    "has a hyphen",
    "has a full stop",
    "length",
)


@cache
def _glove() -> WordVectors:
    return load_word_vectors("glove_6B_100d")


def vectors(words: Sequence[str]) -> Array32:
    """(words, 100) GloVe vectors; a word without one is missing, NaN throughout."""
    glove = _glove()
    rows = glove.rows(words)
    embedded = glove.vectors[rows]
    embedded[rows < 0] = np.nan
    return embedded


def vectors_with_numbers(words: Sequence[str]) -> Array32:
    """Return `vectors`, with vectors for numbers too.

    GloVe knows few numbers. One it does not know takes the mean of its parts: 1996-08-22 that of
    four digits, two hyphens and twice two digits, where n digits stand for all numbers of n digits
    that GloVe knows.
    """
    embedded = vectors(words)
    for word, vector in zip(words, embedded, strict=True):
        if np.isnan(vector[0]) and _DIGITS.search(word):
            vector[:] = _mean_of_parts(_DIGITS.sub(_as_pattern, word))
    return embedded


_DIGITS = re.compile("[0-9]+")
_MOST_DIGITS = 4  # longer numbers have no vectors


def _as_pattern(digits: re.Match[str]) -> str:
    return "#" * min(len(digits[0]), _MOST_DIGITS)


@cache
def _mean_of_parts(pattern: str) -> Array32:
    parts = [_mean_of_alike(part) for part in re.findall("#+|[^#]+", pattern)]
    mean: Array32 = np.nanmean(parts, axis=0)
    return mean


@cache
def _mean_of_alike(part: str) -> Array32:
    alike = [part]
    if part.startswith("#"):
        alike = [word for word in _glove().index if word.isdecimal() and len(word) == len(part)]
    mean: Array32 = vectors(alike).mean(axis=0)
    return mean


def shapes(words: Sequence[str]) -> Array32:
    """(words, 8) numbers, as listed in `SHAPES`.

    >>> shapes(["U.S.", "1996-08-22"])
    array([[ 1.,  1.,  0.,  0.,  0.,  0.,  1.,  4.],
           [ 0.,  0.,  0.,  1.,  0.,  1.,  0., 10.]], dtype=float32)
    """
    return np.array([_shape(word) for word in words], dtype=np.float32).reshape(-1, len(SHAPES))


def _shape(word: str) -> tuple[float, ...]:
    return (
        word[:1].isupper(),
        word.isupper(),
        word.islower(),
        any(character.isdigit() for character in word),
        word.isdigit(),
        "-" in word,
        "." in word,
        len(word),
    )


LETTERS = (0, 1, 2, -3, -2, -1)
"""The places of the letters that `letters` gives: the first three and the last three."""


def letters(words: Sequence[str]) -> Array32:
    """(words, 6) letters as numbers, a is 1; missing where there is no such letter.

    >>> letters(["Riga", "-3"])[:, [0, 5]]
    array([[18.,  1.],
           [nan, nan]], dtype=float32)
    """
    codes = [[_letter(word.lower(), place) for place in LETTERS] for word in words]
    return np.array(codes, dtype=np.float32).reshape(-1, len(LETTERS))


def _letter(word: str, place: int) -> float:
    needed = place + 1 if place >= 0 else -place
    if len(word) < needed or not "a" <= word[place] <= "z":
        return float("nan")
    return ord(word[place]) - ord("a") + 1


def split(X: Any, lengths: Sequence[int]) -> list[Any]:
    """Return one matrix per instance, from an array or CSR."""
    ends = np.cumsum(lengths)
    return [X[end - length : end] for end, length in zip(ends, lengths, strict=True)]
