"""Conjunctions of columns: their values, the pairs that occur, columns that are the same."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from crfx.features import conjunctions
from crfx.features.conjunctions import Conjunctions, canonical, column_keys, pairs_in, readable

RANDOM = np.random.default_rng(0)
DENSE = (RANDOM.integers(-3, 4, (40, 7)) * (RANDOM.random((40, 7)) < 0.6)).astype(np.float32)
X = sparse.csr_matrix(DENSE)
SETS = [(0, 3), (1, 2, 5), (4, 6), (0, 1, 2, 3)]


def untidy(matrix):
    """The same numbers: rows unsorted, entries doubled (in halves), zeros stored."""
    parts = []
    for row in range(matrix.shape[0]):
        columns = np.arange(matrix.shape[1])[::-1]
        parts.append((np.r_[columns, columns], np.r_[matrix[row, ::-1], matrix[row, ::-1]] / 2))
    indices, data = (np.concatenate(each) for each in zip(*parts, strict=True))
    starts = np.arange(matrix.shape[0] + 1) * 2 * matrix.shape[1]
    return sparse.csr_matrix((data.astype(np.float32), indices, starts), shape=matrix.shape)


@pytest.mark.parametrize("matrix", [X, untidy(DENSE)], ids=["canonical", "untidy"])
def test_values_are_products(matrix, monkeypatch):
    before = matrix.copy()
    result = Conjunctions.of(SETS).of_matrix(matrix)
    expected = np.column_stack([DENSE[:, list(columns)].prod(axis=1) for columns in SETS])
    np.testing.assert_array_equal(result.toarray(), expected)
    assert result.nnz == np.count_nonzero(expected) > 0
    wide = Conjunctions.of(SETS).widened(matrix).toarray()
    np.testing.assert_array_equal(wide, np.column_stack([DENSE, expected]))
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(matrix, name), getattr(before, name))
    for rows in (0, 1):
        empty = Conjunctions.of([(0, 1), (2, 4)]).of_matrix(sparse.csr_matrix((rows, 5)))
        assert (empty.shape, empty.nnz) == ((rows, 2), 0)
    for most in (1, 10, 30):  # in parts
        monkeypatch.setattr(conjunctions, "MOST_AT_ONCE", most)
        result = Conjunctions.of(SETS).of_matrix(matrix)
        np.testing.assert_array_equal(result.toarray(), expected)
        assert Conjunctions.of([]).of_matrix(matrix).shape == (40, 0)


def test_canonical_is_without_doubles_and_zeros():
    matrix = untidy(DENSE)
    assert matrix.nnz == 2 * DENSE.size
    tidy = canonical(matrix)
    np.testing.assert_array_equal(tidy.toarray(), DENSE)
    assert tidy.nnz == np.count_nonzero(DENSE)
    assert tidy.has_canonical_format
    assert canonical(tidy) is tidy
    assert matrix.nnz == 2 * DENSE.size
    twice = np.column_stack([DENSE, DENSE[:, 2], 2 * DENSE[:, 2], DENSE[:, 2] != 0])
    keys = column_keys(canonical(sparse.csr_matrix(twice.astype(np.float32))))
    assert keys[7] == keys[2]  # others are told apart
    assert len(set(keys.tolist())) == 9


def test_ones_of_a_byte_add_up():
    """Names are ones of int8; 200 times the same at a position is 200."""
    indices = np.array([0] * 200 + [1] * 150 + [2])
    names = sparse.csr_matrix((np.ones(351, np.int8), indices, [0, 351]), shape=(1, 3))
    np.testing.assert_array_equal(canonical(names).toarray(), [[200, 150, 1]])
    result = Conjunctions.of([(0, 1), (1, 2)]).of_matrix(names)
    np.testing.assert_array_equal(result.toarray(), [[30_000, 150]])
    bytes_ = sparse.csr_matrix(np.array([[100, 100]], np.int8))
    np.testing.assert_array_equal(pairs_in(bytes_, np.array([0])).values, [10_000])


def test_sets_are_kept_joined_taken_and_named():
    some = Conjunctions.of([(3, 0), (5, 1, 2)])
    assert some.sets() == [(0, 3), (1, 2, 5)]
    both = some.joined(Conjunctions.of([(6, 4)]))
    assert both.sets() == [(0, 3), (1, 2, 5), (4, 6)]
    assert both.take(np.array([2, 0])).sets() == [(4, 6), (0, 3)]
    assert len(Conjunctions.of([]).joined(some)) == 2
    assert readable([(0, 2)], ["a", "b", "c"]) == [("a", "c")]
    assert readable([(0, 2)], None) == [(0, 2)]


def test_pairs_are_all_that_occur_at_the_rows():
    rows = np.array([7, 3, 20, 11])
    pairs = pairs_in(X, rows)
    places = pairs.rows, pairs.left[pairs.which], pairs.right[pairs.which]
    pair_values = dict(zip(zip(*places, strict=True), pairs.values, strict=True))
    expected = {
        (row, left, right): DENSE[row, left] * DENSE[row, right]
        for row in rows
        for left, right in combinations(range(7), 2)
        if DENSE[row, left] and DENSE[row, right]
    }
    assert pair_values == expected
    assert len(pairs.which) == len(expected)
    assert len(set(zip(pairs.left, pairs.right, strict=True))) == len(pairs.left)


def test_the_first_rows_count_where_there_are_too_many_pairs():
    rows = np.array([7, 3, 20, 11])
    n_first = len(pairs_in(X, rows[:1]).which)
    assert set(pairs_in(X, rows, most=n_first).rows) == {7}
    assert set(pairs_in(X, rows, most=n_first + 1).rows) == {7, 3}
    assert len(pairs_in(sparse.csr_matrix((3, 4)), np.arange(3)).which) == 0
    # A row whose pairs alone are more than there may be is left out.
    wide = sparse.csr_matrix(np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], np.float32))
    result = pairs_in(wide, np.array([0, 1]), most=5)
    assert list(zip(result.left.tolist(), result.right.tolist(), strict=True)) == [(0, 1)]
    assert result.rows.tolist() == [1]
