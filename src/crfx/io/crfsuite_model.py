"""Models of CRFsuite: its own binary file, read without CRFsuite.

All numbers are little-endian, offsets count from the start of the file::

    header      "lCRF", file size, "FOMC", version 100, counts, offsets of the parts below
    FEAT        (type, source, target, weight): type 0 from attribute to label, 1 label to label
    CQDB        names of the labels; a second one of the attributes
    LFRF, AFRF  which features a label, or an attribute, is the source of

CRFsuite tags by the references, so they must agree with the features.  Files are not trusted: every
offset and count is compared with the size before anything is read.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_HEADER = struct.Struct("<4sI4s9I")
_CHUNK = struct.Struct("<4s2I")
_NAMES = struct.Struct("<4s5I")
_FEATURE = np.dtype([("type", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])
_VERSION = 100
_BYTE_ORDER = 0x62445371
_STATE, _TRANSITION = 0, 1

Integers = npt.NDArray[np.int64]
Array64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CRFsuiteModel:
    """Weights by number of attribute and label, in the order of the file.

    ``states`` are arrays of attributes, labels and weights; ``transitions`` of labels, next labels
    and weights.  Repeated entries add up.
    """

    labels: list[str]
    attributes: list[str]
    states: tuple[Integers, Integers, Array64]
    transitions: tuple[Integers, Integers, Array64]


def read(path: str | os.PathLike[str]) -> CRFsuiteModel:
    """Read a model; raise ValueError with the name of the file if it is invalid.

    O(size of the file) in time and memory.
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        return _model(data)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not a model of CRFsuite: {error}") from None


def _model(data: bytes) -> CRFsuiteModel:
    header = _unpacked(_HEADER, data, 0, "header")
    magic, size, kind, version = header[:4]
    n_labels, n_attributes = header[5:7]
    at_features, at_labels, at_attributes, at_label_refs, at_attribute_refs = header[7:]
    if magic != b"lCRF":
        raise ValueError("it does not begin with lCRF")
    if kind != b"FOMC" or version != _VERSION:
        raise ValueError(f"it is of type {kind!r}, version {version}: FOMC, {_VERSION} is read")
    if size != len(data):
        raise ValueError(f"it has {len(data)} bytes, but says {size}")
    features = _features(data, at_features)
    labels = _names(data, at_labels, n_labels, "label")
    attributes = _names(data, at_attributes, n_attributes, "attribute")
    sources = {_STATE: n_attributes, _TRANSITION: n_labels}
    for type_, n_sources in sources.items():
        is_type = features["type"] == type_
        if (features["source"][is_type] >= n_sources).any():
            raise ValueError("a weight belongs to an attribute or label that is not there")
    if (features["type"] > _TRANSITION).any() or (features["target"] >= n_labels).any():
        raise ValueError("a weight is of unknown type, or for a label that is not there")
    if not np.isfinite(features["weight"]).all():
        raise ValueError("its weights are not all finite")
    _check_references(data, at_attribute_refs, b"AFRF", n_attributes, features, _STATE)
    _check_references(data, at_label_refs, b"LFRF", n_labels, features, _TRANSITION)
    return CRFsuiteModel(
        labels, attributes, _triples(features, _STATE), _triples(features, _TRANSITION)
    )


def _unpacked(form: struct.Struct, data: bytes, at: int, what: str) -> tuple[Any, ...]:
    if at > len(data) - form.size:
        raise ValueError(f"its {what} is cut off")
    return form.unpack_from(data, at)


def _numbers(data: bytes, at: int, count: int, what: str) -> npt.NDArray[np.uint32]:
    if at > len(data) or count > (len(data) - at) // 4:
        raise ValueError(f"its {what} are cut off")
    return np.frombuffer(data, "<u4", count, at)


def _features(data: bytes, at: int) -> npt.NDArray[Any]:
    magic, _, count = _unpacked(_CHUNK, data, at, "list of weights")
    if magic != b"FEAT":
        raise ValueError("there are no weights where it says")
    begin = at + _CHUNK.size
    if count > (len(data) - begin) // _FEATURE.itemsize:
        raise ValueError("its weights are cut off")
    return np.frombuffer(data, _FEATURE, count, begin)


def _names(data: bytes, at: int, count: int, what: str) -> list[str]:
    """Return names by number, from a database of records (number, size, name, 0)."""
    magic, size, _, order, n_records, at_records = _unpacked(_NAMES, data, at, f"{what}s")
    if magic != b"CQDB" or order != _BYTE_ORDER:
        raise ValueError(f"there are no {what}s where it says")
    if n_records != count or size > len(data) - at:
        raise ValueError(f"it has {count} {what}s, but names of {n_records}, or they are cut off")
    part = data[at : at + size]
    offsets = _numbers(part, at_records, count, f"{what}s").tolist()
    names = [_name(part, offset, number, what) for number, offset in enumerate(offsets)]
    if len(set(names)) < count:
        raise ValueError(f"a {what} is there twice")
    return names


def _name(part: bytes, at: int, expected: int, what: str) -> str:
    if at > len(part) - 8:
        raise ValueError(f"{what} {expected} has no name")
    number, size = struct.unpack_from("<2I", part, at)
    raw = part[at + 8 : at + 8 + size]
    if number != expected or not size or len(raw) < size or raw.find(b"\0") != size - 1:
        raise ValueError(f"the name of {what} {expected} is broken")
    try:
        return raw[:-1].decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(
            f"the name of {what} {expected}, {raw[:-1]!r}, is no UTF-8: train it anew on such text"
        ) from None


def _check_references(
    data: bytes, at: int, magic: bytes, count: int, features: npt.NDArray[Any], type_: int
) -> None:
    """Raise ValueError unless every source refers to its features, to each of them once."""
    name = magic.decode()
    start_of_part, _, n_lists = _unpacked(_CHUNK, data, at, f"{name} part")
    if start_of_part != magic or n_lists < count:
        raise ValueError(f"there is no {name} part where it says")
    starts = _numbers(data, at + _CHUNK.size, count, f"{name} references")
    lists, n_left = [], len(features)
    for start in starts.tolist():
        (size,) = _numbers(data, start, 1, f"{name} references").tolist()
        n_left -= size
        if n_left < 0:  # lists may overlap: they must not grow beyond the file
            raise ValueError(f"its {name} references are more than its weights")
        lists.append(_numbers(data, start + 4, size, f"{name} references"))
    listed = np.concatenate([np.zeros(0, np.uint32), *lists])
    if not np.array_equal(np.sort(listed), np.flatnonzero(features["type"] == type_)):
        raise ValueError(f"its {name} references are not those of its weights")
    sources = np.repeat(np.arange(count), [len(each) for each in lists])
    if not np.array_equal(features["source"][listed], sources):
        raise ValueError(f"its {name} references belong to others than its weights say")


def _triples(features: npt.NDArray[Any], type_: int) -> tuple[Integers, Integers, Array64]:
    rows = features[features["type"] == type_]
    source, target = (rows[name].astype(np.int64) for name in ("source", "target"))
    return source, target, rows["weight"].astype(np.float64)
