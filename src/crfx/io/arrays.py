"""Numbers with their labels in archives of arrays (npz), as `numpy.savez` writes them.

Members: ``X`` (rows, features), or a CSR matrix as ``data``, ``indices``, ``indptr`` and ``shape``,
which is what `scipy.sparse.save_npz` writes (in shards ``X_data`` and so on); ``lengths``
(instances,), rows of each; and, optionally, ``y`` (rows,), ``parents`` (rows,), counted within the
instance, and ``edge_types`` (rows,).  Shards may also have ``unknown`` (rows,), truth values that
mark unknown labels of y, and ``sample_weight`` (instances,).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.errors import about
from crfx.io.npz import Npz
from crfx.io.shard_layout import OPTIONAL, PER_ROW, Layout, check_parents
from crfx.io.whole_file import whole_file

CSR = ("data", "indices", "indptr", "shape")
_KNOWN = ("X", *CSR, "format", "lengths", "y", *PER_ROW)
_PREFIX = "X_"
"""Begins the names of the parts of a CSR matrix in a shard."""
_KNOWN_OF_SHARDS = ("X", *(_PREFIX + name for name in CSR), "lengths", "unknown", *OPTIONAL)
_KINDS = {
    "y": ("", ""),
    "unknown": ("b", "truth values"),
    "parents": ("iu", "whole numbers"),
    "edge_types": ("iu", "whole numbers"),
    "sample_weight": ("iuf", "numbers"),
}
"""NumPy's kinds that a member may have, and their names in messages."""
_LABEL_KINDS = {
    "U": "text",
    "i": "whole numbers",
    "u": "whole numbers",
    "f": "fractions",
    "b": "truth values",
}

Array = npt.NDArray[Any]
Read = Callable[..., list[Array]]
"""Returns arrays by their names."""


class NpzShard(Npz):
    """A shard as an archive, whose headers, lengths and ``unknown`` have been read."""

    def __init__(self, path: Path) -> None:
        with about(path):
            super().__init__(path, _KNOWN_OF_SHARDS, (_PREFIX + "shape", "lengths", "unknown"))
            self.lengths, n_columns = _checked_sizes(self.headers, self.early, _PREFIX)
            labels = self._label_kind()
            if "unknown" in self.headers and labels is None:
                raise ValueError("there is unknown, which marks labels of y, and no y")
        all_unknown = "unknown" in self.early and bool(self.early["unknown"].all())
        self.early.clear()
        self.layout = Layout(
            "npz",
            "X" not in self.headers,
            n_columns,
            frozenset(OPTIONAL).intersection(self.headers),
            labels if self.lengths.sum() and not all_unknown else None,
        )

    def _label_kind(self) -> str | None:
        """Return the kind of the labels in words; None if there are no labels."""
        if "y" not in self.headers:
            return None
        dtype = self.headers["y"].dtype
        if dtype.kind not in _LABEL_KINDS:
            raise ValueError(f"y holds {dtype}: labels are text, numbers or truth values")
        return _LABEL_KINDS[dtype.kind]

    @property
    def like(self) -> Any:
        """No rows, of the type of X."""
        shape = 0, self.layout.n_columns
        if self.layout.is_sparse:
            return sparse.csr_matrix(shape, dtype=self.headers["X_data"].dtype)
        return np.zeros(shape, self.headers["X"].dtype.newbyteorder("="))

    def features(self) -> Any:
        """Read (rows, features), dense or CSR.  The whole shard is in memory then."""
        with about(self.path):
            return _features(self.headers, self.read, _PREFIX)

    def labels(self) -> list[Any]:
        """Read the labels of all rows as Python's values, None where ``unknown`` marks them.

        Equal labels are one object.
        """
        with about(self.path):
            values, *unknown = self.read(*(n for n in ("y", "unknown") if n in self.headers))
        distinct, codes = np.unique(values, return_inverse=True)
        objects = np.array([*distinct.tolist(), None], dtype=object)
        if unknown:
            codes = np.where(unknown[0], len(distinct), codes)
        labels: list[Any] = objects[codes].tolist()
        return labels

    def numbers(self, name: str) -> Array:
        """Read parents or edge types of all rows, or weights of all instances."""
        with about(self.path):
            return _numbers(name, self.lengths, self.read)


def write_shard(path: Path, members: dict[str, Any]) -> None:
    """Write a shard, whole or not at all; not compressed, so that training reads it quickly."""
    with whole_file(path) as file:
        np.savez(file, allow_pickle=False, **_members(members, _PREFIX))


@dataclass(frozen=True, eq=False)
class Arrays:
    """Instances, stacked: arguments of `fit` and `predict`."""

    X: Any  # (rows, features), dense or CSR
    lengths: npt.NDArray[np.int64]
    y: Array | None = None
    parents: npt.NDArray[np.int64] | None = None
    edge_types: npt.NDArray[np.int64] | None = None


def read(path: str | os.PathLike[str], *, labelled: bool = False) -> Arrays:
    """Read an archive of arrays.

    Nothing in it is executed, and sizes are checked before memory is taken.

    Parameters
    ----------
    path : str or path
        The archive (npz).
    labelled : bool, default False
        Whether it must have labels, ``y``.

    Returns
    -------
    Arrays

    Raises
    ------
    ValueError
        If a member is missing or invalid; the error names the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.npz"
    ...     np.savez(path, X=np.zeros((3, 2)), lengths=[2, 1])
    ...     read(path).X.shape
    (3, 2)
    """
    with open(path, "rb"):
        pass  # a file that is missing or may not be read is not a damaged archive
    with about(os.fspath(path)):
        npz = Npz(Path(path), _KNOWN, ("shape", "lengths", "format"))
        if "format" in npz.early and npz.early["format"].tolist() not in (b"csr", "csr"):
            raise ValueError("the sparse matrix is no CSR matrix: convert it by tocsr()")
        arrays = _checked(npz.headers, npz.early, npz.read)
        if labelled and arrays.y is None:
            raise ValueError("there is no y: a label for every row")
        return arrays


def write(path: str | os.PathLike[str], arrays: Arrays) -> None:
    """Write an archive, whole or not at all.

    Parameters
    ----------
    path : str or path
    arrays : Arrays

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.npz"
    ...     write(path, Arrays(X=np.zeros((3, 2)), lengths=np.array([2, 1])))
    ...     read(path).lengths.tolist()
    [2, 1]
    """
    members = {name: np.asarray(value) for name, value in _members(vars(arrays), "").items()}
    _checked(members, members, lambda *names: [members[name] for name in names])
    if "X" not in members:
        members["format"] = np.array(b"csr")
    with whole_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **members)


def _members(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return arrays by the names of their members; None is left out, and a CSR matrix has four."""
    members = {name: value for name, value in arrays.items() if value is not None}
    if sparse.issparse(X := members.pop("X")):
        X = sparse.csr_matrix(X)
        parts = (X.data, X.indices, X.indptr, np.array(X.shape))
        return members | {prefix + n: part for n, part in zip(CSR, parts, strict=True)}
    return members | {"X": np.asarray(X)}


# What members must be, by their headers (dtype and shape), before they are read ------------------


def _checked(headers: Mapping[str, Any], early: Mapping[str, Array], read: Read) -> Arrays:
    """Read and check all members; ``early`` holds the lengths and the shape of a CSR matrix."""
    lengths, _ = _checked_sizes(headers, early)
    X, y = _features(headers, read), read("y")[0] if "y" in headers else None
    if y is not None and y.dtype.kind == "c":
        raise ValueError(f"y: an array holds {y.dtype}, not numbers or text")
    rest = {name: _numbers(name, lengths, read) for name in PER_ROW if name in headers}
    return Arrays(X, lengths, y, **rest)


def _checked_sizes(
    headers: Mapping[str, Any], early: Mapping[str, Array], prefix: str = ""
) -> tuple[npt.NDArray[np.int64], int]:
    """Return lengths and the number of features; raise ValueError if members do not match."""
    n_rows, n_columns = _shape_of_X(headers, early, prefix)
    if "lengths" not in headers:
        raise ValueError("there are no lengths: the number of rows of every instance")
    lengths = _integers("lengths", early["lengths"])
    if len(lengths) and lengths.min() < 0:
        first = lengths.argmin()
        raise ValueError(f"lengths: instance {first} has {lengths[first]} rows")
    if lengths.sum() != n_rows:
        raise ValueError(f"lengths add up to {lengths.sum()}, and X has {n_rows} rows")
    for name, (kinds, words) in _KINDS.items():
        if (header := headers.get(name)) is None:
            continue
        expected = (len(lengths) if name == "sample_weight" else n_rows,)
        if header.shape != expected:
            raise ValueError(f"{name} has shape {header.shape}: beside X it must be {expected}")
        if kinds and not _is_of_kind(header, kinds):
            raise ValueError(f"{name} holds {header.dtype}: it must hold {words}")
    return lengths, n_columns


def _shape_of_X(
    headers: Mapping[str, Any], early: Mapping[str, Array], prefix: str
) -> tuple[int, int]:
    csr = [prefix + name for name in CSR]
    parts = [name for name in csr if name in headers]
    names = ", ".join(csr)
    if ("X" in headers) == bool(parts):
        raise ValueError(f"there must be X, or {names} of a CSR matrix: one of the two")
    if not parts:
        header = headers["X"]
        if len(header.shape) != 2 or header.dtype.kind not in "biuf":
            raise ValueError(
                f"X has shape {header.shape} of {header.dtype}: it must be rows of numbers"
            )
        return header.shape[0], header.shape[1]
    for name in csr:
        if name not in headers:
            raise ValueError(f"there is no {name}: a CSR matrix has {names}")
    n_rows, n_columns = _matrix_shape(early[csr[3]])
    for name in csr[:3]:
        if len(shape := headers[name].shape) != 1:
            raise ValueError(f"{name} has shape {shape}: it must be a row of numbers")
    n_data, n_indices, n_starts = (headers[name].shape[0] for name in csr[:3])
    if n_starts != n_rows + 1:
        raise ValueError(f"indptr has {n_starts} entries: {n_rows} rows need {n_rows + 1}")
    if n_data != n_indices:
        raise ValueError(f"there are {n_data} data and {n_indices} indices")
    return n_rows, n_columns


def _features(headers: Mapping[str, Any], read: Read, prefix: str = "") -> Any:
    """Read (rows, features), dense or CSR, whose entries lie within it: SciPy crashes otherwise."""
    if "X" in headers:
        return read("X")[0]
    data, indices, indptr, shape = read(*(prefix + name for name in CSR))
    if data.dtype.kind not in "biuf":
        raise ValueError(f"data has shape {data.shape} of {data.dtype}: it must hold numbers")
    starts, columns = _integers("indptr", indptr), _integers("indices", indices)
    n_rows, n_columns = _matrix_shape(shape)
    if len(starts) != n_rows + 1:  # the file has been replaced
        raise ValueError(f"indptr has {len(starts)} entries: {n_rows} rows need {n_rows + 1}")
    if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != len(columns):
        raise ValueError(f"indptr must rise from 0 to {len(columns)}, the number of indices")
    if len(columns) and not 0 <= columns.min() <= columns.max() < n_columns:
        raise ValueError(f"indices must lie from 0 to {n_columns - 1}")
    return sparse.csr_matrix((data, columns, starts), shape=(n_rows, n_columns))


def _numbers(name: str, lengths: npt.NDArray[np.int64], read: Read) -> Array:
    """Read parents or edge types of all rows, or weights of all instances."""
    (values,) = read(name)
    if name in PER_ROW:
        values = _integers(name, values)
    if name == "parents":
        check_parents(values, lengths)
    return values


def _matrix_shape(shape: Array) -> tuple[int, int]:
    size = _integers("shape", shape).tolist()
    if len(size) != 2 or min(size) < 0 or max(size) >= 1 << 31:
        raise ValueError(f"shape is {size}: it must be rows and columns")
    return size[0], size[1]


def _integers(name: str, array: Array) -> npt.NDArray[np.int64]:
    """Return a row of whole numbers, or raise ValueError."""
    if array.ndim != 1 or not _is_of_kind(array, "iu"):
        raise ValueError(
            f"{name} has shape {array.shape} of {array.dtype}: it must be a row of whole numbers"
        )
    if array.dtype.kind == "u" and len(array) and array.max() >= 1 << 62:
        raise ValueError(f"{name} has the number {array.max()}, which is too large")
    return array.astype(np.int64)


def _is_of_kind(array: Any, kinds: str) -> bool:
    """Return whether an array is of one of some kinds; NumPy makes an empty list floats."""
    return array.dtype.kind in kinds or (array.shape == (0,) and array.dtype.kind == "f")
