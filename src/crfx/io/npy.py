"""Arrays as .npy, read with suspicion: plain numbers or text whose header agrees with the size."""

from __future__ import annotations

import ast
import io
import math
import re
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

_LARGEST_HEADER = 4096
_MOST_AXES = 64
"""What NumPy can have."""


def encode(array: npt.NDArray[Any]) -> bytes:
    """The bytes of a file; ValueError where the array holds objects."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def decode(raw: bytes) -> npt.NDArray[Any]:
    """The array that a file holds.

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
        kind, shape, by_column = (header[name] for name in ("descr", "shape", "fortran_order"))
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
    if math.prod(shape) * dtype.itemsize != len(raw) - end or not dtype.itemsize:
        raise ValueError("an array's header does not agree with its size")
    order: Literal["C", "F"] = "F" if by_column else "C"
    flat = np.frombuffer(raw, dtype, offset=end) if end < len(raw) else np.zeros(0, dtype)
    if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("an array holds truth values that are neither")
    return flat.reshape(shape, order=order).astype(dtype.newbyteorder("="))
