"""Numbers with their labels: archives of arrays (npz), as `numpy.savez` writes them.

``X`` (rows, features), or a CSR matrix as ``data``, ``indices``, ``indptr`` and ``shape``, which is
what `scipy.sparse.save_npz` writes; ``lengths`` (instances,), rows of each; where there are such,
``y`` (rows,), ``parents`` (rows,), counted within the instance, and ``edge_types`` (rows,).
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.io import npy
from crfx.io.whole_file import whole_file
from crfx.io.zip_members import DAMAGED, check_expansion, check_members, member_bytes

_CSR = ("data", "indices", "indptr", "shape")
_ROWS = ("y", "parents", "edge_types")
_KNOWN = ("X", *_CSR, "format", "lengths", *_ROWS)
_MOST_TIMES, _FREE_BYTES = 100, 1 << 28
"""Arrays may expand to so many times their size in the file, and so much more."""


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
    name = os.fspath(path)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = _members(archive)
        except DAMAGED as error:
            raise ValueError(f"{name}: no archive of arrays (npz): {error}") from None
    try:
        return _checked(members, labelled)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def write(path: str | os.PathLike[str], arrays: Arrays) -> None:
    """Write an archive, whole or not at all."""
    members: dict[str, Any] = {"lengths": arrays.lengths}
    if sparse.issparse(arrays.X):
        X = sparse.csr_matrix(arrays.X)
        members |= {
            "data": X.data,
            "indices": X.indices,
            "indptr": X.indptr,
            "shape": np.array(X.shape),
            "format": np.array(b"csr"),
        }
    else:
        members["X"] = np.asarray(arrays.X)
    members |= {key: value for key in _ROWS if (value := getattr(arrays, key)) is not None}
    _checked({key: np.asarray(value) for key, value in members.items()}, labelled=False)
    with whole_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **members)


def _members(archive: zipfile.ZipFile) -> dict[str, npt.NDArray[Any]]:
    members = archive.infolist()
    for member in members:
        if member.filename.removesuffix(".npy") not in _KNOWN:
            raise ValueError(f"it holds {member.filename!r}: there may be {', '.join(_KNOWN)}")
    check_members(archive)
    packed, expanded = (
        sum(getattr(member, size) for member in members) for size in ("compress_size", "file_size")
    )
    check_expansion("its arrays", packed, expanded, _MOST_TIMES, _FREE_BYTES)
    found: dict[str, npt.NDArray[Any]] = {}
    for member in members:
        key = member.filename.removesuffix(".npy")
        try:
            found[key] = npy.decode(member_bytes(archive, member.filename))
            if found[key].dtype.kind == "c":
                raise ValueError(f"an array holds {found[key].dtype}, not numbers or text")
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    return found


def _checked(members: dict[str, npt.NDArray[Any]], labelled: bool) -> Arrays:
    X = _matrix(members)
    if "lengths" not in members:
        raise ValueError("there are no lengths: the number of rows of every instance")
    lengths = integers("lengths", members["lengths"])
    if len(lengths) and lengths.min() < 0:
        raise ValueError(f"lengths: instance {lengths.argmin()} has {lengths.min()} rows")
    if lengths.sum() != X.shape[0]:
        raise ValueError(f"lengths add up to {lengths.sum()}, and X has {X.shape[0]} rows")
    if labelled and "y" not in members:
        raise ValueError("there is no y: a label for every row")
    for key in _ROWS:
        if key in members and members[key].shape != (X.shape[0],):
            raise ValueError(
                f"{key} has shape {members[key].shape}: {X.shape[0]} rows need one each"
            )
    rest = {key: integers(key, members[key]) for key in ("parents", "edge_types") if key in members}
    if "parents" in rest:
        check_parents(rest["parents"], lengths)
    return Arrays(X, lengths, members.get("y"), **rest)


def _matrix(members: dict[str, npt.NDArray[Any]]) -> Any:
    parts = [key for key in _CSR if key in members]
    if ("X" in members) == bool(parts):
        raise ValueError(f"there must be X, or {', '.join(_CSR)} of a CSR matrix: one of the two")
    if "X" in members:
        X = members["X"]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(f"X has shape {X.shape} of {X.dtype}: it must be rows of numbers")
        return X
    if len(parts) < len(_CSR):
        missing = next(key for key in _CSR if key not in members)
        raise ValueError(f"there is no {missing}: a CSR matrix has {', '.join(_CSR)}")
    if "format" in members and members["format"].tolist() not in (b"csr", "csr"):
        raise ValueError("the sparse matrix is no CSR matrix: convert it by tocsr()")
    return csr_matrix(*(members[key] for key in _CSR))


def csr_matrix(
    data: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    indptr: npt.NDArray[Any],
    shape: npt.NDArray[Any],
) -> Any:
    """A CSR matrix whose parts fit together; what SciPy does not look at, a bad one crashes."""
    if data.ndim != 1 or data.dtype.kind not in "biuf":
        raise ValueError(
            f"data has shape {data.shape} of {data.dtype}: it must be a row of numbers"
        )
    size = integers("shape", shape)
    starts, columns = integers("indptr", indptr), integers("indices", indices)
    if len(size) != 2 or size.min() < 0 or size.max() >= 1 << 31:
        raise ValueError(f"shape is {size.tolist()}: it must be rows and columns")
    if len(starts) != size[0] + 1:
        raise ValueError(f"indptr has {len(starts)} entries: {size[0]} rows need {size[0] + 1}")
    if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != len(columns):
        raise ValueError(f"indptr must rise from 0 to {len(columns)}, the number of indices")
    if len(data) != len(columns):
        raise ValueError(f"there are {len(data)} data and {len(columns)} indices")
    if len(columns) and not 0 <= columns.min() <= columns.max() < size[1]:
        raise ValueError(f"indices must lie from 0 to {size[1] - 1}")
    return sparse.csr_matrix((data, columns, starts), shape=tuple(size.tolist()))


def integers(key: str, array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """A row of whole numbers, or ValueError."""
    if array.ndim != 1 or array.dtype.kind not in kinds_allowed("iu", array.shape):
        raise ValueError(
            f"{key} has shape {array.shape} of {array.dtype}: it must be a row of whole numbers"
        )
    if array.dtype.kind == "u" and len(array) and array.max() >= 1 << 62:
        raise ValueError(f"{key} has the number {array.max()}, which is too large")
    return array.astype(np.int64)


def kinds_allowed(kinds: str, shape: tuple[int, ...]) -> str:
    """Those of arrays that hold ``kinds``: an empty list becomes an array of fractions."""
    return kinds if shape != (0,) else f"{kinds}f"


def check_parents(parents: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> None:
    """Each in its instance; that there are no circles the batch sees to."""
    limits = np.repeat(lengths, lengths)
    wrong = np.flatnonzero((parents < -1) | (parents >= limits))
    if len(wrong):
        instance = int(np.searchsorted(np.cumsum(lengths), wrong[0], side="right"))
        raise ValueError(
            f"parents: row {wrong[0]} has {parents[wrong[0]]}, and its instance, {instance}, has "
            f"{limits[wrong[0]]} rows: -1 at a root, else 0 or more"
        )
