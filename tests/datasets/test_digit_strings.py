"""The bundled data set: real images, honest split, obeyed grammar, same strings every time."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_digits

from crfx.datasets import load_digit_strings
from crfx.datasets.digit_strings import _successors


@pytest.fixture(scope="module")
def digits():
    return load_digit_strings()


def is_keypad_walk(digits):
    """Return whether a string obeys the grammar."""
    walk = [int(digit) for digit in digits]
    starts = [None, *walk[:-2]]
    return all(
        after in _successors(before, key)
        for before, (key, after) in zip(starts, pairwise(walk), strict=False)
    )


def image_set(X):
    return {image.tobytes() for string in X for image in string}


def test_shapes_and_types(digits):
    assert len(digits.X_train) == len(digits.y_train) == 200
    assert len(digits.X_test) == len(digits.y_test) == 200
    for pixels, labels in zip(
        digits.X_train + digits.X_test, digits.y_train + digits.y_test, strict=True
    ):
        assert pixels.shape == (len(labels), 64)
        assert pixels.dtype == np.float32
        assert labels.dtype == np.int64
        assert 5 <= len(labels) <= 12
    assert "no image in both" in digits.description


def test_every_image_is_a_real_one_of_its_digit(digits):
    pixels, labels = load_digits(return_X_y=True)
    digit_of = {
        image.tobytes(): label
        for image, label in zip((pixels / 16).astype(np.float32), labels, strict=True)
    }
    for X, y in ((digits.X_train, digits.y_train), (digits.X_test, digits.y_test)):
        for image, label in zip(np.concatenate(X), np.concatenate(y), strict=True):
            assert digit_of[image.tobytes()] == label


def test_no_image_is_in_both_halves(digits):
    train, test = image_set(digits.X_train), image_set(digits.X_test)
    assert not train & test
    # The strings are long enough to use most images, so the line above had something to find.
    assert min(len(train), len(test)) > 600


def test_strings_follow_grammar_and_cover_digits(digits):
    assert set(np.concatenate(digits.y_train)) == set(range(10))
    assert set(np.concatenate(digits.y_test)) == set(range(10))
    assert all(is_keypad_walk(string) for string in digits.y_train + digits.y_test)


def test_the_grammar_can_say_no():
    for string, obeys in (
        ([7], True),
        ([1, 4, 7, 8, 0, 8, 9], True),  # 0 is a dead end: back to 8 is the only way
        ([1, 5], False),  # diagonal
        ([3, 3], False),  # stays
        ([4, 5, 4], False),  # straight back
        ([0, 8, 0], False),  # straight back, and 8 has other ways out
    ):
        assert is_keypad_walk(np.array(string)) is obeys, string


def test_same_seed_same_strings_other_seed_others(digits):
    again, other = load_digit_strings(), load_digit_strings(seed=1)
    for half in ("X_train", "y_train", "X_test", "y_test"):
        for a, b in zip(getattr(digits, half), getattr(again, half), strict=True):
            np.testing.assert_array_equal(a, b)
    assert any(
        a.shape != b.shape or (a != b).any()
        for a, b in zip(digits.y_test, other.y_test, strict=True)
    )


def test_an_odd_string_goes_to_training_and_two_are_the_fewest():
    digits = load_digit_strings(n_strings=5)
    assert (len(digits.X_train), len(digits.X_test)) == (3, 2)
    with pytest.raises(ValueError, match="n_strings must be at least 2"):
        load_digit_strings(n_strings=1)
