"""A shard as an archive of arrays (npz), read with suspicion: headers first, arrays when needed.

Members: ``X`` (rows, features), or ``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape`` of a CSR
matrix; ``lengths`` (instances,); where there are such, ``y`` (rows,), ``unknown`` (rows,), truth
values that mark the labels of y which are not known, ``parents`` and ``edge_types`` (rows,), and
``sample_weight`` (instances,).  Nothing is unpickled.
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.io import npy
from crfx.io.arrays import check_parents, csr_matrix, integers, kinds_allowed
from crfx.io.shard_layout import (
    OPTIONAL,
    PER_ROW,
    Layout,
    checked_lengths,
    label_kind,
    listed_labels,
    told_of,
)
from crfx.io.whole_file import whole_file
from crfx.io.zip_members import DAMAGED, check_expansion, check_members

CSR = ("X_data", "X_indices", "X_indptr", "X_shape")
_KNOWN = ("X", *CSR, "lengths", "unknown", *OPTIONAL)
_MOST_TIMES, _FREE_BYTES = 100, 1 << 28
"""Arrays may expand to so many times their size in the file, and so much more."""


_SIZES = 26
"""Where the header before a member tells how long its name and what follows that are."""


class NpzShard:
    """One file, whose headers, lengths and ``unknown`` have been read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sound: set[tuple[str, int]] = set()
        with self._opened() as archive:
            self._headers = _headers(archive)
            n_rows, n_columns = self._shape(archive)
            if "lengths" not in self._headers:
                raise ValueError("there are no lengths: the number of rows of every instance")
            lengths = integers("lengths", _unpacked(archive, "lengths"))
            self.lengths = checked_lengths(lengths, n_rows)
            self._check_shapes(n_rows)
            labels = label_kind(self._headers["y"].dtype) if "y" in self._headers else None
            has_known = n_rows and not self._all_unknown(archive)
        has = frozenset(OPTIONAL).intersection(self._headers)
        self.layout = Layout(
            "npz", "X" not in self._headers, n_columns, has, labels if has_known else None
        )

    @property
    def like(self) -> Any:
        """No rows, of the type of X."""
        shape = 0, self.layout.n_columns
        if self.layout.is_sparse:
            return sparse.csr_matrix(shape, dtype=self._headers["X_data"].dtype)
        return np.zeros(shape, self._headers["X"].dtype.newbyteorder("="))

    def features(self) -> Any:
        """(rows, features), dense or CSR.  The whole shard is in memory then."""
        if not self.layout.is_sparse:
            return self._arrays("X")[0]
        arrays = self._arrays(*CSR)
        with told_of(self.path):
            return csr_matrix(*arrays)

    def labels(self) -> list[Any]:
        """Of all rows, None where ``unknown`` marks them."""
        values, *unknown = self._arrays(
            *(name for name in ("y", "unknown") if name in self._headers)
        )
        return listed_labels(values, unknown[0] if unknown else None)

    def numbers(self, name: str) -> npt.NDArray[Any]:
        """Of all rows, or the weights of all instances."""
        (found,) = self._arrays(name)
        if name not in PER_ROW:
            return found
        with told_of(self.path):
            found = integers(name, found)
            if name == "parents":
                check_parents(found, self.lengths)
        return found

    def _shape(self, archive: zipfile.ZipFile) -> tuple[int, int]:
        parts = [name for name in CSR if name in self._headers]
        if ("X" in self._headers) == bool(parts):
            raise ValueError(
                f"there must be X, or {', '.join(CSR)} of a CSR matrix: one of the two"
            )
        if not parts:
            own = self._headers["X"]
            if len(own.shape) != 2 or own.dtype.kind not in "biuf":
                raise ValueError(
                    f"X has shape {own.shape} of {own.dtype}: it must be rows of numbers"
                )
            return own.shape[0], own.shape[1]
        if len(parts) < len(CSR):
            missing = next(name for name in CSR if name not in self._headers)
            raise ValueError(f"there is no {missing}: a CSR matrix has {', '.join(CSR)}")
        size = integers("X_shape", _unpacked(archive, "X_shape"))
        if len(size) != 2 or size.min() < 0 or size.max() >= 1 << 31:
            raise ValueError(f"X_shape is {size.tolist()}: it must be rows and columns")
        self._check_shape("X_indptr", int(size[0]) + 1)
        self._check_shape("X_indices", *self._headers["X_data"].shape)
        return int(size[0]), int(size[1])

    def _check_shapes(self, n_rows: int) -> None:
        for name in ("y", "unknown", *PER_ROW):
            self._check_shape(name, n_rows)
        self._check_shape("sample_weight", len(self.lengths))
        kinds = {"unknown": "b", "parents": "iu", "edge_types": "iu", "sample_weight": "iuf"}
        for name, kind in kinds.items():
            own = self._headers.get(name)
            if own is not None and own.dtype.kind not in kinds_allowed(kind, own.shape):
                raise ValueError(f"{name} holds {own.dtype}, which it must not")
        if "unknown" in self._headers and "y" not in self._headers:
            raise ValueError("there is unknown, which marks labels of y, and no y")

    def _all_unknown(self, archive: zipfile.ZipFile) -> bool:
        return "unknown" in self._headers and bool(_unpacked(archive, "unknown").all())

    def _check_shape(self, name: str, *shape: int) -> None:
        if name in self._headers and self._headers[name].shape != shape:
            raise ValueError(
                f"{name} has shape {self._headers[name].shape}: beside X it must be {shape}"
            )

    def _arrays(self, *names: str) -> list[npt.NDArray[Any]]:
        """Members as they are now, of the shapes they had when the shard was looked at."""
        with self._opened() as archive:
            found = [self._read(archive, name) for name in names]
            for name, array in zip(names, found, strict=True):
                if array.shape != self._headers[name].shape:
                    raise ValueError(f"{name} has changed since the shard was looked at")
            return found

    def _read(self, archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
        """Checked against its sum the first time; from then on as fast as the file is read."""
        member = archive.getinfo(f"{name}.npy")
        if (name, member.CRC) not in self._sound:
            found = _unpacked(archive, name)
            self._sound.add((name, member.CRC))
            return found
        if member.compress_type != zipfile.ZIP_STORED:
            return _unpacked(archive, name)
        with self.path.open("rb") as file:
            file.seek(member.header_offset + _SIZES)
            n_name, n_extra = struct.unpack("<HH", file.read(4))
            file.seek(n_name + n_extra, os.SEEK_CUR)
            return npy.read(file, member.file_size)

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        try:
            with self.path.open("rb") as file, zipfile.ZipFile(file) as archive:
                yield archive
        except FileNotFoundError:
            raise ValueError(f"{self.path}: there is no such file") from None
        except (zipfile.BadZipFile, EOFError) as error:
            raise ValueError(
                f"{self.path}: no archive of arrays (npz), or not all of it: {error}"
            ) from None
        except DAMAGED as error:
            raise ValueError(f"{self.path}: {error}") from None


def write(path: Path, members: dict[str, Any]) -> None:
    """Write a shard, whole or not at all; not compressed, so that training reads it quickly."""
    with whole_file(path) as file:
        np.savez(file, allow_pickle=False, **members)


def _headers(archive: zipfile.ZipFile) -> dict[str, npy.Header]:
    members = archive.infolist()
    for member in members:
        if member.filename not in [f"{name}.npy" for name in _KNOWN]:
            raise ValueError(f"it holds {member.filename!r}: there may be {', '.join(_KNOWN)}")
    check_members(archive)
    packed = sum(member.compress_size for member in members)
    expanded = sum(member.file_size for member in members)
    check_expansion("its arrays", packed, expanded, _MOST_TIMES, _FREE_BYTES)
    found = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        try:
            with archive.open(member) as stream:
                found[name] = npy.read_header(stream, member.file_size)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return found


def _unpacked(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    member = archive.getinfo(f"{name}.npy")
    try:
        with archive.open(member) as stream:
            return npy.read(stream, member.file_size)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
