"""Writing and reading model files: whole or not at all; test_bad_model_file.py has bad ones."""

import io
import json
import os
import stat
import struct
import time
import zipfile

import numpy as np
import pytest

from crfx.io import model_file
from crfx.io.model_file import read, write
from crfx.state import State


def contents():
    random = np.random.default_rng(0)
    return State(
        {"class": "GBCRF", "labels": ["a", "ä", "日本"], "n": 3, "deep": {"x": [1.5, None, True]}},
        {
            "edge": random.normal(size=(3, 2, 2)).astype(np.float32),
            "base.ends.start": np.arange(4),
            "none": np.zeros((0, 3), dtype=np.float32),
            "scalar": np.array(2.5),
            "text": np.array(["x", "yz"]),
            "flags": np.array([True, False]),
            "columns": np.asfortranarray(random.normal(size=(3, 4))),
        },
        {"node": bytes(random.integers(256, size=300, dtype=np.uint8)), "empty": b""},
    )


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "model.crfx", contents())
    return tmp_path / "model.crfx"


def assert_same(state, expected):
    assert state.values == expected.values
    assert state.blobs == expected.blobs
    assert state.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        assert state.arrays[name].dtype == array.dtype
        assert state.arrays[name].shape == array.shape
        np.testing.assert_array_equal(state.arrays[name], array)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, new, compression=zipfile.ZIP_DEFLATED):
    """The same archive with some members replaced."""
    whole = members(path) | new
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, raw in whole.items():
            archive.writestr(name, raw)


def test_read_gives_back_what_was_written(path, monkeypatch):
    assert_same(read(path), contents())
    monkeypatch.chdir(path.parent)
    write("other.crfx", contents())
    assert_same(read("other.crfx"), contents())
    assert sorted(os.listdir()) == ["model.crfx", "other.crfx"]
    edge = read(path).arrays["edge"]
    edge += 1  # arrays are writable
    with pytest.raises(FileNotFoundError):
        read("none.crfx")


@pytest.mark.parametrize("change", ["values", "arrays", "blobs"])
def test_assert_same_sees_a_difference(path, change):
    """The companion of the round trip."""
    other = contents()
    if change == "values":
        other.values["n"] = 4
    elif change == "arrays":
        other.arrays["edge"][0, 0, 0] += 1
    else:
        other.blobs["empty"] = b"x"
    with pytest.raises(AssertionError):
        assert_same(read(path), other)


def test_write_makes_a_zip_that_others_can_read(path, monkeypatch):
    stored = members(path)
    assert json.loads(stored["model.json"])["format_version"] == model_file.FORMAT_VERSION
    expected = contents().arrays["edge"]
    np.testing.assert_array_equal(np.load(io.BytesIO(stored["edge.npy"])), expected)
    assert stored["node.ubj"] == contents().blobs["node"]
    first = path.read_bytes()
    monkeypatch.setattr(time, "time", lambda: 2e9)
    old = os.umask(0o027)
    try:
        write(path, contents())
    finally:
        os.umask(old)
    assert path.read_bytes() == first  # at another time
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("version", [1, 2])
def test_read_takes_arrays_of_other_writers(path, version):
    """Headers of two versions, big-endian numbers, members that are not compressed."""
    header = repr({"descr": ">f4", "fortran_order": False, "shape": (2, 3)}).encode()
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    numbers = np.arange(6, dtype=">f4")
    raw = b"\x93NUMPY" + bytes([version, 0]) + size + header + numbers.tobytes()
    rewrite(path, {"edge.npy": raw}, zipfile.ZIP_STORED)
    edge = read(path).arrays["edge"]
    assert edge.dtype == np.float32
    np.testing.assert_array_equal(edge, np.arange(6).reshape(2, 3))


def test_write_stores_highly_compressible_members(path, monkeypatch):
    """So that everything which can be written can be read."""
    monkeypatch.setattr(model_file, "FREE_BYTES", {".json": 100, ".npy": 2000, ".ubj": 2000})
    random = np.random.default_rng(0).random(500)
    compressible = State(
        {"zeros": [0] * 2000},
        {name: np.zeros(5000) for name in "abc"} | {"random": random},
        {"node": bytes(9000), "edge0": bytes(range(256)) * 30},
    )
    write(path, compressible)
    assert_same(read(path), compressible)
    with zipfile.ZipFile(path) as archive:
        kinds = {member.filename: member.compress_type for member in archive.infolist()}
    assert kinds["b.npy"] == kinds["model.json"] == kinds["node.ubj"] == zipfile.ZIP_STORED
    assert kinds["random.npy"] == zipfile.ZIP_DEFLATED
    rewrite(path, {f"{name}.npy": bytes(40_000) for name in "abc"})
    with pytest.raises(ValueError, match="claim to expand"):
        read(path)


class Full(Exception):
    """Stands for whatever may go wrong while a file is written."""


def fail(*arguments, **options):
    raise Full


def fails_at(monkeypatch, call):
    """Let the ``call``-th member that is written fail."""
    original, count = zipfile.ZipFile.writestr, iter(range(1000))

    def writestr(self, *arguments, **options):
        return (fail if next(count) == call else original)(self, *arguments, **options)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", writestr)


@pytest.mark.parametrize("call", [*range(10), "fsync", "replace", "chmod"])
def test_write_that_fails_leaves_the_old_file_or_none(path, monkeypatch, call):
    before = path.read_bytes()
    for target in (path, path.with_name("new.crfx")):
        if isinstance(call, str):
            monkeypatch.setattr(os, call, fail)
        else:
            fails_at(monkeypatch, call)
        with pytest.raises(Full):
            write(target, State({"other": 1}, contents().arrays, contents().blobs))
        monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (State({"x": float("nan")}), ValueError),  # NaN is no JSON
        (State({"x": object()}), TypeError),
        (State({}, {"x": np.array([{}], dtype=object)}), ValueError),  # objects are pickled
        (State({}, {"../x": np.zeros(1)}), ValueError),
    ],
)
def test_write_rejects_unsupported_values(path, bad, error):
    before = path.read_bytes()
    with pytest.raises(error):
        write(path, bad)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
