"""A matrix that stays on disk: its chunks, changed and cut when they are read."""

import numpy as np
import pytest
from scipy import sparse

from crfx.features.matrix import Matrix, is_sparse, take_rows

WHOLE = np.arange(24, dtype=np.float32).reshape(8, 3)
LENGTHS = [3, 0, 4, 1]


def in_chunks(whole=WHOLE, read=None, names=()):
    borders = np.cumsum([0, *LENGTHS])

    def load(number):
        if read is not None:
            read.append(number)
        return whole[borders[number] : borders[number + 1]]

    return Matrix(LENGTHS, whole[:0], load, names)


def joined(matrix):
    return np.concatenate([np.asarray(chunk) for _, chunk in matrix.chunks()])


def test_chunks_lie_one_after_the_other():
    matrix = in_chunks()
    assert matrix.shape == (8, 3)
    assert len(matrix) == 8
    borders = [(rows.start, rows.stop) for rows, _ in matrix.chunks()]
    assert borders == [(0, 3), (3, 3), (3, 7), (7, 8)]
    assert np.array_equal(joined(matrix), WHOLE)


def test_changes_come_when_a_chunk_is_read():
    read = []
    wider = in_chunks(read=read).mapped(lambda chunk: np.hstack([chunk, chunk[:, :1]]))
    assert read == []
    assert wider.shape == (8, 4)
    assert np.array_equal(joined(wider), np.hstack([WHOLE, WHOLE[:, :1]]))
    assert read == [0, 1, 2, 3]


def test_take_rows_reads_only_chunks_that_have_some():
    for rows in ([], [0], [7], [2, 3, 6], range(8), [3, 4, 5, 6]):
        read, rows = [], np.array(rows, dtype=np.int64)
        some = take_rows(in_chunks(read=read), rows)
        assert some.shape == (len(rows), 3)
        assert np.array_equal(joined(some), WHOLE[rows])
        assert len(read) == sum(length > 0 for length in some.lengths)
    for rows in ([1, 0], [2, 2]):
        with pytest.raises(ValueError, match="taken in their order"):
            take_rows(in_chunks(), np.array(rows))


def test_kind_and_names_are_known_without_reading():
    read = []
    assert not is_sparse(in_chunks(read=read))
    assert is_sparse(in_chunks(sparse.csr_matrix(WHOLE), read))
    assert is_sparse(in_chunks(read=read).mapped(sparse.csr_matrix))
    matrix = in_chunks(read=read, names="abcd")
    assert [matrix.name_of(row) for row in range(8)] == list("aaaccccd")
    assert matrix.mapped(np.negative).name_of(3) == "c"
    assert [matrix.take(np.array([1, 6, 7])).name_of(row) for row in range(3)] == list("acd")
    assert in_chunks(read=read).name_of(3) is None
    assert read == []
