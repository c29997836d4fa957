"""Word vectors: sizes, look-ups, and the share of CoNLL-2003 they cover."""

import numpy as np
import pytest

from crfx.datasets import load_conll2003, load_sst, load_word_vectors
from reproduce.datasets import load_conll2000

COVERAGE_ATOL = 0.005  # percent; the table has two decimals


@pytest.fixture(scope="module")
def glove(load_or_skip):
    return load_or_skip(load_word_vectors)


@pytest.fixture(scope="module")
def google(load_or_skip):
    return load_or_skip(load_word_vectors, "googlenews_300d_subset")


@pytest.fixture(scope="module")
def testb(load_or_skip):
    return [token.word for x in load_or_skip(load_conll2003).testb.X for token in x]


def percent(is_covered):
    return 100 * np.mean(is_covered)


def test_glove(glove):
    assert glove.vectors.shape == (41643, 100)
    assert glove.vectors.dtype == np.float32
    assert len(glove.index) == 41643
    assert sorted(glove.index.values()) == list(range(41643))
    assert all(word == word.lower() for word in glove.index)
    assert glove.norms is None
    # The first values of "the" in the release.
    np.testing.assert_allclose(
        glove.vectors[glove.index["the"], :3], [-0.038194, -0.24487, 0.72812], rtol=1e-6
    )


def test_google_news(google):
    assert google.vectors.shape == (21639, 300)
    assert google.vectors.dtype == np.float32
    assert len(google.index) == 21639
    assert google.norms.shape == (21639,)
    assert np.isfinite(google.norms).sum() == 12476
    np.testing.assert_allclose(np.linalg.norm(google.vectors, axis=1), 1, atol=1e-3)


def test_glove_is_looked_up_as_written_then_lower(glove):
    rows = glove.rows(["the", "The", "-LRB-", "-RCB-", "\\/", "no such word", "1996-08-28"])
    expected = [glove.index[word] for word in ("the", "the", "(", "}", "/")]
    assert rows.tolist() == [*expected, -1, -1]


def test_google_news_is_also_looked_up_with_marked_digits_and_capitals(google):
    assert google.spellings("PARIS-24") == ("PARIS-24", "paris-24", "PARIS-##", "Paris-24")
    athens, year = google.index["Athens"], google.index["####"]
    assert google.rows(["ATHENS", "1967", "Athens"]).tolist() == [athens, year, athens]


def test_coverage_is_as_documented(glove, google, testb):
    exact = [word in glove.index for word in testb]
    assert percent(exact) == pytest.approx(70.43, abs=COVERAGE_ATOL)
    assert percent(glove.rows(testb) >= 0) == pytest.approx(93.13, abs=COVERAGE_ATOL)
    assert percent(google.rows(testb) >= 0) == pytest.approx(74.36, abs=COVERAGE_ATOL)


def test_coverage_of_treebank_brackets(glove, google, load_or_skip):
    words = [word for x in load_or_skip(load_sst).dev.words for word in x if word is not None]
    assert percent(glove.rows(words) >= 0) == pytest.approx(98.81, abs=COVERAGE_ATOL)
    assert percent(google.rows(words) >= 0) == pytest.approx(80.31, abs=COVERAGE_ATOL)
    words = [token.word for x in load_or_skip(load_conll2000).test.X for token in x]
    assert percent(glove.rows(words) >= 0) == pytest.approx(96.92, abs=COVERAGE_ATOL)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"one of \['glove_6B_100d', .*\], got 'glove'"):
        load_word_vectors("glove")
