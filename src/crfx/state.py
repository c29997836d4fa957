"""State: what a model file holds, plain values, arrays and blobs of bytes, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

_MOST = 2**62
"""Counts beyond it would not fit into the arrays they are compared with."""


@dataclass(eq=False)
class State:
    """Values that JSON can hold, arrays and blobs; every access to those of a file is checked.

    ``prefix`` begins the names of all arrays and blobs, see `nested`.
    """

    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    prefix: str = ""
    _read: set[str] = field(default_factory=set)

    def nested(self, values: dict[str, Any], prefix: str = "") -> State:
        """Return the state of a part: values of its own, names that begin with ``prefix``."""
        return State(values, self.arrays, self.blobs, self.prefix + prefix, self._read)

    def put(self, name: str, array: npt.NDArray[Any]) -> None:
        """Add an array."""
        self.arrays[self.prefix + name] = array

    def put_blob(self, name: str, blob: bytes) -> None:
        """Add a blob."""
        self.blobs[self.prefix + name] = blob

    def has(self, name: str) -> bool:
        """Return whether there is an array of this name."""
        return self.prefix + name in self.arrays

    def array(
        self, name: str, dtype: npt.DTypeLike | None = None, shape: tuple[int, ...] | None = None
    ) -> npt.NDArray[Any]:
        """Return an array; raise ValueError unless it has this type and shape and is finite.

        Without ``dtype`` any array will do, without ``shape`` one of any shape.
        """
        name = self.prefix + name
        self._read.add(f"{name}.npy")
        array = self.arrays[name]
        if dtype is not None and array.dtype != dtype:
            raise ValueError(f"the array {name} does not fit: it is of another type, {array.dtype}")
        if shape is not None and array.shape != shape:
            raise ValueError(f"the array {name} does not fit: it has shape {array.shape}")
        if dtype is not None and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"the array {name} does not fit: it is not all finite")
        return array

    def blob(self, name: str) -> bytes | None:
        """Return a blob, or None."""
        self._read.add(f"{self.prefix + name}.ubj")
        return self.blobs.get(self.prefix + name)

    def check_all_read(self) -> None:
        """Raise ValueError if the state has arrays or blobs that no part of the model has read."""
        members = [f"{name}.npy" for name in self.arrays] + [f"{name}.ubj" for name in self.blobs]
        for member in members:
            if member not in self._read:
                raise ValueError(f"no part of the model asks for its member {member}")

    def whole(self, name: str, least: int = 0, most: int = _MOST) -> int:
        """Return a whole number; raise ValueError if it is none, or out of range."""
        value = self.values[name]
        if type(value) is not int or not least <= value <= most:
            end = "on" if most == _MOST else f"to {most}"
            shown = repr(value)[:60]
            raise ValueError(f"its {name} is {shown}: it must be a whole number from {least} {end}")
        return value

    def truth(self, name: str, default: bool | None = None) -> bool:
        """Return True or False; ``default`` is for files of early versions, which lack the name."""
        value = self.values[name] if default is None else self.values.get(name, default)
        if not isinstance(value, bool):
            raise ValueError(f"its {name} is {repr(value)[:60]}: it must be true or false")
        return value


def to_number(value: Any, what: str) -> float:
    """Return a number as it is; raise ValueError for anything else, also for text."""
    if type(value) is not float and not (type(value) is int and abs(value) <= _MOST):
        raise ValueError(f"{what} is {repr(value)[:60]}: it must be a number")
    return value


def to_numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Return numbers by name, as floats."""
    return {name: float(to_number(value, f"its {name}")) for name, value in values.items()}


def listed(value: Any) -> list[Any]:
    """Return a list; raise ValueError for anything else, also for text."""
    if not isinstance(value, list):
        raise ValueError(f"it has {repr(value)[:60]} where a list belongs")
    return value


def texts(value: Any) -> list[str]:
    """Return a list of texts."""
    if not all(isinstance(entry, str) for entry in listed(value)):
        raise ValueError("it has names that are no text")
    return listed(value)
