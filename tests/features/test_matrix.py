"""Feature matrices: stacking instances of every kind, and the first infinite number."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from crfx.features import matrix as matrices
from crfx.features.columns import Columns

ROWS_OF_A_BLOCK = 65536
"""Dense arrays are searched block by block."""


def make_frame(letters, numbers, categories="abc"):
    return pd.DataFrame(
        {
            "letter": pd.Categorical(list(letters), categories=list(categories)),
            "number": np.array(numbers, dtype=np.float64),
        }
    )


# Arrays.


def test_stack_arrays_and_lists():
    parts = [np.array([[1, 2], [3, 4.0]]), np.zeros((0, 2)), [[5.0, np.nan]]]
    X, lengths = matrices.stack(parts)
    np.testing.assert_array_equal(X, [[1, 2], [3, 4], [5, np.nan]])
    assert lengths == [2, 0, 1]
    for dtype in (np.float16, np.float32, np.float64):
        assert matrices.stack([np.zeros((1, 2), dtype)])[0].dtype == dtype
        assert matrices.stacked(np.zeros((1, 2), dtype)).dtype == dtype
    for dtype in (bool, np.int8, np.int64, np.uint16):
        X = matrices.stacked(np.ones((2, 2), dtype))
        assert X.dtype == np.float32
        np.testing.assert_array_equal(X, 1)


MASKED = np.ma.masked_array(np.zeros((1, 2)), [[True, False]])
BAD = [
    # The other instances, a bad one, and what is wrong with it.
    ("dense", np.zeros((1, 2, 2)), r"X has shape \(1, 2, 2\)"),
    ("dense", np.float64(3), r"X has shape \(\)"),
    ("dense", np.zeros((1, 3)), "X has 3 features, instance 0 has 2"),
    ("dense", np.array([[None, 1]], dtype=object), "X has dtype object"),
    ("dense", np.zeros((1, 2), complex), "X has dtype complex128"),
    ("dense", [[1, 2], [3]], "X has rows of unequal lengths"),
    ("dense", MASKED, "X is a masked array"),
    ("dense", make_frame("ab", [1, 2]), "instance 0: X is no data frame"),
    ("sparse", sparse.csr_array(np.zeros((1, 3))), "X has 3 features"),
    ("sparse", sparse.coo_array(np.zeros(3)), r"X has shape \(3,\)"),
    ("sparse", sparse.csr_array(np.zeros((1, 2), complex)), "X has dtype complex128"),
    ("sparse", np.zeros(3), r"X has shape \(3,\)"),
    ("sparse", np.zeros((1, 2)), "X is dense, but others are sparse"),
    ("frame", np.zeros((2, 2)), "X is no data frame"),
    ("frame", make_frame("a", [1]).rename(columns={"number": "size"}), "its columns differ"),
    ("frame", make_frame("a", [1])[["number", "letter"]], "its columns differ"),
    ("frame", make_frame("ab", [1, 2], "ab"), "its column types"),
    ("frame", make_frame("a", [1]).astype({"number": np.float32}), "its column types"),
]


def test_errors_name_the_instance():
    others = {
        "dense": np.zeros((2, 2)),
        "sparse": sparse.csr_matrix((2, 2)),
        "frame": make_frame("ab", [1, 2]),
    }
    for kind, bad, message in BAD:
        place = "" if message.startswith("instance") else "instance 1: "
        with pytest.raises(ValueError, match=place + message):
            matrices.stack([others[kind], bad, others[kind]])
    for bad, message in (
        (np.zeros(3), r"^X has shape \(3,\)"),
        (np.array([["a"]]), "^X has dtype <U1: pass numbers, or a data frame"),
        (sparse.coo_array(np.zeros(3)), r"^X has shape \(3,\)"),
        (sparse.csr_array(np.zeros((1, 2), complex)), "^X has dtype complex128"),
        ([[1, 2], [3]], "^X has rows of unequal lengths"),
    ):
        with pytest.raises(ValueError, match=message):
            matrices.stacked(bad)


# CSR.


def test_stack_sparse_matrices():
    """Any format; entries that are not stored stay so."""
    dense = np.array([[0, 1.0], [2, 0]])
    parts = sparse.csr_matrix(dense), sparse.csc_array(dense[:1]), sparse.coo_matrix(dense[1:])
    X, lengths = matrices.stack([*parts, sparse.csr_array((0, 2))])
    assert X.format == "csr"
    assert X.nnz == 4
    np.testing.assert_array_equal(X.toarray(), [[0, 1], [2, 0], [0, 1], [2, 0]])
    assert lengths == [2, 1, 1, 0]
    for kind in (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix):
        X = matrices.stacked(kind(dense))
        assert X.format == "csr"
        np.testing.assert_array_equal(X.toarray(), dense)


# Data frames.


def test_stack_frames():
    """Categories stay categories, rows are counted through, and an instance may be empty."""
    X, lengths = matrices.stack(
        [make_frame("ab", [1, 2]), make_frame("", []), make_frame("ca", [3, 4], "cba")]
    )
    assert lengths == [2, 0, 2]
    assert list(X["letter"]) == ["a", "b", "c", "a"]
    assert list(X["letter"].cat.categories) == ["a", "b", "c"]
    assert list(X["number"]) == [1, 2, 3, 4]
    assert list(X.index) == [0, 1, 2, 3]
    assert matrices.stacked(X) is X


def test_what_a_frame_is():
    assert matrices.is_frame(make_frame("a", [1]))
    assert not matrices.is_frame(np.zeros((1, 2)))
    assert not matrices.is_frame(sparse.csr_matrix((1, 2)))
    assert not matrices.is_frame(pd.Series([1.0]))
    assert Columns.of(make_frame("a", [1])).names == ["letter", "number"]
    assert Columns.of(pd.DataFrame([[1, 2]])).names == ["0", "1"]
    assert Columns.of(np.zeros((1, 2))) == Columns(2)


def test_take_rows():
    X, rows = np.arange(12.0).reshape(4, 3), np.array([3, 0, 0])
    for matrix in (X, sparse.csr_matrix(X), pd.DataFrame(X, index=list("wxyz"))):
        result = matrices.take_rows(matrix, rows)
        result = result.toarray() if sparse.issparse(result) else np.asarray(result)
        np.testing.assert_array_equal(result, X[rows])
        assert matrices.take_rows(matrix, rows[:0]).shape == (0, 3)


# Infinite numbers.


@pytest.mark.parametrize(
    ("dtype", "bad", "place"),
    [(np.float16, np.inf, (0, 0)), (np.float32, -np.inf, (1, 2)), (np.float64, np.inf, (4, 1))],
)
def test_first_infinite_of_an_array(dtype, bad, place):
    """NaN is a missing value, before or after it; a later infinity is not the first."""
    X = np.ones((5, 3), dtype)
    X[place] = bad
    X[4, 2] = -bad  # their sum is no infinity
    assert matrices.first_infinite(X) == place
    X[2, 0] = X[0, 1] = np.nan
    assert matrices.first_infinite(X) == place
    assert matrices.first_infinite(sparse.csr_array(X.astype(np.float64))) == place
    # The column is that of the matrix, not the place among what is stored; zeros may be stored.
    csr = sparse.csr_array(np.array([[0, 1, 0, 2], [0, 0, 0, np.inf], [np.inf, 0, 0, 0]]))
    csr.data[0] = 0
    assert matrices.first_infinite(csr) == (1, 3)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_first_infinite_is_none_for_large_numbers(kind):
    """Large numbers, whose sum is too large, and NaN alone are none; nor is nothing."""
    for dtype in (np.float32, np.float64):
        X = np.full((5, 3), np.finfo(np.float32).max, dtype)
        X[1], X[2, 0] = -X[1], np.nan
        for finite in (X, X[:0], np.zeros((3, 2), dtype), np.ones((3, 2), dtype=int)):
            assert matrices.first_infinite(kind(finite)) is None
    X[1, 1] = -1e39  # XGBoost would refuse it, without saying where it is
    assert matrices.first_infinite(kind(X)) == (1, 1)


def test_first_infinite_beyond_the_first_block():
    n = ROWS_OF_A_BLOCK
    for row in (0, n - 1, n, 2 * n + 3):
        X = np.zeros((2 * n + 5, 2), dtype=np.float32)
        X[row, 1] = X[-1, 0] = np.inf
        assert matrices.first_infinite(X) == (row, 1)


def test_first_infinite_of_a_frame():
    """The column is that of the frame, with those that hold no numbers counted; rows go first."""
    frame = make_frame("abc", [1, np.inf, -np.inf])
    assert matrices.first_infinite(frame) == (1, 1)
    assert matrices.first_infinite(make_frame("abc", [1, np.nan, 1e30])) is None
    assert matrices.first_infinite(frame[["letter"]]) is None
    assert matrices.first_infinite(frame.iloc[:1]) is None
    assert matrices.first_infinite(frame.iloc[:0]) is None
    frame["whole"], frame["flag"], frame["more"] = [1, 2, 3], True, [np.inf, 1, 1]
    assert matrices.first_infinite(frame) == (0, 4)
    own_missing = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "real": pd.array([1.5, None, np.inf], dtype="Float64"),
        }
    )
    assert matrices.first_infinite(own_missing) == (2, 1)
    assert matrices.first_infinite(own_missing.iloc[:2]) is None
