"""Treebank sample: sentences, words, tags and trees as published."""

import numpy as np
import pytest

from reproduce.datasets import load_treebank_sample


@pytest.fixture(scope="module")
def sample(load_or_skip):
    return load_or_skip(load_treebank_sample)


def test_counts(sample):
    assert len(sample.X) == len(sample.y) == len(sample.parents) == len(sample.files) == 3914
    assert sum(map(len, sample.X)) == 94084
    assert len(set(np.concatenate(sample.y))) == 45
    assert set(sample.files) == set(range(1, 200))
    assert "45 tags" in sample.description
    assert any("#" in words for words in sample.X)


def test_the_first_sentence(sample):
    assert sample.X[0][:4] == ["Pierre", "Vinken", ",", "61"]
    assert sample.y[0][:4].tolist() == ["NNP", "NNP", ",", "CD"]
    assert sample.parents[0][:2].tolist() == [1, 7]


def test_every_sentence_has_one_root_and_parents_within(sample):
    for parents in sample.parents:
        assert (parents == -1).sum() == 1
        assert (parents < len(parents)).all()
