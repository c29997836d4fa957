"""LETOR files: reading, writing and joining; most bad files are in tests/bad_inputs."""

import gzip
from dataclasses import replace

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


def assert_same(queries, expected):
    for name in ("X", "relevance", "group", "query_ids"):
        a, b = getattr(queries, name), getattr(expected, name)
        assert a.dtype == b.dtype, name
        np.testing.assert_array_equal(a, b, err_msg=name)
    assert queries.comments == expected.comments


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
    path = write(tmp_path / name, TEXT)
    expected = Rankings(
        np.array([[0.5, 0, -1.25], [0, 1e-3, 0], [1, 2, 3], [0, 0, 0]], np.float32),
        np.array([2, 0, 1.5, 0]),
        np.array([2, 1, 1]),
        np.array([7, -3, 10]),
    )
    assert_same(letor.read(path), expected)
    assert letor.read(path, comments=True).comments == ["docid = A inc = 1", "", "B", ""]
    assert letor.read(path, n_features=5).X.shape == (4, 5)
    without_end = letor.read(write(tmp_path / name, "1 qid:1 1:2"))
    assert (without_end.X.tolist(), without_end.group.tolist()) == ([[2.0]], [1])


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("name", ["many.txt", "many.txt.gz"])
def test_read_takes_blocks_of_any_size(tmp_path, monkeypatch, size, name):
    """Rows, comments and the number of a bad line do not depend on the size of blocks."""
    whole = rankings(comments=True)
    whole.X[0] = [1e-38, 3.4e38, -0.1, 1 / 3, 16777217]
    letor.write(tmp_path / name, whole)
    bad = "1 qid:7 1:0.5", "query 7 comes back after others: lines of a query must be adjacent"
    monkeypatch.setattr(letor, "_BLOCK_BYTES", size)
    assert_same(letor.read(tmp_path / name, comments=True), whole)
    for line, mistake in (bad, ("1 qid:9 1:x", "feature 1 is 'x': it must be a number")):
        path = write(tmp_path / name, f"{TEXT}{line}\n0 qid:11 1:1\n")
        with pytest.raises(ValueError, match=rf"{name}, line 7: {mistake}"):
            letor.read(path)


def test_write_formats_levels_plainly(tmp_path):
    one = Rankings(np.array([[0.5, 0]], np.float32), np.array([2.0]), np.array([1]), np.array([4]))
    letor.write(tmp_path / "one.txt", one)
    assert (tmp_path / "one.txt").read_text() == "2 qid:4 1:0.5 2:0.0\n"
    letor.write(tmp_path / "plain.txt", rankings())
    assert_same(letor.read(tmp_path / "plain.txt"), rankings())


def test_join():
    a, b = rankings(3, 2, comments=True), rankings(4, 3, comments=True)
    b = Rankings(b.X, b.relevance, b.group, b.query_ids + 3, b.comments)
    both = letor.join([a, b])
    assert both.X.shape == (len(a.X) + len(b.X), 3)
    np.testing.assert_array_equal(both.X[: len(a.X)], np.pad(a.X, ((0, 0), (0, 1))))
    np.testing.assert_array_equal(both.X[len(a.X) :], b.X)
    assert both.group.tolist() == [*a.group, *b.group]
    assert both.comments == [*a.comments, *b.comments]
    assert_same(letor.join([a]), a)
    with pytest.raises(ValueError, match="query 0 is in two of the parts"):
        letor.join([rankings(3), rankings(4)])
    with pytest.raises(ValueError, match="no parts to join"):
        letor.join([])


N_ROWS = len(rankings(2, 2).X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group": np.array([1])}, "do not fit together"),
        ({"query_ids": np.array([1, 1])}, "query_ids has a number twice"),
        ({"comments": ["one"]}, "relevance and comments must have one entry"),
        ({"comments": ["a\nb"] * N_ROWS}, "a comment has more than one line"),
        ({"X": np.full((N_ROWS, 2), np.nan, np.float32)}, "X must be finite"),
        ({"relevance": -np.ones(N_ROWS)}, "relevance 0 or more"),
    ],
)
def test_write_rejects_unreadable_values(tmp_path, change, message):
    path = write(tmp_path / "old.txt", TEXT)
    with pytest.raises(ValueError, match=message):
        letor.write(path, replace(rankings(2, 2), **change))
    assert path.read_bytes() == TEXT.encode()
