"""Bins: exact where values are few, even where they are many, the same however rows are shared."""

import numpy as np
import pytest
from scipy import sparse

from crfx.distributed.collective import together
from crfx.features import quantile_cuts
from crfx.features.matrix import Matrix
from crfx.features.quantile_cuts import quantile_points

MAX_BIN = 16


def columns_of(points):
    """What stands in each column, from top to bottom."""
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
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(dense(n_rows)).rename(columns=str)
    letters = np.random.default_rng(3).choice(list("acd"), n_rows)
    X["letter"] = pandas.Categorical(letters, categories=list("abcde"))
    X["nothing"] = pandas.Categorical([None] * n_rows, categories=[])
    return X


KINDS = {"dense": dense, "sparse": texts, "frame": frame}


def test_few_values_are_all_kept():
    X = np.array([[3, -0.0, 7, np.nan], [1, 0.0, 7, np.nan], [3, 2, 7, np.nan]], np.float64)
    assert columns_of(quantile_points(X, 3)) == [[1, 3], [0, 2], [7], []]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_minus_zero_is_zero(form):
    X = form(np.array([[1.0], [2.0]]))
    (X.data if sparse.issparse(X) else X).reshape(-1)[:] = [-0.0, 0.0]
    found = quantile_points(X, 3)
    assert columns_of(found) == [[0]]
    assert not np.signbit(found.data).any()


def test_many_values_are_cut_at_equal_ranks_up_to_both_ends():
    X = np.random.default_rng(0).permutation(np.arange(1001.0))[:, None]
    (found,) = columns_of(quantile_points(X, 11))
    assert found == [100.0 * k for k in range(11)]


def test_a_frequent_value_leaves_the_other_bins_to_others():
    X = np.concatenate([np.zeros(900), np.arange(1.0, 101.0)])[:, None]
    (found,) = columns_of(quantile_points(X, 11))
    assert found == [0, *range(1, 101, 11)]


@pytest.mark.parametrize("n_rows", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_none_and_one_row(kind, n_rows):
    X = KINDS[kind](400)
    X = X.iloc[:n_rows] if kind == "frame" else X[:n_rows]
    found = quantile_points(X, MAX_BIN)
    assert found.shape[1] == X.shape[1]
    numbers = columns_of(found)[:3]
    assert all(len(column) <= n_rows for column in numbers)
    if kind != "sparse":
        assert all(len(column) == n_rows for column in numbers)


def test_absent_entries_and_nan_are_the_same():
    X = dense()
    seen = ~np.isnan(X)
    same = sparse.csr_matrix((X[seen], np.nonzero(seen)), shape=X.shape)
    everywhere = np.indices(X.shape).reshape(2, -1)
    with_nan = sparse.csr_matrix((X.reshape(-1), everywhere), shape=X.shape)
    expected = columns_of(quantile_points(X, MAX_BIN))
    assert columns_of(quantile_points(same, MAX_BIN)) == expected
    assert columns_of(quantile_points(with_nan, MAX_BIN)) == expected


def test_entries_that_are_there_twice_are_added_up():
    X = sparse.csr_matrix((np.ones(3), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    assert columns_of(quantile_points(X, MAX_BIN)) == [[2], [1]]


def test_negative_values_come_first():
    X = sparse.csr_matrix(np.array([[1.0], [-2.0], [-1e-30], [3e38], [-3e38], [-1.0]]))
    (found,) = columns_of(quantile_points(X, MAX_BIN))
    assert found == sorted(np.float32([1, -2, -1e-30, 3e38, -3e38, -1]).tolist())


def test_categories_have_a_bin_each_seen_or_not():
    found = columns_of(quantile_points(frame(), 2))
    assert found[-2:] == [[0, 1, 2, 3, 4], []]


@pytest.fixture(params=["all", "some rows", "some entries"])
def looked_at(request, monkeypatch):
    """What is looked at, in blocks that do not hold all columns."""
    most = 50 if request.param == "some rows" else 2**17
    monkeypatch.setattr(quantile_cuts, "MOST_ROWS", most)
    monkeypatch.setattr(quantile_cuts, "_VALUES_AT_ONCE", 2 * most)
    monkeypatch.setattr(quantile_cuts, "_ROWS_AT_ONCE", 64)
    if request.param == "some entries":
        monkeypatch.setattr(quantile_cuts, "MOST_ENTRIES", 500)
        monkeypatch.setattr(quantile_cuts, "FEWEST_ROWS", 40)


def test_of_wide_matrices_fewer_rows_are_looked_at(monkeypatch):
    """Every second row, and both ends of all."""
    monkeypatch.setattr(quantile_cuts, "MOST_VALUES", 30)
    monkeypatch.setattr(quantile_cuts, "FEWEST_ROWS", 10)
    X = np.repeat(np.arange(20.0)[:, None], 6, axis=1)
    found = columns_of(quantile_points(X, 20))
    assert found == [[*range(0, 20, 2), 19]] * 6


@pytest.mark.parametrize(
    ("fewest", "strides"),
    [(1, [1, 1, 3, 5]), (30, [1, 1, 2, 4]), (200, [1, 1, 1, 1])],
)
def test_of_very_many_entries_fewer_are_looked_at(fewest, strides, monkeypatch):
    """Of 70 in all the columns with 3 and 20 leave 47, which the others share."""
    monkeypatch.setattr(quantile_cuts, "MOST_ENTRIES", 70)
    monkeypatch.setattr(quantile_cuts, "FEWEST_ROWS", fewest)
    X = np.zeros((101, 4))
    for column, n in enumerate([3, 20, 60, 101]):
        X[:n, column] = np.arange(1, n + 1)
    found = columns_of(quantile_points(sparse.csr_matrix(X), 200))
    expected = [
        list(range(1, n + 1, stride)) for n, stride in zip([3, 20, 60, 101], strides, strict=True)
    ]
    assert found == expected


def test_many_small_shards_are_not_merged_one_by_one(monkeypatch):
    """What was found before would be sorted again with every one of them."""
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


def taken(X, begin, end):
    return X.iloc[begin:end] if hasattr(X, "iloc") else X[begin:end]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_on_disk_have_the_same_bins(kind, looked_at):
    X = KINDS[kind]()
    ends = np.array([0, 0, 7, 130, 130, 399, 400])
    shards = Matrix(
        np.diff(ends).tolist(), taken(X, 0, 0), lambda k: taken(X, ends[k], ends[k + 1])
    )
    expected = quantile_points(X, MAX_BIN)
    found = quantile_points(shards, MAX_BIN)
    assert columns_of(found) == columns_of(expected)
    assert max(np.diff(expected.tocsc().indptr)[:6]) == MAX_BIN
    other = quantile_points(taken(X, 0, 300), MAX_BIN)
    assert columns_of(other) != columns_of(expected)


@pytest.mark.parametrize("shares", [(400,), (150, 250), (0, 399, 1)])
@pytest.mark.parametrize("kind", KINDS)
def test_workers_share_their_bins(kind, shares, looked_at):
    X = KINDS[kind]()
    ends = np.concatenate([[0], np.cumsum(shares)])

    def work(them):
        own = taken(X, ends[them.rank], ends[them.rank + 1])
        return quantile_points(own, MAX_BIN, them)

    expected = columns_of(quantile_points(X, MAX_BIN))
    assert [columns_of(found) for found in together(len(shares), work)] == [expected] * len(shares)


@pytest.mark.parametrize("kind", KINDS)
def test_rare_values_are_not_lost(kind, looked_at):
    found = columns_of(quantile_points(KINDS[kind](), MAX_BIN))
    assert found[5 if kind == "sparse" else 2] == ([-2.5] if kind == "sparse" else [0.0, 1.0])
