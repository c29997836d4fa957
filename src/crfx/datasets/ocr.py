"""Handwritten words, letter by letter: Kassel's collection as normalised by Taskar et al. (2003).

An image is 16 x 8 black or white pixels. The authors of the set dropped the first letter of each
word, a capital, so `words` begin with the second: "ommanding".
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfx.datasets.files import find, open_text
from crfx.datasets.folds import held_out

_ARRAYS_SHA256 = "f762aaed67847f0ce07a158d80d4d869910dcf84a2863ce7fa1f795bf9d9ff51"
_HOW_TO_GET = (
    "The set was given out as letter.data.gz at https://ai.stanford.edu/~btaskar/ocr/ (Taskar, "
    "Guestrin and Koller, Max-Margin Markov Networks, NIPS 2003)."
)
_N_WORDS, _N_LETTERS, _N_PIXELS = 6877, 52152, 128


@dataclass(frozen=True, eq=False, slots=True)
class Ocr:
    """Words: the pixels (length, 128), 0 or 1 row by row, the letters (length,), and the fold."""

    X: list[NDArray[np.float32]]
    y: list[NDArray[np.str_]]
    words: list[str]
    folds: NDArray[np.int64]
    description: str

    def fold(self, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the words outside fold `k` (0 to 9), to train on, and those inside, to test on."""
        return held_out(self.folds, k)


_Stacked = list[NDArray[Any]]
"""Pixels and letters (0 is a) of all words, the offsets of the words, and their folds."""
_MEMBERS = ("pixels", "letters", "offsets", "folds")


def load_ocr() -> Ocr:
    """Load the handwritten words, 6877 of them.

    They are read from ``letters.npz``, else from the original text, ``letter.data``.

    Returns
    -------
    Ocr
        Its method ``fold`` returns the official folds.

    Raises
    ------
    FileNotFoundError
        If the data set is missing; the error says where to get it.

    Examples
    --------
    >>> data = load_ocr()  # doctest: +SKIP
    >>> len(data.X)  # doctest: +SKIP
    6877
    """
    pixels, letters, offsets, folds = _read()
    alphabet = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    y = np.split(alphabet[letters], offsets[1:-1])
    return Ocr(
        X=np.split(pixels.astype(np.float32), offsets[1:-1]),
        y=y,
        words=["".join(word) for word in y],
        folds=folds.astype(np.int64),
        description=(
            "6,877 handwritten words, 52,152 letters of 16 x 8 black or white pixels, 26 classes, "
            "10 folds (Kassel 1995, normalised by Taskar, Guestrin and Koller 2003); the first "
            "letter of each word is left out; terms not stated"
        ),
    )


def _read() -> _Stacked:
    with suppress(FileNotFoundError):
        return _read_arrays(find("ocr", "letters.npz", _ARRAYS_SHA256, how_to_get=_HOW_TO_GET))
    # Copies of the text number their lines differently, so counts are checked, not a checksum.
    return _read_text(find("ocr", "letter.data", how_to_get=_HOW_TO_GET))


def _read_arrays(path: Path) -> _Stacked:
    with np.load(path, allow_pickle=False) as arrays:
        return [arrays[name] for name in _MEMBERS]


def _read_text(path: Path) -> _Stacked:
    """Read columns: id, letter, next id (-1 at a word's end), word, position, fold, then pixels."""
    with open_text(path) as file:
        rows = [line.split("\t", 6) for line in file]
    ends = np.flatnonzero([row[2] == "-1" for row in rows]) + 1
    # Pixels are one character each: reading them as bytes avoids seven million conversions.
    digits = "".join(row[6].rstrip().replace("\t", "") for row in rows).encode()
    if (len(ends), len(rows), len(digits)) != (_N_WORDS, _N_LETTERS, _N_LETTERS * _N_PIXELS):
        raise ValueError(
            f"{path}: {len(ends)} words, {len(rows)} letters and {len(digits)} pixels, expected "
            f"{_N_WORDS}, {_N_LETTERS} and {_N_LETTERS * _N_PIXELS}"
        )
    return [
        (np.frombuffer(digits, np.uint8) - ord("0")).reshape(-1, _N_PIXELS),
        np.frombuffer("".join(row[1] for row in rows).encode(), np.uint8) - ord("a"),
        np.concatenate([[0], ends]),
        np.array([int(rows[end - 1][5]) for end in ends]),
    ]
