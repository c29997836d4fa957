"""The model file: a zip of model.json, .npy arrays and XGBoost's trees.  Loading runs no code.

This is version 1; docs/model-file.md describes it.  Nothing is unpacked to disk.  Every member is
checked against its declared size before it is used, and the expansion of members is limited, so
that a small file cannot demand much memory or time.
"""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
import zlib
from collections import Counter
from typing import Any, NoReturn

from crfx.io.npz import (
    DAMAGED,
    check_expansion,
    check_members,
    decode,
    encode,
    member_bytes,
)
from crfx.io.whole_file import whole_file
from crfx.state import State

FORMAT_VERSION = 1
MOST_TIMES = {".json": 20, ".npy": 100, ".ubj": 20}
FREE_BYTES = {".json": 1 << 24, ".npy": 1 << 28, ".ubj": 1 << 24}
"""Members of a kind may expand to this multiple of their size in the file, plus these bytes."""
_MANIFEST = "model.json"
_NAME = re.compile(r"model\.json|[A-Za-z0-9_.]{1,500}\.(?:npy|ubj)")
_LEVEL = 1


def write(path: str | os.PathLike[str], state: State) -> None:
    """Write a model file, whole or not at all; the same state gives the same bytes."""
    with whole_file(path) as file:
        _write(file, state)


def _write(file: Any, state: State) -> None:
    manifest = {"format_version": FORMAT_VERSION, **state.values}
    expanded: Counter[str] = Counter()
    with zipfile.ZipFile(file, "w") as archive:
        text = json.dumps(manifest, indent=1, allow_nan=False)
        _add(archive, _MANIFEST, text.encode(), expanded)
        for name, array in state.arrays.items():
            _add(archive, f"{name}.npy", encode(array), expanded)
        for name, blob in state.blobs.items():
            _add(archive, f"{name}.ubj", blob, expanded)


def _add(archive: zipfile.ZipFile, name: str, raw: bytes, expanded: Counter[str]) -> None:
    """Compress a member, unless it would expand beyond the limits of a reader."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"a model file can have no member {name!r}")
    suffix = _suffix(name)
    expanded[suffix] += len(raw)
    kind = zipfile.ZIP_DEFLATED
    if expanded[suffix] > FREE_BYTES[suffix]:
        size = len(zlib.compress(raw, _LEVEL))
        kind = zipfile.ZIP_STORED if size * MOST_TIMES[suffix] < len(raw) else kind
    member = zipfile.ZipInfo(name)  # without the time
    member.external_attr = 0o644 << 16
    archive.writestr(member, raw, kind, _LEVEL)


def read(path: str | os.PathLike[str]) -> State:
    """Read a model file; raise ValueError with the name of the file if it is not one."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _read(archive)
        except DAMAGED as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{os.fspath(path)} is not a model file of crfx: {reason}") from None


def _read(archive: zipfile.ZipFile) -> State:
    _check_members(archive)
    values = _values(member_bytes(archive, _MANIFEST))
    version = values.pop("format_version")
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise ValueError(
            f"its format is version {version}, this crfx reads up to {FORMAT_VERSION}: upgrade crfx"
        )
    names = archive.namelist()
    arrays = {n[:-4]: decode(member_bytes(archive, n)) for n in names if n.endswith(".npy")}
    blobs = {n[:-4]: member_bytes(archive, n) for n in names if n.endswith(".ubj")}
    return State(values, arrays, blobs)


def _check_members(archive: zipfile.ZipFile) -> None:
    """Raise ValueError at members that `write` does not write, before any is read; O(members)."""
    expanded: Counter[str] = Counter()
    packed: Counter[str] = Counter()
    for member in archive.infolist():
        if not _NAME.fullmatch(member.filename):
            raise ValueError(f"it has a member {member.filename!r}, which no model has")
        suffix = _suffix(member.filename)
        expanded[suffix] += member.file_size
        packed[suffix] += member.compress_size
    check_members(archive)
    for suffix, size in expanded.items():
        limits = MOST_TIMES[suffix], FREE_BYTES[suffix]
        check_expansion(f"its {suffix} members", packed[suffix], size, *limits)


def _values(raw: bytes) -> dict[str, Any]:
    """Return the values of model.json: strict JSON, no name twice."""
    values = json.loads(
        raw.decode("utf-8"), parse_constant=_invalid, parse_float=_finite, object_pairs_hook=_object
    )
    if not isinstance(values, dict):
        raise ValueError(f"{_MANIFEST} holds no object")
    return values


def _invalid(text: str) -> NoReturn:
    raise ValueError(f"{_MANIFEST} has {text}, which is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{_MANIFEST} has the number {text[:40]}, which is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError(f"{_MANIFEST} says something twice")
    return values


def _suffix(name: str) -> str:
    return name[name.rindex(".") :]
