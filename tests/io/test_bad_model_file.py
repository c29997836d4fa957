"""Model files that are damaged or made to harm: refused soon, in one line, nothing executed.

Simple mistakes are in tests/bad_inputs/listed/loaders.py.
"""

import io
import json
import os
import pickle
import stat
import struct
import time
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

from crfx.io.model_file import read, write
from crfx.state import State

REFUSED = r"model\.crfx is not a model file of crfx: [^\n]+$"
MOST_BYTES = 100 << 20
MOST_SECONDS = 10.0
"""To refuse any of these; they would take gigabytes, or for ever."""
MUTATIONS = 1500
MANIFEST = json.dumps({"format_version": 1, "class": "x"})
HEADER = {"descr": "<f4", "fortran_order": False, "shape": (2, 3)}
NUMBERS = np.arange(6, dtype="<f4").tobytes()


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npy_claiming(header, data=NUMBERS):
    """An array file with a header of our own."""
    text = header if isinstance(header, bytes) else repr(header).encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def packed(path, members=(), kind=zipfile.ZIP_DEFLATED, manifest=MANIFEST):
    """A zip file with these members, its checksums right."""
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("model.json", manifest)
        for name, raw in dict(members).items():
            archive.writestr(name, raw)


@pytest.fixture
def path(tmp_path):
    """A good file."""
    packed(tmp_path / "model.crfx", {"edge.npy": npy_claiming(HEADER), "node.ubj": b"x" * 300})
    return tmp_path / "model.crfx"


def refused(path, message):
    """Check that reading is refused for that reason, soon, and without much memory."""
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


def test_read_accepts_the_undamaged_file(path):
    """The companion of the refusals."""
    state = read(path)
    assert (state.values, state.blobs) == ({"class": "x"}, {"node": b"x" * 300})
    np.testing.assert_array_equal(state.arrays["edge"], np.arange(6).reshape(2, 3))


# Members.


@pytest.mark.parametrize(
    "name",
    [
        *("../evil.npy", "C:\\evil.npy", "a/b.npy", "folder/", "readme.txt", "a.npy.exe", ".npy"),
        *("evil\n.npy", "ä.npy", "MODEL.JSON", "x" * 600 + ".npy"),
    ],
    ids=lambda name: repr(name[:20]),
)
def test_read_rejects_unknown_names(path, name):
    packed(path, {name: b"x"})
    refused(path, "which no model has")


def test_read_rejects_unknown_members(path):
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("edge.npy", b"x")
    refused(path, "a member is there twice")
    # The module zipfile reads a name up to a zero; others would not.
    packed(path, {"aXevil.npy": b"x"})
    path.write_bytes(path.read_bytes().replace(b"aXevil.npy", b"a.npy\0evil"))
    refused(path, "which is called otherwise in the archive")
    for mode in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFDIR, stat.S_IFCHR):
        link = zipfile.ZipInfo("edge.npy")
        link.external_attr = (mode | 0o777) << 16
        packed(path, {link: b"/etc/passwd"})
        refused(path, "no plain file")
    # They reach ratios that our bound on sizes does not foresee.
    for compression in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        packed(path, {"node.ubj": b"x"}, compression)
        refused(path, "compressed in an unknown way")


def central_entry(raw, name):
    """Return the offset of a member's entry in the central directory."""
    at = raw.index(b"PK\x01\x02")
    while raw[at + 46 : at + 46 + len(name)] != name:
        at = raw.index(b"PK\x01\x02", at + 1)
    return at


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (42, "<I", "members overlap"),  # where node.ubj begins: a small file would grow large
        (24, 2**31, "edge.npy claims an impossible size"),
        (24, 2**32 - 1, ""),  # the size is in a field of 64 bits
        (8, 1, "encrypted"),
    ],
)
def test_read_rejects_inconsistent_directory(path, field, value, message):
    raw = bytearray(path.read_bytes())
    at = central_entry(raw, b"edge.npy")
    if value == "<I":
        value = struct.unpack_from("<I", raw, central_entry(raw, b"node.ubj") + field)[0]
    struct.pack_into("<I" if field > 8 else "<H", raw, at + field, value)
    path.write_bytes(raw)
    refused(path, message)


def test_read_rejects_overlapping_members(path):
    """One begins inside the other, right after its header."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("edge.npy", b"x" * 1000)
    body = inner.getvalue()[: 30 + len("edge.npy") + 1000]
    packed(path, {"outer.npy": body}, zipfile.ZIP_STORED)
    raw = path.read_bytes()
    entry = bytearray(inner.getvalue()[inner.getvalue().index(b"PK\x01\x02") :][: 46 + 8])
    struct.pack_into("<I", entry, 42, raw.index(body))
    end = bytearray(raw[raw.index(b"PK\x05\x06") :])
    directory = raw[raw.index(b"PK\x01\x02") : raw.index(b"PK\x05\x06")] + bytes(entry)
    struct.pack_into("<2HI", end, 8, 3, 3, len(directory))
    path.write_bytes(raw[: raw.index(b"PK\x01\x02")] + directory + bytes(end))
    refused(path, "members overlap")


# Sizes.


def test_read_rejects_members_that_expand_too_much(path):
    """A gigabyte of zeros in a megabyte; text and trees, which grow further once read, less."""
    zeros = bytes(1 << 26)
    packed(path, {f"x{k}.npy": zeros for k in range(16)})
    assert path.stat().st_size < 2 << 20
    refused(path, "its .npy members claim to expand")
    brackets = b"[[" + b"[]," * (8 << 20) + b"[]]]"
    packed(path, manifest=brackets)
    refused(path, "its .json members claim to expand")
    packed(path, {"node.ubj": brackets})
    refused(path, "its .ubj members claim to expand")


def test_read_rejects_a_member_larger_than_it_says(path):
    """Its directory tells of a few bytes; what is there would expand to a gigabyte."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    raw = b"".join(deflate.compress(bytes(1 << 24)) for _ in range(64)) + deflate.flush()
    packed(path, {"edge.npy": raw}, zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    for magic, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = content.rindex(magic)
        struct.pack_into("<H", content, start + at, zipfile.ZIP_DEFLATED)
        struct.pack_into("<I", content, start + at + 14, 200)
    path.write_bytes(content)
    refused(path, "")


def test_read_takes_a_zip_in_a_zip_for_bytes(path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(1 << 26))
    packed(path, {"node.ubj": inner.getvalue()})
    assert read(path).blobs["node"] == inner.getvalue()
    packed(path, {"node.npy": inner.getvalue()})
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
        ('{"format_version": -1}', "version -1"),
        ('{"format_version": 1.0}', "version 1.0"),
        ('{"format_version": [1]}', "version [1]"),
        ('{"format_version": 2}', "version 2, this crfx reads up to 1: upgrade crfx"),
        ('{"format_version": 99999999999999999999}', "upgrade crfx"),
        ('{"a":' * 100_000, "recursion"),
        ('{"format_version": 1, "a": ' + "[" * 5000 + "]" * 5000 + "}", "recursion"),
        ("[1]", "holds no object"),
        ("\ufeff{}", "BOM"),
        ("{'a': 1}", "property name"),
        ("", "Expecting value"),
        *(('{"format_version": 1, "a": "ä"}'.encode(kind), "") for kind in ("utf-16", "latin1")),
    ],
    ids=lambda text: repr(text[:24]),
)
def test_read_rejects_invalid_json(path, text, message):
    packed(path, manifest=text)
    refused(path, message)


# Arrays.


class Trap:
    """Unpickling one makes a folder."""

    def __init__(self, target):
        self.target = str(target)

    def __reduce__(self):
        return os.mkdir, (self.target,)


def trap(target):
    array = np.empty(1, dtype=object)
    array[0] = Trap(target)
    return npy(array, allow_pickle=True)


def test_read_never_unpickles(path):
    """NumPy would unpickle what does not start like an array, were it asked to."""
    target = path.parent / "sprung"
    packed(path, {"edge.npy": trap(target)})
    refused(path, "not numbers or text")
    for raw in (pickle.dumps(Trap(target)), trap(target)[6:]):
        packed(path, {"edge.npy": raw})
        refused(path, "unknown format")
    packed(path, {"node.ubj": pickle.dumps(Trap(target))})
    assert read(path).blobs["node"] == pickle.dumps(Trap(target))
    assert not target.exists()
    np.load(io.BytesIO(trap(target)), allow_pickle=True)
    assert target.exists()  # the companion: the array above is dangerous


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": (2, 4)}, "does not agree with its size"),
        ({"shape": (2**32, 2**32)}, "does not agree with its size"),
        ({"shape": (9, 6 * pow(9, -1, 2**64) % 2**64)}, "does not agree with its size"),
        ({"shape": (0, 2**62)}, "does not agree with its size"),
        ({"shape": (-2, -3)}, "impossible shape"),
        ({"shape": (2.0, 3)}, "impossible shape"),
        ({"shape": 6}, "has no shape"),
        ({"descr": "<f8"}, "does not agree with its size"),
        ({"descr": "<f4,<f4"}, "not numbers or text"),
        ({"descr": [("a", "<f4")]}, "not numbers or text"),
        ({"descr": "<M8"}, "not numbers or text"),
        ({"descr": "<f3"}, ""),
        ({"descr": None}, "not numbers or text"),
    ],
)
def test_read_rejects_inconsistent_array_header(path, change, message):
    packed(path, {"edge.npy": npy_claiming(HEADER | change)})
    refused(path, message)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{'descr': '<f4', 'shape': (2, 3",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}",
        b"{'descr': '<f4'}",
        b"[1, 2]",
        b"3",
        b"__import__('os').mkdir('sprung')",
        b"(" * 4000,
        b"-" * 4000 + b"1",
        b"\xff" * 20,
        b" " * 10_000 + repr(HEADER).encode(),
    ],
    ids=lambda raw: repr(raw[:40]),
)
def test_read_rejects_missing_array_header(path, monkeypatch, header):
    monkeypatch.chdir(path.parent)
    packed(path, {"edge.npy": npy_claiming(header)})
    refused(path, "")
    assert os.listdir(path.parent) == [path.name]


# Damage.


def test_read_rejects_files_and_arrays_cut_off_anywhere(path):
    whole, array = path.read_bytes(), npy_claiming(HEADER)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=REFUSED):
            read(path)
    for raw in (array[:8] + b"\xff\xff" + array[10:], *(array[:n] for n in range(len(array)))):
        packed(path, {"edge.npy": raw}, zipfile.ZIP_STORED)
        with pytest.raises(ValueError, match=REFUSED):
            read(path)


def outcome(path):
    try:
        read(path)
    except ValueError:
        return "refused"
    return "read"


def test_damaged_files_load_or_raise(path):
    """Checksums catch most; what they do not cover is the directory and the members' headers.

    Half of the bytes that are changed are near the end, where the directory is.
    """
    write(path, State({"x": [1.5] * 40}, {"a": np.arange(99.0)}, {"b": bytes(range(256))}))
    whole, random, outcomes = path.read_bytes(), np.random.default_rng(0), set()
    for _ in range(MUTATIONS):
        changed = bytearray(whole)
        for _ in range(random.integers(1, 4)):
            end = len(whole) if random.random() < 0.5 else 400
            changed[len(whole) - 1 - random.integers(end)] = random.choice([0, 1, 12, 14, 127, 255])
        path.write_bytes(changed)
        outcomes.add(outcome(path))
    assert outcomes == {"read", "refused"}


def test_damaged_arrays_load_or_raise(path):
    """Checksums are valid, as in a malicious file."""
    whole, random, outcomes = npy(np.zeros((2, 3), np.float32)), np.random.default_rng(0), set()
    odd = np.frombuffer(b"()[]{}'\",:<>OVSUL0123456789 \n\\-\x00\xff", dtype=np.uint8)
    for _ in range(MUTATIONS):
        changed = bytearray(whole)
        for _ in range(random.integers(1, 4)):
            changed[random.integers(70)] = random.choice(odd)
        packed(path, {"edge.npy": bytes(changed)}, zipfile.ZIP_STORED)
        outcomes.add(outcome(path))
    assert outcomes == {"read", "refused"}
