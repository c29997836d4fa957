"""Model files made to harm: large when expanded, with odd names, with JSON that never ends."""

import io
import json
import stat
import struct
import time
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

from crfx.io import model_file
from crfx.io.model_file import read, write
from crfx.state import State

REFUSED = r"model\.crfx is not a model file of crfx: [^\n]+$"
MOST_BYTES = 100 << 20
MOST_SECONDS = 10.0
"""To refuse any of these; they would take gigabytes, or for ever."""
MANIFEST = json.dumps({"format_version": 1, "class": "x"})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.crfx"


def packed(path, members, kind=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("model.json", MANIFEST)
        for name, raw in members:
            archive.writestr(name, raw)


def refused(path, message):
    """Refused for that reason, soon, and without much memory."""
    tracemalloc.start()
    start = time.perf_counter()
    try:
        with pytest.raises(ValueError, match=REFUSED) as caught:
            read(path)
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - start < MOST_SECONDS
    assert message in str(caught.value)


# Names.


@pytest.mark.parametrize(
    "name",
    [
        "../evil.npy",
        "/etc/evil.npy",
        "C:\\evil.npy",
        "..\\evil.npy",
        "a/b.npy",
        "folder/",
        "readme.txt",
        "model.zip",
        "a.npy.exe",
        ".npy",
        "evil\n.npy",
        "ä.npy",
        "MODEL.JSON",
        "x" * 600 + ".npy",
    ],
    ids=lambda name: repr(name[:20]),
)
def test_names_that_no_model_has(path, name):
    packed(path, [(name, b"x")])
    refused(path, "which no model has")


def test_a_name_cut_off_by_a_zero(path):
    """zipfile reads it up to the zero; others would not."""
    packed(path, [("aXevil.npy", b"x")])
    path.write_bytes(path.read_bytes().replace(b"aXevil.npy", b"a.npy\0evil"))
    refused(path, "which is called otherwise in the archive")


def test_a_name_that_cannot_be_written(path):
    with pytest.raises(ValueError, match=r"no member '\.\./x\.npy'"):
        write(path, State({}, {"../x": np.zeros(1)}))
    assert not path.exists()


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFDIR, stat.S_IFCHR])
def test_members_that_are_no_files(path, mode):
    link = zipfile.ZipInfo("edge.npy")
    link.external_attr = (mode | 0o777) << 16
    packed(path, [(link, b"/etc/passwd")])
    refused(path, "no plain file")


# Sizes.


def test_a_bomb(path):
    """A gigabyte of zeros in a megabyte."""
    zeros = bytes(1 << 26)
    packed(path, [(f"x{k}.npy", zeros) for k in range(16)])
    assert path.stat().st_size < 2 << 20
    refused(path, "its .npy members claim to expand")


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_a_bomb_of_what_is_parsed(path, suffix):
    """Text and trees grow further once they are read: they may expand less."""
    name = "model.json" if suffix == "json" else "node.ubj"
    raw = b"[[" + b"[]," * (8 << 20) + b"[]]]"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, raw)
        if suffix == "ubj":
            archive.writestr("model.json", MANIFEST)
    refused(path, f"its .{suffix} members claim to expand")


def test_a_member_larger_than_it_says(path):
    """Its directory tells of a few bytes; what is there would expand to a gigabyte."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    raw = b"".join(deflate.compress(bytes(1 << 24)) for _ in range(64)) + deflate.flush()
    packed(path, [("edge.npy", raw)], zipfile.ZIP_STORED)
    found = bytearray(path.read_bytes())
    for magic, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = found.rindex(magic)
        struct.pack_into("<H", found, start + at, zipfile.ZIP_DEFLATED)
        struct.pack_into("<I", found, start + at + 14, 200)
    path.write_bytes(found)
    refused(path, "")


def test_sizes_in_64_bits(path):
    packed(path, [("edge.npy", b"x" * 100)])
    raw = bytearray(path.read_bytes())
    at = raw.rindex(b"PK\x01\x02")
    struct.pack_into("<I", raw, at + 24, 2**32 - 1)
    path.write_bytes(raw)
    refused(path, "")


def test_members_that_reach_into_one_another(path):
    """One begins inside the other, right after its header."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("edge.npy", b"x" * 1000)
    body = inner.getvalue()[: 30 + len("edge.npy") + 1000]
    packed(path, [("outer.npy", body)], zipfile.ZIP_STORED)
    raw = path.read_bytes()
    entry = bytearray(inner.getvalue()[inner.getvalue().index(b"PK\x01\x02") :][: 46 + 8])
    struct.pack_into("<I", entry, 42, raw.index(body))
    end = bytearray(raw[raw.index(b"PK\x05\x06") :])
    directory = raw[raw.index(b"PK\x01\x02") : raw.index(b"PK\x05\x06")] + bytes(entry)
    struct.pack_into("<2HI", end, 8, 3, 3, len(directory))
    path.write_bytes(raw[: raw.index(b"PK\x01\x02")] + directory + bytes(end))
    refused(path, "members overlap")


def test_what_shrinks_too_well_is_written_as_it_is(path, monkeypatch):
    """So that everything which can be written can be read."""
    monkeypatch.setattr(model_file, "FREE_BYTES", {".json": 100, ".npy": 2000, ".ubj": 2000})
    contents = State(
        {"zeros": [0] * 2000},
        {name: np.zeros(5000) for name in "abc"} | {"random": np.random.default_rng(0).random(500)},
        {"node": bytes(9000), "edge0": bytes(range(256)) * 30},
    )
    write(path, contents)
    found = read(path)
    assert found.values == contents.values
    assert found.blobs == contents.blobs
    with zipfile.ZipFile(path) as archive:
        kinds = {member.filename: member.compress_type for member in archive.infolist()}
    assert kinds["b.npy"] == kinds["model.json"] == kinds["node.ubj"] == zipfile.ZIP_STORED
    assert kinds["random.npy"] == zipfile.ZIP_DEFLATED
    packed(path, [(f"{name}.npy", bytes(40_000)) for name in "abc"])
    refused(path, "claim to expand")


def test_a_zip_in_a_zip(path):
    """It is bytes like others, and never unpacked."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(1 << 26))
    packed(path, [("node.ubj", inner.getvalue())])
    assert read(path).blobs["node"] == inner.getvalue()
    packed(path, [("node.npy", inner.getvalue())])
    refused(path, "unknown format")


# The manifest.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format_version": 1, "a": NaN}', "has NaN, which is no JSON"),
        ('{"format_version": 1, "a": -Infinity}', "has -Infinity, which is no JSON"),
        ('{"format_version": 1, "a": 1e999}', "1e999, which is too large"),
        ('{"format_version": 1, "a": ' + "9" * 5000 + "}", "digits"),
        ('{"format_version": 1, "a": 1, "a": 2}', "says something twice"),
        ('{"format_version": 1, "format_version": 2}', "says something twice"),
        ('{"format_version": true}', "version True"),
        ('{"format_version": 2}', "version 2, this crfx reads up to 1: upgrade crfx"),
        ('{"format_version": 99999999999999999999}', "upgrade crfx"),
        ("[" * 100_000, "recursion"),
        ('{"a":' * 100_000, "recursion"),
        ('{"format_version": 1, "a": ' + "[" * 5000 + "]" * 5000 + "}", "recursion"),
        ('"text"', "holds no object"),
        ("[1]", "holds no object"),
        ("\ufeff{}", "BOM"),
        ("{'a': 1}", "property name"),
        ("", "Expecting value"),
    ],
    ids=lambda text: repr(text[:24]),
)
def test_json_that_is_none(path, text, message):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", text)
    refused(path, message)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin1"])
def test_other_encodings(path, encoding):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", '{"format_version": 1, "a": "ä"}'.encode(encoding))
    refused(path, "")


def test_the_companion(path):
    """What the refusals above start from is read."""
    packed(path, [("edge.npy", b"\x93NUMPY\x01\x00" + _header()), ("node.ubj", b"x")])
    assert read(path).values == {"class": "x"}


def _header():
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}"
    return struct.pack("<H", len(text)) + text


def test_members_that_nobody_asked_for(path):
    write(path, State({}, {"a": np.zeros(1), "b": np.zeros(1)}, {"c": b"x"}))
    found = read(path)
    assert found.has("a")  # which is not yet asking
    for name, message in (("a", r"its member a\.npy"), ("b", r"b\.npy"), ("c", r"c\.ubj")):
        with pytest.raises(ValueError, match=message):
            found.check_all_read()
        assert found.has(name) == (found.blob(name) is None)
        if found.has(name):
            found.array(name)
    found.check_all_read()


def test_the_same_contents_give_the_same_bytes(path, monkeypatch):
    contents = State({"a": 1}, {"x": np.arange(5)}, {"t": b"abc"})
    write(path, contents)
    first = path.read_bytes()
    monkeypatch.setattr(time, "time", lambda: 2e9)
    write(path, contents)
    assert path.read_bytes() == first
