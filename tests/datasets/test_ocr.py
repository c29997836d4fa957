"""OCR letters: counts as published, and the same words from arrays and from text."""

import numpy as np
import pytest

from crfx.datasets import load_ocr
from crfx.datasets.files import find

WORDS_PER_FOLD = [626, 704, 684, 698, 693, 651, 739, 717, 690, 675]
LETTERS_PER_FOLD = [4617, 5375, 5110, 5353, 5270, 5001, 5583, 5370, 5331, 5142]


@pytest.fixture(scope="module")
def ocr(load_or_skip):
    return load_or_skip(load_ocr)


@pytest.fixture
def only_text(load_or_skip, tmp_path, monkeypatch):
    """A data folder that has `letter.data.gz` and no arrays."""
    text = load_or_skip(lambda: find("ocr", "letter.data", how_to_get=""))
    (tmp_path / "ocr").mkdir()
    (tmp_path / "ocr" / text.name).symlink_to(text)
    monkeypatch.setenv("CRFX_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ocr" / text.name


def test_words_and_letters(ocr):
    assert len(ocr.X) == len(ocr.y) == len(ocr.words) == 6877
    assert sum(map(len, ocr.y)) == 52152
    assert len(set(ocr.words)) == 55
    assert {len(word) for word in ocr.words} <= set(range(3, 15))
    assert set(np.concatenate(ocr.y)) == set("abcdefghijklmnopqrstuvwxyz")
    assert ocr.words[0] == "ommanding"
    assert all("".join(y) == word for y, word in zip(ocr.y, ocr.words, strict=True))
    assert "52,152 letters" in ocr.description


def test_pixels(ocr):
    assert all(x.shape == (len(y), 128) for x, y in zip(ocr.X, ocr.y, strict=True))
    assert {x.dtype for x in ocr.X} == {np.dtype(np.float32)}
    assert set(np.unique(np.concatenate(ocr.X))) == {0, 1}


def test_folds(ocr):
    assert np.bincount(ocr.folds).tolist() == WORDS_PER_FOLD
    lengths = [len(word) for word in ocr.words]
    assert np.bincount(ocr.folds, weights=lengths).tolist() == LETTERS_PER_FOLD
    train, test = ocr.fold(3)
    assert len(test) == 698
    assert set(ocr.folds[test]) == {3}
    assert sorted([*train, *test]) == list(range(6877))
    with pytest.raises(ValueError, match="no fold 10"):
        ocr.fold(10)


def test_text_and_arrays_give_the_same(ocr, only_text):
    text = load_ocr()
    assert text.words == ocr.words
    np.testing.assert_array_equal(text.folds, ocr.folds)
    for name in ("X", "y"):
        ours, theirs = getattr(text, name), getattr(ocr, name)
        assert [len(a) for a in ours] == [len(a) for a in theirs]
        np.testing.assert_array_equal(np.concatenate(ours), np.concatenate(theirs))
        assert ours[0].dtype == theirs[0].dtype


def test_without_files_or_with_a_short_text_it_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("CRFX_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="btaskar"):
        load_ocr()
    (tmp_path / "ocr").mkdir()
    row = "\t".join(["1", "o", "-1", "1", "1", "0", *"01" * 64, ""])
    (tmp_path / "ocr" / "letter.data").write_text(row + "\n")
    with pytest.raises(ValueError, match=r"letter.data: 1 words, 1 letters and 128 pixels"):
        load_ocr()
