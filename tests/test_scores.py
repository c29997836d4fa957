"""Scores: one dtype, checked shapes, and who shares an edge table."""

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.scores import Scores, table_index

NODE = np.zeros((4, 3))


def test_tables_take_the_dtype_of_node():
    node = NODE.astype(np.float32)
    scores = Scores(node, edge=np.zeros((3, 3)), start=[0, 1, 2], end=np.zeros(3, dtype=np.int64))
    assert scores.node is node
    assert {t.dtype for t in (scores.edge, scores.start, scores.end)} == {np.dtype(np.float32)}
    assert (scores.dtype, scores.n_rows, scores.n_labels) == (np.float32, 4, 3)


def test_tables_are_made_contiguous_and_cast():
    scores = Scores(np.zeros((3, 4)).T, edge=np.arange(9.0).reshape(3, 3).T)
    assert scores.node.flags.c_contiguous
    assert scores.edge.flags.c_contiguous
    assert scores.edge[0, 1] == 3.0
    scores = Scores(NODE.astype(np.float32), edge=np.full((3, 3), -np.inf))
    assert np.isneginf(scores.edge).all()
    # A finite score does not become a constraint.
    with pytest.raises(ValueError, match="edge holds scores that do not fit into float32"):
        Scores(NODE.astype(np.float32), edge=np.full((3, 3), -1e300))


def test_bad_tables_are_rejected():
    for arguments, message in (
        ({"node": NODE.astype(int)}, "node scores have dtype int64"),
        ({"node": NODE.astype(np.float16)}, "node scores have dtype float16"),
        ({"node": NODE.astype(">f8")}, "node scores have dtype >f8"),
        ({"node": NODE[0]}, r"shape \(3,\)"),
        ({"node": NODE[:, :0]}, r"shape \(4, 0\)"),
        ({"node": NODE, "edge": np.zeros((2, 3))}, r"shape \(2, 3\).*3 entries"),
        ({"node": NODE, "edge": np.zeros(3)}, r"shape \(3,\)"),
        ({"node": NODE, "edge": np.zeros((3, 3), dtype=complex)}, "edge scores have dtype complex"),
        ({"node": NODE, "edge": np.zeros((3, 3), dtype=object)}, "edge scores have dtype object"),
        ({"node": NODE, "edge": [["a"] * 3] * 3}, "edge scores have dtype <U1"),
        ({"node": NODE, "start": np.zeros(2)}, r"start has shape \(2,\)"),
        ({"node": NODE, "end": np.zeros((1, 3))}, r"end has shape \(1, 3\)"),
        ({"node": NODE, "start": [True] * 3}, "start scores have dtype bool"),
    ):
        with pytest.raises(ValueError, match=message):
            Scores(**arguments)


def test_sharing_follows_from_the_shape():
    for shape, order, typed, expected in (
        (None, 1, False, "none"),
        (None, 2, True, "none"),
        ((3, 3), 1, False, "shared"),
        ((3, 3, 3), 2, False, "shared"),
        ((2, 3, 3), 1, True, "typed"),
        ((3, 3, 3), 1, True, "typed"),
        ((4, 3, 3), 1, False, "each"),
        ((4, 3, 3, 3), 2, False, "each"),
    ):
        edge = None if shape is None else np.zeros(shape)
        assert Scores(NODE, edge=edge).sharing(order, typed=typed) == expected
    rows, types = np.array([1, 3]), np.array([5, 6, 7, 8])
    assert table_index("shared", rows, None) == ()
    assert table_index("typed", rows, types)[0].tolist() == [6, 8]
    assert table_index("each", rows, None)[0].tolist() == [1, 3]
    for shape, order, typed, message in (
        ((3, 3), 2, False, r"with order 2 and 3 labels it must be \(3, 3, 3\)"),
        ((5, 5, 3, 3), 1, False, "with order 1"),
        ((2, 3, 3), 2, False, "with order 2"),
        ((3, 3), 1, True, "one table for all edges"),
        ((2, 3, 3), 1, False, "2 tables for 4 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            Scores(NODE, edge=np.zeros(shape)).sharing(order, typed=typed)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_check_finite_names_scores_that_are_no_numbers(value):
    batch = Batch.from_lengths([1, 3])
    node, edge, ends = NODE.copy(), np.zeros((4, 3, 3)), np.zeros(3)
    edge[0] = np.nan  # of a row without an edge
    Scores(node, edge, ends, ends).check_finite(batch, np.array([2, 3]))
    node[3, 1] = edge[2, 0, 2] = ends[1] = value
    with pytest.raises(ValueError, match=f"instance 1, position 2: the node .* label 1 is {value}"):
        Scores(node).check_finite(batch)
    with pytest.raises(ValueError, match=f"instance 1, position 1: the edge .* 0, 2 is {value}"):
        Scores(NODE, edge).check_finite(batch, np.array([2, 3]))
    with pytest.raises(ValueError, match=rf"edge\[0, 2\] is {value}"):
        Scores(NODE, edge[2]).check_finite(batch)
    with pytest.raises(ValueError, match=rf"end\[1\] is {value}"):
        Scores(NODE, end=ends).check_finite(batch)
