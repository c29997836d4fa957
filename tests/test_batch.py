"""Batches: offsets, rows, and errors that name the instance and the position."""

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.features.matrix import Matrix


def test_counts_and_places():
    batch = Batch.from_lengths([2, 0, 3])
    assert (batch.n_instances, batch.n_rows) == (3, 5)
    assert batch.lengths.tolist() == [2, 0, 3]
    assert batch.positions.tolist() == [0, 1, 0, 1, 2]
    assert batch.instance_of_row.tolist() == [0, 0, 2, 2, 2]
    assert [batch.slice_of(i) for i in range(3)] == [slice(0, 2), slice(2, 2), slice(2, 5)]
    assert batch.place(1) == "instance 0, position 1"
    assert batch.place(4) == "instance 2, position 2"
    with pytest.raises(ValueError, match="row 5: there are 5 rows"):
        batch.place(5)
    batch = Batch.from_lengths([0, 2, 0, 0, 1, 0])
    assert [batch.locate(row) for row in range(3)] == [(1, 0), (1, 1), (4, 0)]


def test_batches_without_rows():
    for lengths in ([], [0], [0, 0]):
        batch = Batch.from_lengths(lengths, parents=[], edge_types=[])
        assert (batch.n_instances, batch.n_rows) == (len(lengths), 0)
        assert (batch.parents.dtype, batch.edge_types.dtype) == (np.int64, np.int32)


def test_arrays_are_normalised_and_copied_only_where_needed():
    for dtype in (np.uint8, np.int16, np.uint32, np.int64):
        values = np.zeros(6, dtype=dtype)[::2]
        batch = Batch(np.array([0, 3], dtype=dtype), parents=values, edge_types=values)
        assert batch.offsets.dtype == batch.parents.dtype == np.int64
        assert batch.edge_types.dtype == np.int32
        assert batch.parents.flags.c_contiguous
    offsets, parents, X = np.array([0, 2]), np.array([-1, 0]), object()
    batch = Batch(offsets, parents=parents, X=X)
    assert batch.offsets is offsets
    assert batch.parents is parents
    assert batch.X is X


def test_bad_arrays_are_rejected():
    for arguments, message in (
        ({"offsets": []}, "start at 0"),
        ({"offsets": [1, 3]}, "start at 0"),
        ({"offsets": [0, 4, 3, 5]}, "instance 1: offsets fall from 4 to 3"),
        ({"offsets": [0.0, 3.0]}, "offsets has dtype float64"),
        ({"offsets": [False, True]}, "offsets has dtype bool"),
        ({"offsets": np.array([0, 3], dtype=object)}, "offsets has dtype object"),
        ({"offsets": [[0, 3]]}, "one axis"),
        ({"offsets": [0, 3], "parents": [-1, 0]}, "parents has 2 entries .* 3 rows"),
        ({"offsets": [0, 2], "parents": [-1.0, 0.0]}, "parents has dtype float64"),
        ({"offsets": [0, 2], "edge_types": [True, False]}, "edge_types has dtype bool"),
        ({"offsets": [0, 2], "edge_types": [0, 2**40]}, "beyond 32 bits"),
    ):
        with pytest.raises(ValueError, match=message):
            Batch(**arguments)
    for lengths, message in (
        ([2, -1], "instance 1: length -1"),
        ([1.5], "dtype float64"),
        ([[1]], "one axis"),
    ):
        with pytest.raises(ValueError, match=message):
            Batch.from_lengths(lengths)


def test_rows_and_instances_out_of_range():
    batch = Batch.from_lengths([2])
    for row in (-1, 2):
        with pytest.raises(ValueError, match=f"row {row}"):
            batch.locate(row)
    for instance in (-1, 1):
        with pytest.raises(ValueError, match=f"instance {instance}"):
            batch.slice_of(instance)


def test_check_labels_names_bad_labels():
    batch = Batch.from_lengths([1, 2, 1])
    for labels, message in (
        ([0, 1, 3, 0], "instance 1, position 1: label code 3 .* 3 labels"),
        ([0, -1, 0, 0], "instance 1, position 0: label code -1"),
        ([0, 1, 2], "labels has 3 entries"),
        ([0.0, 1.0, 2.0, 0.0], "labels has dtype float64"),
    ):
        with pytest.raises(ValueError, match=message):
            batch.check_labels(labels, 3)
    assert batch.check_labels([0, 1, 2, 0], 3).dtype == np.int64


def chunked(lengths, chunks):
    """A batch whose X, the numbers of its rows, comes in chunks of so many rows."""
    X = np.arange(sum(lengths), dtype=np.float32)[:, None]
    borders = np.cumsum([0, *chunks])
    matrix = Matrix(chunks, X[:0], lambda k: X[borders[k] : borders[k + 1]])
    rows = np.arange(sum(lengths))
    return Batch.from_lengths(lengths, edge_types=rows, X=matrix)


def test_chunks_of_a_batch_have_every_instance_once():
    for lengths, chunks in (
        ([2, 3, 1], [5, 1]),
        ([0, 2, 0, 3, 0], [2, 3]),
        ([0, 0], [0]),
        ([2, 0], [2, 0]),
        ([3], [0, 3, 0]),
        ([1, 1, 1], [1, 1, 1]),
    ):
        parts = list(chunked(lengths, chunks).loaded())
        assert [length for part in parts for length in part.lengths] == lengths
        assert [part.n_rows for part in parts] == chunks
        for part in parts:
            assert part.X[:, 0].tolist() == part.edge_types.tolist()
    batch = Batch.from_lengths([2, 1], X=np.zeros((3, 1)))
    assert list(batch.loaded()) == [batch]
