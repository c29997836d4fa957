"""Arrays as .npy, read with suspicion: plain numbers or text whose header agrees with the size."""

from __future__ import annotations

import ast
import io
import math
import re
import sys
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

LARGEST_HEADER = 4096
"""Bytes that a header may have."""
_BYTES_AT_ONCE = 1 << 20
_MOST_AXES = 64
"""What NumPy can have."""


def encode(array: npt.NDArray[Any]) -> bytes:
    """The bytes of a file; ValueError where the array holds objects."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


@dataclass(frozen=True)
class Header:
    """What is said of an array before its numbers come, which begin at byte ``begin``."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    by_column: bool
    begin: int

    def array(self, flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The array, from its numbers as they lie in the file."""
        if self.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
            raise ValueError("an array holds truth values that are neither")
        if self.dtype.kind == "U":
            signs = flat.view(np.dtype(np.uint32).newbyteorder(self.dtype.byteorder))
            if signs.max(initial=0) > sys.maxunicode:  # no text has it, and Python breaks off
                raise ValueError("an array holds text of signs that are none")
        order: Literal["C", "F"] = "F" if self.by_column else "C"
        return flat.reshape(self.shape, order=order)


def decode(raw: bytes) -> npt.NDArray[Any]:
    """The array that a file holds.

    Read here and not by NumPy, which would unpickle if asked, and whose parser of old headers warns
    and raises in its own ways.
    """
    found = header(raw, len(raw))
    own = found.dtype
    flat = (
        np.frombuffer(raw, own, offset=found.begin) if found.begin < len(raw) else np.zeros(0, own)
    )
    return found.array(flat).astype(own.newbyteorder("="))


def read_header(stream: Any, size: int) -> Header:
    """The header of an array of so many bytes, of which no more than that is read."""
    return header(stream.read(min(size, LARGEST_HEADER)), size)


def read(stream: Any, size: int) -> npt.NDArray[Any]:
    """As `decode`, from a stream: the numbers are in memory once, not twice."""
    raw = stream.read(min(size, LARGEST_HEADER))
    found = header(raw, size)
    flat = np.empty(math.prod(found.shape), found.dtype)
    room, at = flat.view(np.uint8).data, len(raw) - found.begin
    room[:at] = raw[found.begin :]
    while at < len(room) and (n := stream.readinto(room[at : at + _BYTES_AT_ONCE])):
        at += n
    if at != len(room):
        raise ValueError("an array is cut off")
    return found.array(flat).astype(found.dtype.newbyteorder("="), copy=False)


def header(raw: bytes, size: int) -> Header:
    """The header that bytes begin with; it must agree with the size of the whole."""
    if raw[:8] not in (b"\x93NUMPY\x01\x00", b"\x93NUMPY\x02\x00"):
        raise ValueError("an array has an unknown format")
    begin = 10 if raw[6] == 1 else 12
    end = begin + int.from_bytes(raw[8:begin], "little")
    if end > min(len(raw), LARGEST_HEADER):
        raise ValueError("an array's header is cut off")
    try:
        told_of = ast.literal_eval(raw[begin:end].decode("latin1"))
        kind, shape, by_column = (told_of[name] for name in ("descr", "shape", "fortran_order"))
    except (SyntaxError, MemoryError, RecursionError, KeyError, TypeError) as error:
        told = " ".join(str(error).split())
        raise ValueError(f"an array's header cannot be read: {told}") from None
    if not isinstance(kind, str) or not re.fullmatch("[<>|][biufcSU][0-9]{1,6}", kind):
        raise ValueError(f"an array holds {kind!r}, not numbers or text")
    try:
        dtype = np.dtype(kind)
    except TypeError:
        raise ValueError(f"an array holds {kind!r}, not numbers or text") from None
    if not isinstance(shape, tuple) or len(shape) > _MOST_AXES:
        raise ValueError("an array has no shape")
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"an array has the impossible shape {shape}")
    if math.prod(shape) * dtype.itemsize != size - end or not dtype.itemsize:
        raise ValueError("an array's header does not agree with its size")
    return Header(dtype, shape, bool(by_column), end)
