"""Archives of arrays: what is written is read back, dense and sparse, with all that goes along."""

import zipfile

import numpy as np
import pytest
from scipy import sparse

from crfx.io import arrays
from crfx.io.arrays import Arrays

DENSE = np.arange(12, dtype=np.float32).reshape(4, 3)
LENGTHS = np.array([3, 0, 1])


def whole(X):
    return Arrays(
        X, LENGTHS, np.array(["a", "ä", "b", "a"]), np.array([-1, 0, 0, -1]), np.array([0, 1, 0, 0])
    )


@pytest.mark.parametrize("X", [DENSE, np.asfortranarray(DENSE), sparse.csr_matrix(DENSE)])
def test_read_gives_back_what_was_written(tmp_path, X):
    array = whole(X)
    arrays.write(tmp_path / "a.npz", array)
    data = arrays.read(tmp_path / "a.npz", labelled=True)
    assert sparse.issparse(data.X) == sparse.issparse(X)
    dense = data.X.toarray() if sparse.issparse(data.X) else data.X
    assert dense.dtype == np.float32
    np.testing.assert_array_equal(dense, DENSE)
    for name in ("lengths", "y", "parents", "edge_types"):
        np.testing.assert_array_equal(getattr(data, name), getattr(array, name))


def test_read_takes_files_of_numpy_and_scipy(tmp_path):
    np.savez(tmp_path / "a.npz", X=DENSE, lengths=LENGTHS)
    data = arrays.read(tmp_path / "a.npz")
    np.testing.assert_array_equal(data.X, DENSE)
    assert (data.y, data.parents, data.edge_types) == (None, None, None)
    sparse.save_npz(tmp_path / "b.npz", sparse.csr_matrix(DENSE))
    with zipfile.ZipFile(tmp_path / "b.npz", "a") as archive, archive.open("lengths.npy", "w") as f:
        np.save(f, LENGTHS)
    np.testing.assert_array_equal(arrays.read(tmp_path / "b.npz").X.toarray(), DENSE)


CSR = {"data": [1.0, 2.0], "indices": [0, 2], "indptr": [0, 1, 1, 1, 2], "shape": [4, 3]}
GOOD = {"X": DENSE, "lengths": [3, 0, 1]}
SPARSE = {**CSR, "lengths": [4]}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"lengths": [4]}, "a.npz: there must be X, or data, indices, indptr, shape of a CSR"),
        ({**GOOD, **CSR}, "one of the two"),
        ({**GOOD, "y": np.zeros(4, "c16")}, "y: an array holds complex128"),
        ({**GOOD, "y": np.zeros((4, 1))}, r"y has shape \(4, 1\)"),
        ({**GOOD, "lengths": [[3, 1]]}, r"lengths has shape \(1, 2\)"),
        ({**GOOD, "lengths": np.array([2**63], "u8")}, "lengths has the number 922337203685477580"),
        ({**GOOD, "parents": [-1, 0, 3, -1]}, "parents: row 2 has 3, and its instance, 0, has 3"),
        ({**GOOD, "parents": [-2, 0, 0, -1]}, "parents: row 0 has -2"),
        ({**GOOD, "edge_types": [0.5] * 4}, "edge_types holds float64: it must hold whole numbers"),
        ({**SPARSE, "indptr": [0, 1, 2]}, "indptr has 3 entries: 4 rows need 5"),
        ({**SPARSE, "indptr": [0, 2, 1, 1, 2]}, "indptr must rise from 0 to 2"),
        ({**SPARSE, "indptr": [0, 1, 1, 1, 9]}, "indptr must rise from 0 to 2"),
        ({**SPARSE, "indices": [0, 3]}, "indices must lie from 0 to 2"),
        ({**SPARSE, "indices": [0, -1]}, "indices must lie from 0 to 2"),
        ({**SPARSE, "data": [1.0]}, "there are 1 data and 2 indices"),
        ({**SPARSE, "data": [["a"]]}, "data has shape"),
        ({**SPARSE, "shape": [4]}, r"shape is \[4\]: it must be rows and columns"),
        ({**SPARSE, "shape": [4, 2**40]}, "it must be rows and columns"),
        ({**SPARSE, "format": np.array(b"csc")}, "no CSR matrix"),
        ({"data": [1.0], "lengths": [1]}, "there is no indices: a CSR matrix has"),
    ],
)
def test_read_rejects_bad_archives(tmp_path, members, message):
    """Simpler mistakes are in tests/bad_inputs/listed/text_files.py."""
    np.savez(tmp_path / "a.npz", **members)
    with pytest.raises(ValueError, match=message):
        arrays.read(tmp_path / "a.npz")


def header(shape, kind="<f8"):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (header("(1000000000000, 8)"), "X: an array's header does not agree with its size"),
        (header("(2, 2)") + bytes(31), "header does not agree with its size"),
        (header("(4, 1)", "|O") + bytes(32), "an array holds '[|]O'"),
        (b"\x93NUMPY\x03\x00" + bytes(20), "an array has an unknown format"),
        (b"", "X: an array has an unknown format"),
    ],
)
def test_read_checks_sizes_before_memory_is_taken(tmp_path, data, message):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", data)
    with pytest.raises(ValueError, match=message):
        arrays.read(tmp_path / "a.npz")


def test_read_rejects_archives_that_are_cut_off(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, **GOOD)
    good = path.read_bytes()
    for cut in range(0, len(good) - 1, 7):
        path.write_bytes(good[:cut])
        with pytest.raises(ValueError, match=r"a\.npz: no archive of arrays"):
            arrays.read(path)
    with pytest.raises(ValueError, match="lengths add up to 3"):
        arrays.write(tmp_path / "b.npz", Arrays(DENSE, np.array([3])))
    with pytest.raises(FileNotFoundError, match=r"b\.npz"):  # nothing was written
        arrays.read(tmp_path / "b.npz")


def test_read_survives_any_changed_byte(tmp_path):
    path = tmp_path / "a.npz"
    arrays.write(path, whole(sparse.csr_matrix(DENSE)))
    good = bytearray(path.read_bytes())
    refused = 0
    for place in range(len(good)):
        changed = good.copy()
        changed[place] ^= 0x55
        path.write_bytes(changed)
        try:
            arrays.read(path)
        except ValueError:
            refused += 1
    assert refused > len(good) // 2
