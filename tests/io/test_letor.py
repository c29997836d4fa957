"""LETOR files: what is written is read back, and a mistake is told with its line."""

import gzip
import os

import numpy as np
import pytest

from crfx.io import letor
from crfx.io.letor import Rankings

TEXT = """\
# a file of three queries
2 qid:7 1:0.5 3:-1.25 #docid = A inc = 1
0 qid:7 2:1e-3\r

1.5 qid:-3 1:1 2:2 3:3 # B
0 qid:10 #
"""


def write(path, text):
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def assert_same(found, expected):
    for name in ("X", "relevance", "group", "query_ids"):
        a, b = getattr(found, name), getattr(expected, name)
        assert a.dtype == b.dtype, name
        np.testing.assert_array_equal(a, b, err_msg=name)
    assert found.comments == expected.comments


def rankings(n_queries=20, n_features=5, comments=False):
    random = np.random.default_rng(0)
    group = random.integers(1, 9, size=n_queries)
    n = int(group.sum())
    return Rankings(
        random.normal(size=(n, n_features)).astype(np.float32),
        random.integers(0, 3, size=n).astype(np.float64),
        group,
        random.permutation(n_queries).astype(np.int64),
        [f"docid = ä{row}" for row in range(n)] if comments else None,
    )


@pytest.mark.parametrize("name", ["three.txt", "three.txt.gz"])
def test_read(tmp_path, name):
    found = letor.read(write(tmp_path / name, TEXT))
    assert_same(
        found,
        Rankings(
            np.array([[0.5, 0, -1.25], [0, 1e-3, 0], [1, 2, 3], [0, 0, 0]], np.float32),
            np.array([2, 0, 1.5, 0]),
            np.array([2, 1, 1]),
            np.array([7, -3, 10]),
        ),
    )


def test_comments_are_kept_where_asked_for(tmp_path):
    found = letor.read(write(tmp_path / "three.txt", TEXT), comments=True)
    assert found.comments == ["docid = A inc = 1", "", "B", ""]


def test_width_is_that_which_is_asked_for(tmp_path):
    path = write(tmp_path / "three.txt", TEXT)
    assert letor.read(path, n_features=5).X.shape == (4, 5)
    with pytest.raises(ValueError, match=r"three.txt has a feature 3: there may be 2"):
        letor.read(path, n_features=2)


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("name", ["many.txt", "many.txt.gz"])
def test_blocks_of_any_size_give_the_same(tmp_path, monkeypatch, size, name):
    whole = rankings(comments=True)
    letor.write(tmp_path / name, whole)
    monkeypatch.setattr(letor, "_BLOCK_BYTES", size)
    assert_same(letor.read(tmp_path / name, comments=True), whole)


def test_the_last_line_may_have_no_end(tmp_path):
    found = letor.read(write(tmp_path / "one.txt", "1 qid:1 1:2"))
    assert (found.X.tolist(), found.group.tolist()) == ([[2.0]], [1])


@pytest.mark.parametrize("name", ["many.txt", "many.txt.gz"])
@pytest.mark.parametrize("comments", [False, True])
def test_round_trip(tmp_path, name, comments):
    ours = rankings(comments=comments)
    ours.X[0] = [1e-38, 3.4e38, -0.1, 1 / 3, 16777217]
    letor.write(tmp_path / name, ours)
    assert_same(letor.read(tmp_path / name, comments=comments), ours)


def test_levels_are_written_as_people_write_them(tmp_path):
    letor.write(tmp_path / "one.txt", Rankings(*(a[:1] for a in one_query())))
    assert (tmp_path / "one.txt").read_text() == "2 qid:4 1:0.5 2:0.0\n"


def one_query():
    return np.array([[0.5, 0]], np.float32), np.array([2.0]), np.array([1]), np.array([4])


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("1 1:0.5", "there is no query: write qid:NUMBER after the relevance"),
        ("1", "there is no query"),
        ("1 1:0.5 qid:9", "there is no query"),
        ("high qid:9 1:0.5", "relevance is 'high': it must be a number of 0 or more"),
        ("-1 qid:9 1:0.5", "relevance is '-1'"),
        ("nan qid:9 1:0.5", "relevance is 'nan'"),
        ("inf qid:9 1:0.5", "relevance is 'inf'"),
        ("1 qid:nine 1:0.5", "query is 'nine': it must be a whole number"),
        ("1 qid:9999999999999999999999 1:0.5", "query is '9999999999999999999999'"),
        ("1 qid:9 2:1 1:0.5", "feature 1 comes after feature 2: numbers must rise"),
        ("1 qid:9 2:1 2:0.5", "feature 2 comes after feature 2"),
        ("1 qid:9 0:1", "'0:1' is no feature: write NUMBER:VALUE, numbers from 1 on"),
        ("1 qid:9 -1:1", "'-1:1' is no feature"),
        ("1 qid:9 1", "'1' is no feature"),
        ("1 qid:9 a:1", "'a:1' is no feature"),
        ("1 qid:9 1:x", "feature 1 is 'x': it must be a number"),
        ("1 qid:9 1:nan", "feature 1 is 'nan'"),
        ("1 qid:9 1:1e40", "feature 1 is '1e40'"),
        ("1 qid:7 1:0.5", "query 7 comes back after others: lines of a query must be adjacent"),
    ],
)
@pytest.mark.parametrize("size", [40, 1 << 20])
@pytest.mark.parametrize("name", ["bad.txt", "bad.txt.gz"])
def test_a_mistake_is_told_with_its_line(tmp_path, monkeypatch, line, mistake, size, name):
    monkeypatch.setattr(letor, "_BLOCK_BYTES", size)
    path = write(tmp_path / name, f"{TEXT}{line}\n0 qid:11 1:1\n")
    with pytest.raises(ValueError, match=rf"{name}, line 7: ") as error:
        letor.read(path)
    assert mistake in str(error.value)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_a_file_without_documents_is_refused(tmp_path, text):
    with pytest.raises(ValueError, match=r"none.txt has no documents"):
        letor.read(write(tmp_path / "none.txt", text))


def test_a_damaged_gz_is_named(tmp_path):
    path = write(tmp_path / "cut.txt.gz", TEXT)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(ValueError, match=r"cut.txt.gz cannot be decompressed"):
        letor.read(path)
    (tmp_path / "text.gz").write_text(TEXT)
    with pytest.raises(ValueError, match=r"text.gz cannot be decompressed"):
        letor.read(tmp_path / "text.gz")


def test_parts_are_joined():
    a, b = rankings(3, 2, comments=True), rankings(4, 3, comments=True)
    b = Rankings(b.X, b.relevance, b.group, b.query_ids + 3, b.comments)
    both = letor.join([a, b])
    assert both.X.shape == (len(a.X) + len(b.X), 3)
    np.testing.assert_array_equal(both.X[: len(a.X)], np.pad(a.X, ((0, 0), (0, 1))))
    np.testing.assert_array_equal(both.X[len(a.X) :], b.X)
    assert both.group.tolist() == [*a.group, *b.group]
    assert both.comments == [*a.comments, *b.comments]
    assert_same(letor.join([a]), a)


def test_parts_that_share_a_query_are_refused():
    with pytest.raises(ValueError, match="query 0 is in two of the parts"):
        letor.join([rankings(3), rankings(4)])
    with pytest.raises(ValueError, match="no parts to join"):
        letor.join([])


def changed(**change):
    ours = rankings(2, 2)
    parts = {name: getattr(ours, name) for name in ("X", "relevance", "group", "query_ids")}
    return Rankings(**(parts | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group": np.array([1])}, "do not fit together"),
        ({"query_ids": np.array([1, 1])}, "query_ids has a number twice"),
        ({"query_ids": np.array([1])}, "do not fit together"),
        ({"relevance": np.array([1.0])}, "relevance and comments must have one entry"),
        ({"comments": ["one"]}, "relevance and comments must have one entry"),
        ({"comments": ["a\nb"] * len(rankings(2, 2).X)}, "a comment has more than one line"),
        ({"X": np.full_like(rankings(2, 2).X, np.nan)}, "X must be finite"),
        ({"relevance": -np.ones(len(rankings(2, 2).X))}, "relevance 0 or more"),
    ],
)
def test_what_could_not_be_read_is_not_written(tmp_path, change, message):
    path = write(tmp_path / "old.txt", TEXT)
    with pytest.raises(ValueError, match=message):
        letor.write(path, changed(**change))
    assert path.read_text() == TEXT.replace("\r\n", "\n")


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = write(tmp_path / "old.txt", TEXT)

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="disk full"):
        letor.write(path, rankings())
    assert path.read_bytes() == TEXT.encode()
    assert [each.name for each in tmp_path.iterdir()] == ["old.txt"]


def test_no_folder_to_write_in(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        letor.write(tmp_path / "none" / "x.txt", rankings())
