"""A padded array is learned from, padding and all: training says so, and only then."""

import warnings

import numpy as np
import pytest

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, TreeCRF

LENGTHS = (5, 3, 4)
X = np.random.default_rng(0).normal(size=(3, 5, 2))
Y = [["a", "b", "a", "b", "a"]] * 3
SHORT = {"n_jobs": 1}


def padded(value=0.0, label="a"):
    inputs, labels = X.copy(), [list(own) for own in Y]
    for own, told, length in zip(inputs, labels, LENGTHS, strict=True):
        own[length:] = value
        told[length:] = [label] * (5 - length)
    return inputs, labels


@pytest.mark.parametrize(
    "crf",
    [
        GBCRF(1, **SHORT),
        TreeCRF(1, **SHORT),
        LinearCRF(max_iter=1, **SHORT),
        HiddenUnitCRF(2, max_iter=1, trainer="lbfgs", **SHORT),
    ],
    ids=lambda crf: type(crf).__name__,
)
def test_padding_is_told(crf):
    with pytest.warns(UserWarning, match=r"1 of its 3 .* all 0.0, with the label 'a': .*cut it"):
        crf.fit(*padded())


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_padding_of_any_value(value):
    with pytest.warns(UserWarning, match=rf"rows that are all {value}, with the label 'b'"):
        GBCRF(1, **SHORT).fit(*padded(value, "b"))


def two_labels():
    inputs, labels = padded()
    labels[1][3:] = ["a", "b"]
    return inputs, labels


QUIET = {
    "data": lambda: (X, Y),
    "a list": lambda: (list(padded()[0]), padded()[1]),
    "one row": lambda: (padded()[0][[0, 2]], Y[:2]),
    "two labels": two_labels,
    "unknown labels": lambda: padded(label=None),
    "one feature": lambda: (padded()[0][:, :, :1], padded()[1]),
}


@pytest.mark.parametrize("name", QUIET)
def test_what_is_no_padding_is_not(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", "L-BFGS stopped at max_iter")
        LinearCRF(max_iter=1, **SHORT).fit(*QUIET[name]())
