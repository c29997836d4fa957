"""MQ2007 comes from the user: counts tell whether it is the right set."""

import pytest

from reproduce.datasets import load_mq2007, mq2007


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Five files of two queries each, three documents in all."""
    monkeypatch.setenv("CRFX_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "letor-mq2007").mkdir()
    for part in range(1, 6):
        text = f"1 qid:{part}0 46:1\n0 qid:{part}0 46:1\n2 qid:{part}1 1:0.5 #docid\n"
        (tmp_path / "letor-mq2007" / f"S{part}.txt").write_text(text)
    return tmp_path / "letor-mq2007"


def test_another_set_is_refused(folder):
    with pytest.raises(
        ValueError, match=r"letor-mq2007: 10 queries, 15 documents and 46 features, expected 1692"
    ):
        load_mq2007()


def test_five_parts_make_the_folds(folder, monkeypatch):
    monkeypatch.setattr(mq2007, "_N_QUERIES", 10)
    monkeypatch.setattr(mq2007, "_N_DOCUMENTS", 15)
    fold = load_mq2007().fold(2)
    assert fold.train.query_ids.tolist() == [20, 21, 30, 31, 40, 41]
    assert fold.validation.query_ids.tolist() == [50, 51]
    assert fold.test.query_ids.tolist() == [10, 11]


def test_without_files_it_says_what_to_put_where(folder):
    (folder / "S3.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"S1.txt to S5.txt .*CRFX_DATA/letor-mq2007/"):
        load_mq2007()
