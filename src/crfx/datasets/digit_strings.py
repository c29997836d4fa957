"""Strings of real handwritten digits, as a finger walks over a telephone keypad.

The images are scikit-learn's copy of the UCI handwritten digits (1,797 images of 8 x 8 pixels,
no download). The label grammar is a walk on the keypad

    1 2 3
    4 5 6
    7 8 9
      0

in which the finger moves up, down, left or right to the next key and never straight back, except
at 0, where there is no other way out. A digit has 2.6 successors on average and a pair of digits
even fewer: a model that knows the previous digit is better than one that classifies each image
alone, and one that knows the previous two can be better still.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NEIGHBOURS = {
    0: (8,),
    1: (2, 4),
    2: (1, 3, 5),
    3: (2, 6),
    4: (1, 5, 7),
    5: (2, 4, 6, 8),
    6: (3, 5, 9),
    7: (4, 8),
    8: (0, 5, 7, 9),
    9: (6, 8),
}
_LENGTHS = range(5, 13)


@dataclass(frozen=True, eq=False, slots=True)
class DigitStrings:
    """Training and test strings: by string the pixels (length, 64) and the digits (length,)."""

    X_train: list[NDArray[np.float32]]
    y_train: list[NDArray[np.int64]]
    X_test: list[NDArray[np.float32]]
    y_test: list[NDArray[np.int64]]
    description: str


def load_digit_strings(n_strings: int = 400, seed: int = 0) -> DigitStrings:
    """Make strings of handwritten digits; the same arguments give the same strings.

    Half of the strings are for training, half for testing. Training strings use only the first
    half of the images and test strings only the second. In scikit-learn's file the images of one
    writer lie together, so most test strings are by writers not seen in training.
    All images of a digit are used before one is used again.

    Parameters
    ----------
    n_strings : int, default 400
        The number of strings, at least 2.
    seed : int, default 0

    Returns
    -------
    DigitStrings

    Examples
    --------
    >>> digits = load_digit_strings()
    >>> len(digits.X_train), len(digits.X_test), digits.X_test[0].shape
    (200, 200, (10, 64))
    >>> digits.y_test[0]
    array([4, 1, 2, 3, 6, 9, 8, 5, 4, 1])
    """
    if n_strings < 2:
        raise ValueError(
            f"n_strings must be at least 2 (one to train, one to test), got {n_strings}"
        )
    from sklearn.datasets import load_digits  # slow to import, and not needed to name the loader

    pixels, digits = load_digits(return_X_y=True)
    pixels = (pixels / 16).astype(np.float32)
    half = len(digits) // 2
    n_test = n_strings // 2
    # Two streams, so that the test strings do not depend on how many training strings there are.
    train_rng, test_rng = np.random.default_rng(seed).spawn(2)
    return DigitStrings(
        *_write(pixels[:half], digits[:half], n_strings - n_test, train_rng),
        *_write(pixels[half:], digits[half:], n_test, test_rng),
        description=(
            f"{n_strings} walks on a telephone keypad in real handwritten digits (scikit-learn's "
            "copy of the UCI set), half to train and half to test, no image in both"
        ),
    )


def _successors(before: int | None, key: int) -> list[int]:
    """Return the keys that may follow `key` if the finger came from `before`."""
    return [after for after in _NEIGHBOURS[key] if after != before or key == 0]


def _walk(length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    walk = [int(rng.integers(10))]
    before = None
    while len(walk) < length:
        after = int(rng.choice(_successors(before, walk[-1])))
        before = walk[-1]
        walk.append(after)
    return np.array(walk, dtype=np.int64)


def _write(
    pixels: NDArray[np.float32], digits: NDArray[np.int64], n_strings: int, rng: np.random.Generator
) -> tuple[list[NDArray[np.float32]], list[NDArray[np.int64]]]:
    """Return images and digits of `n_strings` walks."""
    images = [rng.permutation(np.flatnonzero(digits == digit)) for digit in range(10)]
    used = [0] * 10
    X, y = [], []
    for _ in range(n_strings):
        walk = _walk(int(rng.choice(_LENGTHS)), rng)
        rows = []
        for digit in walk:
            rows.append(images[digit][used[digit] % len(images[digit])])
            used[digit] += 1
        X.append(pixels[rows])
        y.append(walk)
    return X, y
