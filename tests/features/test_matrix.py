"""Feature matrices: stacking instances of every kind, and the first infinite number."""

import numpy as np
import pytest
from scipy import sparse

from crfx.features import matrix as matrices
from crfx.features.columns import Columns

LARGEST = np.finfo(np.float32).max
ROWS_OF_A_BLOCK = 65536
"""Dense arrays are searched block by block."""


def make_frame(letters, numbers, categories="abc"):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(
        {
            "letter": pandas.Categorical(list(letters), categories=list(categories)),
            "number": np.array(numbers, dtype=np.float64),
        }
    )


# Arrays.


def test_stacking_arrays():
    parts = [np.array([[1, 2], [3, 4.0]]), np.zeros((0, 2)), np.array([[5.0, np.nan]])]
    X, lengths = matrices.stack(parts)
    np.testing.assert_array_equal(X, [[1, 2], [3, 4], [5, np.nan]])
    assert lengths == [2, 0, 1]


def test_lists_are_arrays_too():
    X, lengths = matrices.stack([[[1, 2]], [[3, 4], [5, 6]]])
    np.testing.assert_array_equal(X, [[1, 2], [3, 4], [5, 6]])
    assert lengths == [1, 2]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_keep_their_width(dtype):
    assert matrices.stack([np.zeros((1, 2), dtype)])[0].dtype == dtype
    assert matrices.stacked(np.zeros((1, 2), dtype)).dtype == dtype


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.uint16])
def test_whole_numbers_become_floats(dtype):
    X = matrices.stacked(np.ones((2, 2), dtype))
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, 1)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros(3), r"instance 1: X has shape \(3,\)"),
        (np.zeros((1, 2, 2)), r"instance 1: X has shape \(1, 2, 2\)"),
        (np.float64(3), r"instance 1: X has shape \(\)"),
        (np.zeros((1, 3)), "instance 1: X has 3 features, instance 0 has 2"),
        (np.array([["a", "b"]]), "instance 1: X has dtype <U1"),
        (np.array([[None, 1]], dtype=object), "instance 1: X has dtype object"),
        (np.zeros((1, 2), complex), "instance 1: X has dtype complex128"),
        ([[1, 2], [3]], "instance 1: X has rows of unequal lengths"),
        (np.ma.masked_array(np.zeros((1, 2)), [[True, False]]), "instance 1: X is a masked array"),
    ],
)
def test_errors_name_the_instance(bad, message):
    with pytest.raises(ValueError, match=message):
        matrices.stack([np.zeros((2, 2)), bad, np.zeros((1, 2))])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (sparse.csr_array(np.zeros((1, 3))), "instance 1: X has 3 features"),
        (sparse.coo_array(np.zeros(3)), r"instance 1: X has shape \(3,\)"),
        (sparse.csr_array(np.zeros((1, 2), complex)), "instance 1: X has dtype complex128"),
        (np.zeros(3), r"instance 1: X has shape \(3,\)"),
        (np.zeros((1, 2)), "instance 1: X is dense, but others are sparse"),
    ],
)
def test_errors_name_the_instance_among_sparse_ones(bad, message):
    with pytest.raises(ValueError, match=message):
        matrices.stack([sparse.csr_matrix((2, 2)), bad, sparse.csr_matrix((1, 2))])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros(3), r"^X has shape \(3,\)"),
        (np.array([["a"]]), "^X has dtype <U1: pass numbers, or a data frame"),
        (sparse.coo_array(np.zeros(3)), r"^X has shape \(3,\)"),
        (sparse.csr_array(np.zeros((1, 2), complex)), "^X has dtype complex128"),
        ([[1, 2], [3]], "^X has rows of unequal lengths"),
    ],
)
def test_errors_of_one_stacked_matrix(bad, message):
    with pytest.raises(ValueError, match=message):
        matrices.stacked(bad)


# CSR.


def test_stacking_sparse_matrices():
    """Any format; entries that are not stored stay so."""
    dense = np.array([[0, 1.0], [2, 0]])
    parts = sparse.csr_matrix(dense), sparse.csc_array(dense[:1]), sparse.coo_matrix(dense[1:])
    X, lengths = matrices.stack([*parts, sparse.csr_array((0, 2))])
    assert X.format == "csr"
    assert X.nnz == 4
    np.testing.assert_array_equal(X.toarray(), [[0, 1], [2, 0], [0, 1], [2, 0]])
    assert lengths == [2, 1, 1, 0]


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_one_sparse_matrix_becomes_csr(kind):
    X = matrices.stacked(kind(np.array([[0, 1.0], [2, 0]])))
    assert X.format == "csr"
    np.testing.assert_array_equal(X.toarray(), [[0, 1], [2, 0]])


# Data frames.


def test_stacking_frames():
    """Categories stay categories, rows are counted through, and an instance may be empty."""
    X, lengths = matrices.stack(
        [make_frame("ab", [1, 2]), make_frame("", []), make_frame("c", [3])]
    )
    assert lengths == [2, 0, 1]
    assert list(X["letter"]) == ["a", "b", "c"]
    assert list(X["letter"].cat.categories) == ["a", "b", "c"]
    assert list(X["number"]) == [1, 2, 3]
    assert list(X.index) == [0, 1, 2]
    assert matrices.stacked(X) is X


def test_categories_in_another_order_keep_their_meaning():
    X, _ = matrices.stack([make_frame("ab", [1, 2]), make_frame("ab", [3, 4], "cba")])
    assert list(X["letter"]) == ["a", "b", "a", "b"]


def test_frames_that_differ():
    first = make_frame("ab", [1, 2])
    with pytest.raises(ValueError, match="instance 1: its columns differ"):
        matrices.stack([first, first.rename(columns={"number": "size"})])
    with pytest.raises(ValueError, match="instance 2: its columns differ"):
        matrices.stack([first, first, first[["number", "letter"]]])
    with pytest.raises(ValueError, match="instance 1: its column types"):
        matrices.stack([first, make_frame("ab", [1, 2], "ab")])
    with pytest.raises(ValueError, match="instance 1: its column types"):
        matrices.stack([first, first.astype({"number": np.float32})])


@pytest.mark.parametrize("odd", [0, 1])
def test_frames_among_arrays(odd):
    instances = [make_frame("ab", [1, 2]), make_frame("ab", [1, 2])]
    instances[odd] = np.zeros((2, 2))
    with pytest.raises(ValueError, match=f"instance {odd}: X is no data frame"):
        matrices.stack(instances)


def test_what_a_frame_is():
    pandas = pytest.importorskip("pandas")
    assert matrices.is_frame(make_frame("a", [1]))
    assert not matrices.is_frame(np.zeros((1, 2)))
    assert not matrices.is_frame(sparse.csr_matrix((1, 2)))
    assert not matrices.is_frame(pandas.Series([1.0]))
    assert Columns.of(make_frame("a", [1])).names == ["letter", "number"]
    assert Columns.of(pandas.DataFrame([[1, 2]])).names == ["0", "1"]
    assert Columns.of(np.zeros((1, 2))) == Columns(2)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, "frame"])
def test_taking_rows(kind):
    X = np.arange(12.0).reshape(4, 3)
    given = X if kind != "frame" else pytest.importorskip("pandas").DataFrame(X, index=list("wxyz"))
    if callable(kind):
        given = kind(X)
    rows = np.array([3, 0, 0])
    found = matrices.take_rows(given, rows)
    found = found.toarray() if sparse.issparse(found) else np.asarray(found)
    np.testing.assert_array_equal(found, X[rows])
    assert matrices.take_rows(given, rows[:0]).shape == (0, 3)


# Infinite numbers.


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (1, 2), (4, 1)])
def test_first_infinite_of_an_array(dtype, bad, place):
    """NaN is a missing value, before or after it; a later infinity is not the first."""
    X = np.ones((5, 3), dtype)
    X[place] = bad
    X[4, 2] = bad
    assert matrices.first_infinite(X) == place
    X[2, 0] = X[0, 1] = np.nan
    assert matrices.first_infinite(X) == place
    assert matrices.first_infinite(sparse.csr_array(X.astype(np.float64))) == place


def test_infinities_that_cancel():
    assert matrices.first_infinite(np.array([[1, np.inf], [-np.inf, 1]])) == (0, 1)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_infinite(kind, dtype):
    """Large numbers, whose sum is too large, and NaN alone are none; nor is nothing."""
    X = np.full((5, 3), LARGEST, dtype)
    X[1], X[2, 0] = -LARGEST, np.nan
    assert matrices.first_infinite(kind(X)) is None
    assert matrices.first_infinite(kind(X[:0])) is None
    assert matrices.first_infinite(kind(np.zeros((3, 2), dtype))) is None
    assert matrices.first_infinite(kind(np.ones((3, 2), dtype=int))) is None


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_numbers_beyond_float32_are_infinite_to_trees(kind):
    """XGBoost would refuse them, without saying where they are."""
    X = np.ones((3, 2))
    X[1, 1] = -1e39
    assert matrices.first_infinite(kind(X)) == (1, 1)


@pytest.mark.parametrize("row", [0, ROWS_OF_A_BLOCK - 1, ROWS_OF_A_BLOCK, 2 * ROWS_OF_A_BLOCK + 3])
def test_first_infinite_beyond_the_first_block(row):
    X = np.zeros((2 * ROWS_OF_A_BLOCK + 5, 2), dtype=np.float32)
    X[row, 1] = X[-1, 0] = np.inf
    assert matrices.first_infinite(X) == (row, 1)


def test_first_infinite_of_csr():
    """The column is that of the matrix, not the place among what is stored; zeros may be stored."""
    X = sparse.csr_array(np.array([[0, 1, 0, 2], [0, 0, 0, np.inf], [np.inf, 0, 0, 0]]))
    X.data[0] = 0
    assert matrices.first_infinite(X) == (1, 3)


def test_first_infinite_of_a_frame():
    """The column is that of the frame, with those that hold no numbers counted."""
    frame = make_frame("abc", [1, np.inf, -np.inf])
    assert matrices.first_infinite(frame) == (1, 1)
    assert matrices.first_infinite(make_frame("abc", [1, np.nan, 1e30])) is None
    assert matrices.first_infinite(frame[["letter"]]) is None
    assert matrices.first_infinite(frame.iloc[:1]) is None
    assert matrices.first_infinite(frame.iloc[:0]) is None


def test_the_first_row_of_a_frame_comes_before_the_first_column():
    frame = make_frame("abc", [1, np.inf, 1])
    frame["whole"] = [1, 2, 3]
    frame["flag"] = True
    frame["more"] = [np.inf, 1, 1]
    assert matrices.first_infinite(frame) == (0, 4)


def test_frames_with_missing_values_of_their_own():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "whole": pandas.array([1, None, 3], dtype="Int64"),
            "real": pandas.array([1.5, None, np.inf], dtype="Float64"),
        }
    )
    assert matrices.first_infinite(frame) == (2, 1)
    assert matrices.first_infinite(frame.iloc[:2]) is None
