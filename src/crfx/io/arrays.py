"""Numbers with their labels in archives of arrays (npz), as `numpy.savez` writes them.

Members: ``X`` (rows, features), or a CSR matrix as ``data``, ``indices``, ``indptr`` and ``shape``,
which is what `scipy.sparse.save_npz` writes (in shards ``X_data`` and so on); ``lengths``
(instances,), rows of each; and, optionally, ``y`` (rows,), ``parents`` (rows,), counted within the
instance, and ``edge_types`` (rows,).  Shards may also have ``unknown`` (rows,), truth values that
mark the labels of y which are not known, and ``sample_weight`` (instances,).
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
from crfx.io.shard_layout import OPTIONAL, PER_ROW, Layout, check_parents, label_kind, listed_labels
from crfx.io.whole_file import whole_file

CSR = ("data", "indices", "indptr", "shape")
_KNOWN = ("X", *CSR, "format", "lengths", "y", *PER_ROW)
_PREFIX = "X_"
_KNOWN_OF_SHARDS = ("X", *(_PREFIX + name for name in CSR), "lengths", "unknown", *OPTIONAL)
_KINDS = {
    "y": ("", ""),
    "unknown": ("b", "truth values"),
    "parents": ("iu", "whole numbers"),
    "edge_types": ("iu", "whole numbers"),
    "sample_weight": ("iuf", "numbers"),
}
"""Kinds of NumPy that a member may hold, and what messages call them."""

Read = Callable[..., list[npt.NDArray[Any]]]


class StackedArrays:
    """Members of an archive whose headers and lengths fit together.

    ``headers`` have a dtype and a shape; ``early`` holds the lengths and the shape of a CSR matrix.
    """

    def __init__(
        self, headers: Mapping[str, Any], early: Mapping[str, Any], prefix: str = ""
    ) -> None:
        self.headers = headers
        self.csr = tuple(prefix + name for name in CSR)
        n_rows, self.n_columns = self._shape(early)
        if "lengths" not in headers:
            raise ValueError("there are no lengths: the number of rows of every instance")
        self.lengths = integers("lengths", early["lengths"])
        if len(self.lengths) and self.lengths.min() < 0:
            first = self.lengths.argmin()
            raise ValueError(f"lengths: instance {first} has {self.lengths[first]} rows")
        if self.lengths.sum() != n_rows:
            raise ValueError(f"lengths add up to {self.lengths.sum()}, and X has {n_rows} rows")
        for name, (kinds, words) in _KINDS.items():
            if (header := headers.get(name)) is None:
                continue
            expected = (len(self.lengths) if name == "sample_weight" else n_rows,)
            if header.shape != expected:
                raise ValueError(f"{name} has shape {header.shape}: beside X it must be {expected}")
            if kinds and header.dtype.kind not in _kinds_allowed(kinds, header.shape):
                raise ValueError(f"{name} holds {header.dtype}: it must hold {words}")

    @property
    def is_sparse(self) -> bool:
        """Whether X is a CSR matrix."""
        return "X" not in self.headers

    def features(self, read: Read) -> Any:
        """Read (rows, features), dense or CSR; ``read`` returns arrays by name."""
        return _csr_matrix(*read(*self.csr)) if self.is_sparse else read("X")[0]

    def numbers(self, name: str, read: Read) -> npt.NDArray[Any]:
        """Read parents or edge types of all rows, or weights of all instances."""
        (values,) = read(name)
        if name not in PER_ROW:
            return values
        values = integers(name, values)
        if name == "parents":
            check_parents(values, self.lengths)
        return values

    def _shape(self, early: Mapping[str, Any]) -> tuple[int, int]:
        parts = [name for name in self.csr if name in self.headers]
        names = ", ".join(self.csr)
        if ("X" in self.headers) == bool(parts):
            raise ValueError(f"there must be X, or {names} of a CSR matrix: one of the two")
        if not parts:
            header = self.headers["X"]
            if len(header.shape) != 2 or header.dtype.kind not in "biuf":
                raise ValueError(
                    f"X has shape {header.shape} of {header.dtype}: it must be rows of numbers"
                )
            return header.shape[0], header.shape[1]
        for name in self.csr:
            if name not in self.headers:
                raise ValueError(f"there is no {name}: a CSR matrix has {names}")
        n_rows, n_columns = _matrix_shape(early[self.csr[3]])
        for name in self.csr[:3]:
            if len(shape := self.headers[name].shape) != 1:
                raise ValueError(f"{name} has shape {shape}: it must be a row of numbers")
        n_data, n_indices, n_starts = (self.headers[name].shape[0] for name in self.csr[:3])
        if n_starts != n_rows + 1:
            raise ValueError(f"indptr has {n_starts} entries: {n_rows} rows need {n_rows + 1}")
        if n_data != n_indices:
            raise ValueError(f"there are {n_data} data and {n_indices} indices")
        return n_rows, n_columns


class NpzShard(Npz):
    """A shard as an archive, whose headers, lengths and ``unknown`` have been read."""

    def __init__(self, path: Path) -> None:
        with about(path):
            super().__init__(path, _KNOWN_OF_SHARDS, (_PREFIX + "shape", "lengths", "unknown"))
            self._arrays = StackedArrays(self.headers, self.early, _PREFIX)
            labels = label_kind(self.headers["y"].dtype) if "y" in self.headers else None
            if "unknown" in self.headers and labels is None:
                raise ValueError("there is unknown, which marks labels of y, and no y")
        self.lengths = self._arrays.lengths
        all_unknown = "unknown" in self.early and bool(self.early["unknown"].all())
        self.early.clear()
        self.layout = Layout(
            "npz",
            self._arrays.is_sparse,
            self._arrays.n_columns,
            frozenset(OPTIONAL).intersection(self.headers),
            labels if self.lengths.sum() and not all_unknown else None,
        )

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
            return self._arrays.features(self.read)

    def labels(self) -> list[Any]:
        """Read the labels of all rows, None where ``unknown`` marks them."""
        with about(self.path):
            values, *unknown = self.read(*(n for n in ("y", "unknown") if n in self.headers))
        return listed_labels(values, unknown[0] if unknown else None)

    def numbers(self, name: str) -> npt.NDArray[Any]:
        """Read parents or edge types of all rows, or weights of all instances."""
        with about(self.path):
            return self._arrays.numbers(name, self.read)


def write_shard(path: Path, members: dict[str, Any]) -> None:
    """Write a shard, whole or not at all; not compressed, so that training reads it quickly."""
    with whole_file(path) as file:
        np.savez(file, allow_pickle=False, **_members(members, _PREFIX))


def _members(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return arrays by the names of their members; None is left out, and a CSR matrix has four."""
    members = {name: value for name, value in arrays.items() if value is not None}
    if sparse.issparse(X := members.pop("X")):
        X = sparse.csr_matrix(X)
        parts = (X.data, X.indices, X.indptr, np.array(X.shape))
        return members | {prefix + n: part for n, part in zip(CSR, parts, strict=True)}
    return members | {"X": np.asarray(X)}


@dataclass(frozen=True, eq=False)
class Arrays:
    """Instances, stacked: what `fit` and `predict` take beside X."""

    X: Any  # (rows, features), dense or CSR
    lengths: npt.NDArray[np.int64]
    y: npt.NDArray[Any] | None = None
    parents: npt.NDArray[np.int64] | None = None
    edge_types: npt.NDArray[np.int64] | None = None


def read(path: str | os.PathLike[str], *, labelled: bool = False) -> Arrays:
    """Read an archive; nothing in it is run, and sizes are checked before memory is taken."""
    with open(path, "rb"):
        pass  # a file that is missing or may not be read is no damaged archive
    with about(os.fspath(path)):
        npz = Npz(Path(path), _KNOWN, ("shape", "lengths", "format"))
        if "format" in npz.early and npz.early["format"].tolist() not in (b"csr", "csr"):
            raise ValueError("the sparse matrix is no CSR matrix: convert it by tocsr()")
        arrays = _checked(npz.headers, npz.early, npz.read)
        if labelled and arrays.y is None:
            raise ValueError("there is no y: a label for every row")
        return arrays


def write(path: str | os.PathLike[str], arrays: Arrays) -> None:
    """Write an archive, whole or not at all."""
    members = _members(vars(arrays), "")
    members = {name: np.asarray(value) for name, value in members.items()}
    _checked(members, members, lambda *names: [members[name] for name in names])
    if "X" not in members:
        members["format"] = np.array(b"csr")
    with whole_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **members)


def _checked(headers: Mapping[str, Any], early: Mapping[str, Any], read: Read) -> Arrays:
    """Read and check all members."""
    stacked = StackedArrays(headers, early)
    X, y = stacked.features(read), read("y")[0] if "y" in headers else None
    if y is not None and y.dtype.kind == "c":
        raise ValueError(f"y: an array holds {y.dtype}, not numbers or text")
    rest = {name: stacked.numbers(name, read) for name in PER_ROW if name in headers}
    return Arrays(X, stacked.lengths, y, **rest)


def _csr_matrix(
    data: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    indptr: npt.NDArray[Any],
    shape: npt.NDArray[Any],
) -> Any:
    """Return a CSR matrix whose entries lie within it; SciPy crashes on some that do not."""
    if data.dtype.kind not in "biuf":
        raise ValueError(f"data has shape {data.shape} of {data.dtype}: it must hold numbers")
    starts, columns = integers("indptr", indptr), integers("indices", indices)
    n_rows, n_columns = _matrix_shape(shape)
    if len(starts) != n_rows + 1:  # the file has been replaced
        raise ValueError(f"indptr has {len(starts)} entries: {n_rows} rows need {n_rows + 1}")
    if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != len(columns):
        raise ValueError(f"indptr must rise from 0 to {len(columns)}, the number of indices")
    if len(columns) and not 0 <= columns.min() <= columns.max() < n_columns:
        raise ValueError(f"indices must lie from 0 to {n_columns - 1}")
    return sparse.csr_matrix((data, columns, starts), shape=(n_rows, n_columns))


def _matrix_shape(shape: npt.NDArray[Any]) -> tuple[int, int]:
    size = integers("shape", shape).tolist()
    if len(size) != 2 or min(size) < 0 or max(size) >= 1 << 31:
        raise ValueError(f"shape is {size}: it must be rows and columns")
    return size[0], size[1]


def integers(name: str, array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return a row of whole numbers, or raise ValueError."""
    if array.ndim != 1 or array.dtype.kind not in _kinds_allowed("iu", array.shape):
        raise ValueError(
            f"{name} has shape {array.shape} of {array.dtype}: it must be a row of whole numbers"
        )
    if array.dtype.kind == "u" and len(array) and array.max() >= 1 << 62:
        raise ValueError(f"{name} has the number {array.max()}, which is too large")
    return array.astype(np.int64)


def _kinds_allowed(kinds: str, shape: tuple[int, ...]) -> str:
    """Return the kinds of arrays that hold ``kinds``: an empty list becomes one of fractions."""
    return kinds if shape != (0,) else f"{kinds}f"
