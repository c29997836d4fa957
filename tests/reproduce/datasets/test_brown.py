"""Brown: sentences, tokens and tags as published."""

import numpy as np
import pytest

from reproduce.datasets import load_brown


@pytest.fixture(scope="module")
def brown(load_or_skip):
    return load_or_skip(load_brown)


def test_counts(brown):
    assert len(brown.X) == len(brown.y) == len(brown.texts) == len(brown.categories) == 57340
    assert sum(map(len, brown.X)) == sum(map(len, brown.y)) == 1161192
    assert len(set(np.concatenate(brown.y))) == 472
    assert len(set(brown.texts)) == 500
    assert len(set(brown.categories)) == 15
    assert "472 tags" in brown.description


def test_the_first_tokens(brown):
    assert brown.X[0][:4] == ["The", "Fulton", "County", "Grand"]
    assert brown.y[0][:4].tolist() == ["at", "np-tl", "nn-tl", "jj-tl"]
    assert (brown.texts[0], brown.categories[0]) == ("ca01", "news")
