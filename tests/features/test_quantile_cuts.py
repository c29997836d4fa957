"""Bins: exact where values are few, even where they are many, the same however rows are shared."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from crfx.distributed.collective import together
from crfx.features import quantile_cuts
from crfx.features.matrix import Matrix
from crfx.features.quantile_cuts import quantile_points

MAX_BIN = 16


def taken(X, begin, end):
    return X.iloc[begin:end] if hasattr(X, "iloc") else X[begin:end]


def columns_of(points):
    """Return the stored values of each column, from top to bottom."""
    table = points.tocsc()
    return [column.tolist() for column in np.split(table.data, table.indptr[1:-1])]


def dense(n_rows=400, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 6)).astype(np.float32)
    X[:, 1] = random.integers(0, 5, n_rows)
    X[:, 2] = 0.0
    X[n_rows // 2 + 1, 2] = 1.0  # rare
    X[:, 3] = np.nan
    X[random.random(n_rows) < 0.9, 4] = np.nan
    return X


def texts(n_rows=400, seed=0):
    """Indicators, counts, a column with a value in every row, one with none, one with one."""
    random = np.random.default_rng(seed)
    X = sparse.random(n_rows, 9, 0.2, format="lil", random_state=random, dtype=np.float32)
    X[:, 3] = 0
    X[:, 4] = random.normal(size=(n_rows, 1))
    X[:, 5] = 0
    X[n_rows - 1, 5] = -2.5
    X = sparse.csr_matrix(X)
    X.data[X.indices < 2] = 1
    X.data[X.indices == 2] = np.round(3 * X.data[X.indices == 2])
    return X


def frame(n_rows=400):
    X = pd.DataFrame(dense(n_rows)).rename(columns=str)
    letters = np.random.default_rng(3).choice(list("acd"), n_rows)
    X["letter"] = pd.Categorical(letters, categories=list("abcde"))
    X["nothing"] = pd.Categorical([None] * n_rows, categories=[])
    return X


KINDS = {"dense": dense, "sparse": texts, "frame": frame}


def test_few_values_are_all_kept():
    X = np.array([[3, -0.0, 7, np.nan], [1, 0.0, 7, np.nan], [3, 2, 7, np.nan]], np.float64)
    assert columns_of(quantile_points(X, 3)) == [[1, 3], [0, 2], [7], []]
    for form in (np.asarray, sparse.csr_matrix):  # -0 is 0
        X = form(np.array([[1.0], [2.0]]))
        (X.data if sparse.issparse(X) else X).reshape(-1)[:] = [-0.0, 0.0]
        cuts = quantile_points(X, 3)
        assert columns_of(cuts) == [[0]]
        assert not np.signbit(cuts.data).any()
    twice = sparse.csr_matrix((np.ones(3), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    assert columns_of(quantile_points(twice, MAX_BIN)) == [[2], [1]]
    X = sparse.csr_matrix(np.array([[1.0], [-2.0], [-1e-30], [3e38], [-3e38], [-1.0]]))
    (cuts,) = columns_of(quantile_points(X, MAX_BIN))
    assert cuts == sorted(np.float32([1, -2, -1e-30, 3e38, -3e38, -1]).tolist())
    # Categories have a bin each, seen or not.
    assert columns_of(quantile_points(frame(), 2))[-2:] == [[0, 1, 2, 3, 4], []]


def test_many_values_are_cut_at_equal_ranks_up_to_both_ends():
    X = np.random.default_rng(0).permutation(np.arange(1001.0))[:, None]
    (cuts,) = columns_of(quantile_points(X, 11))
    assert cuts == [100.0 * k for k in range(11)]
    X = np.concatenate([np.zeros(900), np.arange(1.0, 101.0)])[:, None]
    (cuts,) = columns_of(quantile_points(X, 11))
    assert cuts == [0, *range(1, 101, 11)]  # a frequent value leaves the bins to others


def test_absent_entries_and_nan_are_the_same():
    X = dense()
    seen = ~np.isnan(X)
    same = sparse.csr_matrix((X[seen], np.nonzero(seen)), shape=X.shape)
    everywhere = np.indices(X.shape).reshape(2, -1)
    with_nan = sparse.csr_matrix((X.reshape(-1), everywhere), shape=X.shape)
    expected = columns_of(quantile_points(X, MAX_BIN))
    assert columns_of(quantile_points(same, MAX_BIN)) == expected
    assert columns_of(quantile_points(with_nan, MAX_BIN)) == expected
    for kind, n_rows in product(KINDS, (0, 1)):
        few = taken(KINDS[kind](), 0, n_rows)
        cuts = quantile_points(few, MAX_BIN)
        assert cuts.shape[1] == few.shape[1]
        sizes = [len(column) for column in columns_of(cuts)[:3]]
        assert all(size == n_rows or (size < n_rows and kind == "sparse") for size in sizes)


def look_at(what, monkeypatch):
    """Limit what is looked at, in blocks that do not hold all columns."""
    most = 50 if what == "some rows" else 2**17
    monkeypatch.setattr(quantile_cuts, "MOST_ROWS", most)
    monkeypatch.setattr(quantile_cuts, "_VALUES_AT_ONCE", 2 * most)
    monkeypatch.setattr(quantile_cuts, "_ROWS_AT_ONCE", 64)
    if what == "some entries":
        monkeypatch.setattr(quantile_cuts, "MOST_ENTRIES", 500)
        monkeypatch.setattr(quantile_cuts, "FEWEST_ROWS", 40)


def test_fewer_rows_of_wide_matrices_are_sampled(monkeypatch):
    """Every second row, and both ends of all."""
    monkeypatch.setattr(quantile_cuts, "MOST_VALUES", 30)
    monkeypatch.setattr(quantile_cuts, "FEWEST_ROWS", 10)
    X = np.repeat(np.arange(20.0)[:, None], 6, axis=1)
    cuts = columns_of(quantile_points(X, 20))
    assert cuts == [[*range(0, 20, 2), 19]] * 6


@pytest.mark.parametrize(
    ("fewest", "strides"),
    [(1, [1, 1, 3, 5]), (30, [1, 1, 2, 4]), (200, [1, 1, 1, 1])],
)
def test_fewer_of_very_many_entries_are_sampled(fewest, strides, monkeypatch):
    """Of 70 in all the columns with 3 and 20 leave 47, which the others share."""
    monkeypatch.setattr(quantile_cuts, "MOST_ENTRIES", 70)
    monkeypatch.setattr(quantile_cuts, "FEWEST_ROWS", fewest)
    X = np.zeros((101, 4))
    for column, n in enumerate([3, 20, 60, 101]):
        X[:n, column] = np.arange(1, n + 1)
    cuts = columns_of(quantile_points(sparse.csr_matrix(X), 200))
    expected = [
        list(range(1, n + 1, stride)) for n, stride in zip([3, 20, 60, 101], strides, strict=True)
    ]
    assert cuts == expected


def test_many_small_shards_are_not_merged_one_by_one(monkeypatch):
    """Merging one by one would sort all earlier values again with every shard."""
    X = sparse.csr_matrix(np.random.default_rng(0).normal(size=(256, 4)))
    expected = columns_of(quantile_points(X, 256))
    sizes, merged = [], quantile_cuts._merged

    def counting(parts):
        sizes.append(sum(len(keys) for keys, _ in parts))
        return merged(parts)

    monkeypatch.setattr(quantile_cuts, "_merged", counting)
    shards = Matrix([4] * 64, X[:0], lambda k: X[4 * k : 4 * k + 4])
    assert columns_of(quantile_points(shards, 256)) == expected
    assert max(sizes) == X.nnz
    assert sum(sizes) < 5 * X.nnz


@pytest.mark.parametrize("what", ["all", "some rows", "some entries"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_on_disk_or_of_workers_have_the_same_bins(kind, what, monkeypatch):
    look_at(what, monkeypatch)
    X = KINDS[kind]()
    ends = np.array([0, 0, 7, 130, 130, 399, 400])
    shards = Matrix(
        np.diff(ends).tolist(), taken(X, 0, 0), lambda k: taken(X, ends[k], ends[k + 1])
    )
    points = quantile_points(X, MAX_BIN)
    expected = columns_of(points)
    assert columns_of(quantile_points(shards, MAX_BIN)) == expected
    assert max(np.diff(points.tocsc().indptr)[:6]) == MAX_BIN
    other = quantile_points(taken(X, 0, 300), MAX_BIN)
    assert columns_of(other) != expected
    is_sparse = kind == "sparse"  # rare values are not lost
    assert expected[5 if is_sparse else 2] == ([-2.5] if is_sparse else [0.0, 1.0])
    for shares in ((400,), (150, 250), (0, 399, 1)):
        borders = np.concatenate([[0], np.cumsum(shares)])

        def work(them, borders=borders):
            part = taken(X, borders[them.rank], borders[them.rank + 1])
            return quantile_points(part, MAX_BIN, them)

        cuts = [columns_of(points) for points in together(len(shares), work)]
        assert cuts == [expected] * len(shares)
