"""FAQ segmentation: counts and the structure of features and labels as documented."""

from collections import Counter

import numpy as np
import pytest

from crfx.datasets.files import find
from reproduce.datasets import load_faq

ARRAYS_SHA256 = "de46527686d14bd1d017f6a8f4459b741d6dfc2acae7910d76decee7462c5d37"


@pytest.fixture(scope="module")
def faq(load_or_skip):
    return load_or_skip(load_faq)


def test_counts(faq):
    lengths = [len(y) for y in faq.y]
    assert len(lengths) == len(faq.folds) == 48
    assert (sum(lengths), min(lengths), max(lengths)) == (62497, 326, 2491)
    assert [x.shape for x in faq.X] == [(length, 24) for length in lengths]
    counts = {"head": 4212, "question": 1452, "answer": 54987, "tail": 1846}
    assert Counter(np.concatenate(faq.y).tolist()) == counts
    assert "62,497 lines" in faq.description


def test_files_begin_with_the_head_and_end_with_the_tail(faq):
    assert {y[0] for y in faq.y} == {"head"}
    assert {y[-1] for y in faq.y} == {"tail"}


def test_features(faq):
    features = np.concatenate(faq.X)
    assert features.dtype == np.float32
    assert set(np.unique(features)) == {0, 1}
    assert np.flatnonzero(np.ptp(features, axis=0) == 0).tolist() == [13, 14]
    np.testing.assert_array_equal(features[:, 6], 1 - features[:, 7])
    for x in faq.X:
        np.testing.assert_array_equal(x[1:, 8], x[:-1, 7])
        np.testing.assert_array_equal(x[1:, 10], x[:-1, 9])


def test_the_prepared_arrays_hold_the_same(faq, load_or_skip):
    path = load_or_skip(lambda: find("faq", "faqs.npz", ARRAYS_SHA256, how_to_get=""))
    with np.load(path, allow_pickle=False) as arrays:
        assert np.cumsum([len(x) for x in faq.X]).tolist() == arrays["offsets"][1:].tolist()
        np.testing.assert_array_equal(np.concatenate(faq.X), arrays["X"])
        labels = np.array(["head", "question", "answer", "tail"])[arrays["labels"]]
        np.testing.assert_array_equal(np.concatenate(faq.y), labels)


def test_folds(faq):
    assert sorted(np.bincount(faq.folds)) == [4, 4] + [5] * 8
    train, test = faq.fold(0)
    assert sorted([*train, *test]) == list(range(48))
