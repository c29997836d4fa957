"""The model file: a zip of model.json, .npy arrays and XGBoost's trees.  Loading runs no code.

Version 1.  Members are written uncompressed where that saves little; every member is checked
against its declared size before it is used.
"""

from __future__ import annotations

import ast
import io
import json
import math
import os
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crfx.io.whole_file import whole_file

FORMAT_VERSION = 1
_MANIFEST = "model.json"
_LARGEST_HEADER = 4096
_DAMAGED = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    OSError,  # an offset that cannot be
    EOFError,
    NotImplementedError,  # a zip version that zipfile does not know
    RuntimeError,  # an encrypted member; values nested too deeply
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
)
"""What damaged files make zipfile, zlib and the reading of values raise."""


@dataclass(eq=False)
class Contents:
    """What a model file holds: plain values, arrays and blobs of bytes, by name."""

    values: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)


def write(path: str | os.PathLike[str], contents: Contents) -> None:
    """Write a model file, whole or not at all."""
    with whole_file(path) as file:
        _write(file, contents)


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


def read(path: str | os.PathLike[str]) -> Contents:
    """Read a model file; raise ValueError, naming the file, where it is not one."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _read(archive)
        except _DAMAGED as error:
            raise ValueError(f"{os.fspath(path)} is not a model file of crfx: {error}") from None


def _read(archive: zipfile.ZipFile) -> Contents:
    _check_members(archive)
    values = json.loads(archive.read(_MANIFEST))
    version = values.pop("format_version")
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise ValueError(
            f"its format is version {version}, this crfx reads up to {FORMAT_VERSION}: upgrade crfx"
        )
    names = archive.namelist()
    arrays = {n[:-4]: _array(archive.read(n)) for n in names if n.endswith(".npy")}
    blobs = {n[:-4]: archive.read(n) for n in names if n.endswith(".ubj")}
    return Contents(values, arrays, blobs)


def _check_members(archive: zipfile.ZipFile) -> None:
    """Refuse doubled names, overlap, foreign compression, sizes beyond what deflate can reach."""
    members = archive.infolist()
    if len({member.filename for member in members}) != len(members):
        raise ValueError("a member is there twice")
    taken = sorted((m.header_offset, m.header_offset + m.compress_size) for m in members)
    if any(end > begin for (_, end), (begin, _) in pairwise(taken)):
        raise ValueError("members overlap")
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"member {member.filename} is compressed in an unknown way")
        if member.file_size > 1100 * max(member.compress_size, 1):
            raise ValueError(f"member {member.filename} claims an impossible size")


def _array(raw: bytes) -> npt.NDArray[Any]:
    """An .npy array of plain numbers or text whose header agrees with its size.

    Read here and not by NumPy, which would unpickle if asked, and whose parser of old headers warns
    and raises in its own ways.
    """
    if raw[:8] not in (b"\x93NUMPY\x01\x00", b"\x93NUMPY\x02\x00"):
        raise ValueError("an array has an unknown format")
    begin = 10 if raw[6] == 1 else 12
    end = begin + int.from_bytes(raw[8:begin], "little")
    if end > min(len(raw), _LARGEST_HEADER):
        raise ValueError("an array's header is cut off")
    try:
        header = ast.literal_eval(raw[begin:end].decode("latin1"))
        kind, shape = header["descr"], header["shape"]
    except (SyntaxError, MemoryError) as error:
        raise ValueError(f"an array's header cannot be read: {error}") from None
    if not isinstance(kind, str) or not re.fullmatch("[<>|][biufcSU][0-9]{1,6}", kind):
        raise ValueError(f"an array holds {kind!r}, not numbers or text")
    dtype = np.dtype(kind)
    if not all(isinstance(length, int) and length >= 0 for length in shape):
        raise ValueError(f"an array has the impossible shape {shape}")
    if math.prod(shape) * dtype.itemsize != len(raw) - end:
        raise ValueError("an array's header does not agree with its size")
    order: Literal["C", "F"] = "F" if header["fortran_order"] else "C"
    flat = np.frombuffer(raw, dtype, offset=end) if end < len(raw) else np.zeros(0, dtype)
    return flat.reshape(shape, order=order).astype(dtype.newbyteorder("="))
