"""Universal Binary JSON, as far as XGBoost's model files use it.

Objects become dicts, typed arrays become NumPy arrays, other arrays become lists.  The reader
checks every length against what is left of the input: no input makes it read or allocate more.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

# By marker of a number: its big-endian form, and its dtype in the file and in memory.
_ONE = {
    bytes([marker]): struct.Struct(f">{kind}")
    for marker, kind in zip(b"UiIlLdD", "Bbhiqfd", strict=True)
}
_DTYPES = {marker: np.dtype(form.format) for marker, form in _ONE.items()}
_NATIVE = {marker: dtype.newbyteorder("=") for marker, dtype in _DTYPES.items()}
_MARKERS = {dtype: marker for marker, dtype in _NATIVE.items()}
_MAX_DEPTH = 32


def decode(data: bytes) -> Any:
    """Read one value; raise ValueError if the bytes are no such value, or more follow."""
    reader = _Reader(data)
    value = reader.value(0)
    if reader.at != len(data):
        raise ValueError(f"{len(data) - reader.at} bytes follow the end of the document")
    return value


def encode(value: Any) -> bytes:
    """Write a value of dicts, lists, NumPy arrays, strings, ints and floats."""
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if count < 0 or count > len(self.data) - self.at:
            raise ValueError(f"the document is cut off at byte {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def peek(self) -> bytes:
        return self.data[self.at : self.at + 1]

    def value(self, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError("the document is nested too deeply")
        marker = self.take(1)
        if marker in _ONE:
            return self.number(marker)
        if marker == b"{":
            return self.mapping(depth)
        if marker == b"[":
            return self.sequence(depth)
        if marker == b"S":
            return self.text()
        if marker in b"TF":
            return marker == b"T"
        if marker == b"Z":
            return None
        raise ValueError(f"unknown marker {marker!r} at byte {self.at - 1}")

    def number(self, marker: bytes) -> int | float:
        form = _ONE[marker]
        number: int | float = form.unpack(self.take(form.size))[0]
        return number

    def length(self) -> int:
        marker = self.take(1)
        if marker not in b"UiIlL" or not marker:
            raise ValueError(f"a length is expected at byte {self.at - 1}")
        return int(self.number(marker))

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8")

    def mapping(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while self.peek() != b"}":
            key = self.text()
            if key in values:  # readers differ in which of the two they believe
                raise ValueError(f"the key {key!r} is there twice, at byte {self.at}")
            values[key] = self.value(depth + 1)
        self.take(1)
        return values

    def sequence(self, depth: int) -> Any:
        if self.peek() == b"$":
            self.take(1)
            marker = self.take(1)
            if marker not in _ONE or self.take(1) != b"#":
                raise ValueError(f"an array of unknown type ends at byte {self.at}")
            dtype, count = _DTYPES[marker], self.length()
            return np.frombuffer(self.take(count * dtype.itemsize), dtype).astype(_NATIVE[marker])
        if self.peek() == b"#":
            self.take(1)
            return [self.value(depth + 1) for _ in range(self._bounded(self.length()))]
        items = []
        while self.peek() != b"]":
            items.append(self.value(depth + 1))
        self.take(1)
        return items

    def _bounded(self, count: int) -> int:
        if count < 0 or count > len(self.data) - self.at:  # an item takes a byte or more
            raise ValueError(f"the document is cut off at byte {self.at}")
        return count


def _length(count: int) -> bytes:
    return b"L" + struct.pack(">q", count)


def _text(value: str) -> bytes:
    raw = value.encode("utf-8")
    return _length(len(raw)) + raw


def _write(value: Any, parts: list[bytes]) -> None:
    if isinstance(value, np.ndarray):
        marker = _MARKERS.get(value.dtype.newbyteorder("="))
        if marker is None or value.ndim != 1:
            raise ValueError(f"an array of {value.dtype}, {value.ndim} axes, cannot be written")
        parts += [b"[$", marker, b"#", _length(len(value))]
        parts.append(value.astype(_DTYPES[marker]).tobytes())
    elif isinstance(value, dict):
        parts.append(b"{")
        for key, item in value.items():
            parts.append(_text(key))
            _write(item, parts)
        parts.append(b"}")
    elif isinstance(value, list):
        parts += [b"[#", _length(len(value))]
        for item in value:
            _write(item, parts)
    elif isinstance(value, str):
        parts += [b"S", _text(value)]
    elif isinstance(value, bool) or value is None:
        parts.append(b"Z" if value is None else b"T" if value else b"F")
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{value} does not fit into 64 bits")
        parts.append(_length(value))
    elif isinstance(value, float):
        parts.append(b"D" + struct.pack(">d", value))
    else:
        raise ValueError(f"a {type(value).__name__} cannot be written")
