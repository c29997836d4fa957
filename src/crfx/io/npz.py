"""Zip archives of arrays (npz) from untrusted sources: sizes are checked before memory is taken.

Members may not overlap nor expand beyond a limit; arrays must be plain numbers or text whose header
agrees with their size.  Nothing is unpickled.
"""

from __future__ import annotations

import ast
import io
import math
import os
import re
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crfx.errors import about

DAMAGED = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    OSError,  # an impossible offset
    EOFError,
    NotImplementedError,  # a zip version that zipfile does not know
    RuntimeError,  # an encrypted member; values nested too deeply
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
)
"""Errors of zipfile, zlib and the readers of values on damaged archives."""
_LOCAL_HEADER, _NAME_LENGTHS = 30, 26
"""Bytes before a member, and the place of the lengths of its name and extra field in them."""
_IMPOSSIBLE = 1100
"""Ratio of compression; deflate reaches 1032."""
_MOST_TIMES, _FREE_BYTES = 100, 1 << 28
"""Arrays may expand to this multiple of their size in the file, plus these bytes."""
_LARGEST_HEADER, _MOST_AXES = 4096, 64
"""Limits for an array's header, in bytes, and for its axes, which is NumPy's."""
_PLAIN = re.compile(r"[<>|](?:b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|[SU][0-9]{1,6})")
"""Types of plain numbers and text."""
_BYTES_AT_ONCE = 1 << 20

# Members of a zip archive -------------------------------------------------------------------------


def check_members(archive: zipfile.ZipFile) -> None:
    """Raise ValueError if an archive is malicious, before anything is read; O(members)."""
    members = archive.infolist()
    if len({member.filename for member in members}) != len(members):
        raise ValueError("a member is there twice")
    sizes = [_LOCAL_HEADER + len(each.orig_filename) + each.compress_size for each in members]
    begins = [each.header_offset for each in members]
    extents = sorted((at, at + size) for at, size in zip(begins, sizes, strict=True))
    if any(end > begin for (_, end), (begin, _) in pairwise(extents)):
        raise ValueError("members overlap")
    for member in members:
        name = member.filename
        if name != member.orig_filename:
            raise ValueError(f"it has a member {name!r}, which is called otherwise in the archive")
        if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
            raise ValueError(f"member {name} is no plain file")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"member {name} is compressed in an unknown way")
        if member.file_size > _IMPOSSIBLE * max(member.compress_size, 1):
            raise ValueError(f"member {name} claims an impossible size")


def check_expansion(what: str, packed: int, expanded: int, times: int, free: int) -> None:
    """Raise ValueError if ``packed`` bytes claim to expand beyond ``times`` as many + ``free``."""
    if expanded > free + times * packed:
        raise ValueError(
            f"{what} claim to expand from {packed} to {expanded} bytes: more than {times} times, "
            f"and {free}, are not believed"
        )


def member_bytes(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a whole member, expanded to its declared size at most."""
    size = archive.getinfo(name).file_size
    with archive.open(name) as member:
        raw = member.read(size)
    if len(raw) != size:
        raise ValueError(f"member {name} is cut off")
    return raw


# Arrays as .npy -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Header:
    """The header of an array, whose numbers begin at byte ``begin``."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    by_column: bool
    begin: int


def encode(array: npt.NDArray[Any]) -> bytes:
    """Return the bytes of a file; raise ValueError if the array holds objects."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def decode(raw: bytes) -> npt.NDArray[Any]:
    """Return the array that the bytes of a file hold."""
    return read_array(io.BytesIO(raw), len(raw))


def read_array(stream: Any, size: int) -> npt.NDArray[Any]:
    """Read an array of so many bytes from a stream; its numbers are in memory once."""
    raw = stream.read(min(size, _LARGEST_HEADER))
    header = read_header(raw, size)
    flat = np.empty(math.prod(header.shape), header.dtype)
    buffer, filled = flat.view(np.uint8).data, len(raw) - header.begin
    buffer[:filled] = raw[header.begin :]
    while filled < len(buffer):
        if not (n := stream.readinto(buffer[filled : filled + _BYTES_AT_ONCE])):
            break
        filled += n
    if filled != len(buffer):
        raise ValueError("an array is cut off")
    if header.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("an array holds truth values that are neither")
    if header.dtype.kind == "U":
        signs = flat.view(np.dtype(np.uint32).newbyteorder(header.dtype.byteorder))
        if signs.max(initial=0) > sys.maxunicode:  # Python crashes on such text
            raise ValueError("an array holds text of signs that are none")
    order: Literal["C", "F"] = "F" if header.by_column else "C"
    array = flat.reshape(header.shape, order=order)
    return array.astype(header.dtype.newbyteorder("="), copy=False)


def read_header(raw: bytes, size: int) -> Header:
    """Return the header at the start of bytes; it must agree with the ``size`` of the whole.

    NumPy's own reader would accept None as float64, and headers of Python 2 with a warning.
    """
    if raw[:8] not in (b"\x93NUMPY\x01\x00", b"\x93NUMPY\x02\x00"):
        raise ValueError("an array has an unknown format")
    begin = 10 if raw[6] == 1 else 12
    end = begin + int.from_bytes(raw[8:begin], "little")
    if end > min(len(raw), _LARGEST_HEADER):
        raise ValueError("an array's header is cut off")
    try:
        fields = ast.literal_eval(raw[begin:end].decode("latin1"))
        kind, shape, by_column = (fields[name] for name in ("descr", "shape", "fortran_order"))
        is_plain = isinstance(kind, str) and _PLAIN.fullmatch(kind)
        dtype = np.dtype(kind if is_plain else np.object_)  # TypeError: not on this platform
    except (SyntaxError, MemoryError, RecursionError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"an array's header cannot be read: {reason}") from None
    if not is_plain:
        raise ValueError(f"an array holds {kind!r}, not numbers or text")
    if not isinstance(shape, tuple) or len(shape) > _MOST_AXES:
        raise ValueError("an array has no shape")
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"an array has the impossible shape {shape}")
    if math.prod(shape) * dtype.itemsize != size - end or not dtype.itemsize:
        raise ValueError("an array's header does not agree with its size")
    return Header(dtype, shape, bool(by_column), end)


# Archives -----------------------------------------------------------------------------------------


class Npz:
    """An archive whose headers have been read; arrays are read on demand.

    ``known`` are the names that members may have; the arrays named in ``early`` are read at once.
    Errors do not name the file: callers add it.
    """

    def __init__(self, path: Path, known: Sequence[str], early: Sequence[str]) -> None:
        self.path = path
        self._verified: set[tuple[str, int]] = set()
        with self._opened() as archive:
            members = archive.infolist()
            for member in members:
                if member.filename not in {f"{name}.npy" for name in known}:
                    names = ", ".join(known)
                    raise ValueError(f"it holds {member.filename!r}: there may be {names}")
            check_members(archive)
            packed = sum(member.compress_size for member in members)
            expanded = sum(member.file_size for member in members)
            check_expansion("its arrays", packed, expanded, _MOST_TIMES, _FREE_BYTES)
            self.headers: dict[str, Header] = {}
            for member in members:
                name = member.filename.removesuffix(".npy")
                with about(name), archive.open(member) as stream:
                    raw = stream.read(min(member.file_size, _LARGEST_HEADER))
                    self.headers[name] = read_header(raw, member.file_size)
            self.early = {n: self._unpacked(archive, n) for n in early if n in self.headers}

    def read(self, *names: str) -> list[npt.NDArray[Any]]:
        """Read arrays as they are now; raise ValueError if their shapes have changed."""
        with self._opened() as archive:
            arrays = [self._array(archive, name) for name in names]
            for name, array in zip(names, arrays, strict=True):
                if array.shape != self.headers[name].shape:
                    raise ValueError(f"{name} has changed since the file was opened")
            return arrays

    def _array(self, archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
        """Read an array; the slow check of its checksum is done the first time only."""
        member = archive.getinfo(f"{name}.npy")
        if member.compress_type != zipfile.ZIP_STORED or (name, member.CRC) not in self._verified:
            array = self._unpacked(archive, name)
            self._verified.add((name, member.CRC))
            return array
        with self.path.open("rb") as file:
            file.seek(member.header_offset + _NAME_LENGTHS)
            n_name, n_extra = struct.unpack("<HH", file.read(4))
            file.seek(n_name + n_extra, os.SEEK_CUR)
            return read_array(file, member.file_size)

    @staticmethod
    def _unpacked(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
        member = archive.getinfo(f"{name}.npy")
        with about(name), archive.open(member) as stream:
            return read_array(stream, member.file_size)

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        try:
            with self.path.open("rb") as file, zipfile.ZipFile(file) as archive:
                yield archive
        except FileNotFoundError:
            raise ValueError("there is no such file") from None
        except (zipfile.BadZipFile, EOFError) as error:
            raise ValueError(f"no archive of arrays (npz), or not all of it: {error}") from None
        except DAMAGED as error:
            raise ValueError(str(error)) from None
