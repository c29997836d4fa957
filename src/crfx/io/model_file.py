"""The model file: a zip of model.json, .npy arrays and XGBoost's trees.  Loading runs no code.

Version 1.  Members are written uncompressed where that saves little; every member is checked
against its declared size before it is used.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FORMAT_VERSION = 1
_MANIFEST = "model.json"
_LARGEST_HEADER = 4096


@dataclass(eq=False)
class Contents:
    """What a model file holds: plain values, arrays and blobs of bytes, by name."""

    values: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)


def write(path: str | os.PathLike[str], contents: Contents) -> None:
    """Write a model file, whole or not at all."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent or ".", prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            _write(file, contents)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write(file: Any, contents: Contents) -> None:
    manifest = {"format_version": FORMAT_VERSION, **contents.values}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(_MANIFEST, json.dumps(manifest, indent=1, allow_nan=False))
        for name, array in contents.arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getvalue())
        for name, blob in contents.blobs.items():
            archive.writestr(f"{name}.ubj", blob)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def read(path: str | os.PathLike[str]) -> Contents:
    """Read a model file; raise ValueError, naming the file, where it is not one."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(archive)
            values = json.loads(archive.read(_MANIFEST))
            version = values.pop("format_version")
            if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
                raise ValueError(
                    f"its format is version {version}, this crfx reads up to {FORMAT_VERSION}: "
                    "upgrade crfx"
                )
            names = archive.namelist()
            arrays = {n[:-4]: _array(archive.read(n)) for n in names if n.endswith(".npy")}
            blobs = {n[:-4]: archive.read(n) for n in names if n.endswith(".ubj")}
    except FileNotFoundError:
        raise
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        EOFError,
        NotImplementedError,  # a compression method that zipfile does not know
        RuntimeError,  # an encrypted member
    ) as error:
        raise ValueError(f"{os.fspath(path)} is not a model file of crfx: {error}") from None
    return Contents(values, arrays, blobs)


def _check_members(archive: zipfile.ZipFile) -> None:
    """Refuse doubled names, members that overlap, and sizes beyond what deflate can reach."""
    members = archive.infolist()
    if len({member.filename for member in members}) != len(members):
        raise ValueError("a member is there twice")
    taken = sorted((m.header_offset, m.header_offset + m.compress_size) for m in members)
    if any(end > begin for (_, end), (begin, _) in pairwise(taken)):
        raise ValueError("members overlap")
    for member in members:
        if member.file_size > 1100 * max(member.compress_size, 1):
            raise ValueError(f"member {member.filename} claims an impossible size")


def _array(raw: bytes) -> npt.NDArray[Any]:
    """An .npy array whose header agrees with its size; nothing is unpickled."""
    buffer = io.BytesIO(raw)
    version = np.lib.format.read_magic(buffer)
    reader = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if reader is None:
        raise ValueError(f"an array has the unknown format {version}")
    shape, _, dtype = reader(buffer, max_header_size=_LARGEST_HEADER)
    if dtype.hasobject or int(np.prod(shape)) * dtype.itemsize != len(raw) - buffer.tell():
        raise ValueError("an array's header does not agree with its size")
    buffer.seek(0)
    found: npt.NDArray[Any] = np.load(buffer, allow_pickle=False)
    return found
