"""The model file: whole or not at all, and nothing in it is believed or executed."""

import io
import json
import os
import pickle
import stat
import struct
import zipfile

import numpy as np
import pytest

from crfx.io import model_file
from crfx.io.model_file import read, write
from crfx.state import State

MUTATIONS = 1500
NOT_A_MODEL = "is not a model file of crfx"


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


def assert_same(found, expected):
    assert found.values == expected.values
    assert found.blobs == expected.blobs
    assert found.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        np.testing.assert_array_equal(found.arrays[name], array)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, names_and_bytes, compression=zipfile.ZIP_DEFLATED):
    """A zip file with these members, its checksums right."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, raw in names_and_bytes:
            archive.writestr(name, raw)


def replace(path, name, raw):
    rewrite(path, (members(path) | {name: raw}).items())


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npy_claiming(header, data, version=1):
    """An array file with a header of our own."""
    text = repr(header).encode() if not isinstance(header, bytes) else header
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


def test_round_trip(path):
    assert_same(read(path), contents())


def test_round_trip_by_text_and_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("model.crfx", contents())
    assert_same(read("model.crfx"), contents())
    assert os.listdir(tmp_path) == ["model.crfx"]


def test_a_difference_is_seen(path):
    """The companion of the round trip."""
    for change in ("values", "arrays", "blobs"):
        other = contents()
        if change == "values":
            other.values["n"] = 4
        elif change == "arrays":
            other.arrays["edge"][0, 0, 0] += 1
        else:
            other.blobs["empty"] = b"x"
        with pytest.raises(AssertionError):
            assert_same(read(path), other)


def test_arrays_can_be_changed_once_read(path):
    found = read(path).arrays["edge"]
    found += 1
    np.testing.assert_array_equal(found, contents().arrays["edge"] + 1)


def test_the_file_is_a_zip_that_others_can_read(path):
    found = members(path)
    assert json.loads(found["model.json"])["format_version"] == model_file.FORMAT_VERSION
    expected = contents().arrays["edge"]
    np.testing.assert_array_equal(np.load(io.BytesIO(found["edge.npy"])), expected)
    assert found["node.ubj"] == contents().blobs["node"]


def test_the_mode_follows_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write(tmp_path / "model.crfx", contents())
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "model.crfx").stat().st_mode) == 0o640


# Whole or not at all.


class Full(Exception):
    """Stands for whatever may go wrong while a file is written."""


def fails_at(monkeypatch, call):
    """Let the ``call``-th member that is written fail."""
    original, count = zipfile.ZipFile.writestr, iter(range(1000))

    def writestr(self, *arguments, **options):
        if next(count) == call:
            raise Full
        return original(self, *arguments, **options)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", writestr)


@pytest.mark.parametrize("call", range(10))
def test_a_write_that_fails_leaves_the_old_file(path, monkeypatch, call):
    before = path.read_bytes()
    fails_at(monkeypatch, call)
    with pytest.raises(Full):
        write(path, State({"other": 1}, contents().arrays, contents().blobs))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("call", range(3))
def test_a_first_write_that_fails_leaves_nothing(tmp_path, monkeypatch, call):
    fails_at(monkeypatch, call)
    with pytest.raises(Full):
        write(tmp_path / "model.crfx", contents())
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["fsync", "replace", "chmod"])
def test_a_system_call_that_fails(path, monkeypatch, name):
    def refuse(*arguments, **options):
        raise OSError("the disk is full")

    before = path.read_bytes()
    monkeypatch.setattr(os, name, refuse)
    with pytest.raises(OSError, match="the disk is full"):
        write(path, State({"other": 1}))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_the_new_file_grows_beside_the_old(path, monkeypatch):
    """On the same file system: else it could not take the old one's place at once."""
    moves, move = [], os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (moves.append((a, b)), move(a, b)))
    write(path, State({"other": 1}))
    ((source, target),) = moves
    assert os.path.dirname(source) == str(path.parent)
    assert target == path
    assert read(path).values == {"other": 1}


def test_an_interrupt_is_a_failure_too(path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(path, State({"other": 1}))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (State({"x": float("nan")}), ValueError),
        (State({"x": object()}), TypeError),
        (State({}, {"x": np.array([{}], dtype=object)}), ValueError),
    ],
)
def test_what_the_file_cannot_hold(path, bad, error):
    """NaN is no JSON, and objects would have to be pickled."""
    before = path.read_bytes()
    with pytest.raises(error):
        write(path, bad)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


# Files that are none.


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "model.crfx")


@pytest.mark.parametrize("raw", [b"", b"PK", b"not a zip", b"\x00" * 1000, pickle.dumps([1])])
def test_not_a_zip(tmp_path, raw):
    (tmp_path / "model.crfx").write_bytes(raw)
    with pytest.raises(ValueError, match=NOT_A_MODEL) as caught:
        read(tmp_path / "model.crfx")
    assert str(tmp_path / "model.crfx") in str(caught.value)


def test_cut_off_anywhere(path):
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=NOT_A_MODEL):
            read(path)


def test_a_member_is_there_twice(path):
    found = list(members(path).items())
    with pytest.warns(UserWarning, match="Duplicate name"):
        rewrite(path, [*found, ("edge.npy", npy(np.zeros(3)))])
    with pytest.raises(ValueError, match="a member is there twice"):
        read(path)


@pytest.mark.parametrize("version", [model_file.FORMAT_VERSION + 1, 0, -1, "1", None, 1.0, [1]])
def test_other_versions(path, version):
    replace(path, "model.json", json.dumps({"format_version": version}))
    with pytest.raises(ValueError, match="this crfx reads up to 1: upgrade crfx"):
        read(path)


@pytest.mark.parametrize(
    "manifest",
    [b"", b"{", b"[]", b"3", b"null", b'"text"', b"{}", b"\xff\xfe\xfd", b"[" * 100_000],
    ids=lambda raw: repr(raw[:10]),
)
def test_a_broken_manifest(path, manifest):
    replace(path, "model.json", manifest)
    with pytest.raises(ValueError, match=NOT_A_MODEL):
        read(path)


def test_no_manifest(path):
    found = members(path)
    del found["model.json"]
    rewrite(path, found.items())
    with pytest.raises(ValueError, match=r"model\.json"):
        read(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(path, compression):
    """They reach ratios that our bound on sizes does not foresee."""
    rewrite(path, members(path).items(), compression)
    with pytest.raises(ValueError, match="compressed in an unknown way"):
        read(path)


def test_stored_members_are_read(path):
    """The companion: what is refused above is the compression, not the rewriting."""
    rewrite(path, members(path).items(), zipfile.ZIP_STORED)
    assert_same(read(path), contents())


def central_entry(raw, name):
    """Where the directory at the end of the file speaks of a member."""
    at = raw.index(b"PK\x01\x02")
    while raw[at + 46 : at + 46 + len(name)] != name:
        at = raw.index(b"PK\x01\x02", at + 1)
    return at


def test_members_that_overlap(path):
    """The directory may point two members at the same bytes: a small file would grow large."""
    raw = bytearray(path.read_bytes())
    first, second = (central_entry(raw, name) for name in (b"edge.npy", b"node.ubj"))
    raw[second + 42 : second + 46] = raw[first + 42 : first + 46]
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="members overlap"):
        read(path)


def test_a_member_that_claims_an_impossible_size(path):
    raw = bytearray(path.read_bytes())
    at = central_entry(raw, b"edge.npy")
    raw[at + 24 : at + 28] = struct.pack("<I", 2**31)
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=r"edge\.npy claims an impossible size"):
        read(path)


def test_an_encrypted_member(path):
    raw = bytearray(path.read_bytes())
    at = central_entry(raw, b"edge.npy")
    raw[at + 8] |= 1
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="encrypted"):
        read(path)


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


def test_nothing_is_unpickled(path, tmp_path):
    replace(path, "edge.npy", trap(tmp_path / "sprung"))
    with pytest.raises(ValueError, match="not numbers or text"):
        read(path)
    assert not (tmp_path / "sprung").exists()


def test_no_pickle_hides_behind_another_name(path, tmp_path):
    """NumPy would unpickle what does not start like an array, were it asked to."""
    for raw in (pickle.dumps(Trap(tmp_path / "sprung")), trap(tmp_path / "sprung")[6:]):
        replace(path, "edge.npy", raw)
        with pytest.raises(ValueError, match="unknown format"):
            read(path)
    blob = pickle.dumps(Trap(tmp_path / "sprung"))
    replace(path, "edge.npy", npy(np.zeros(1)))
    replace(path, "node.ubj", blob)
    assert read(path).blobs["node"] == blob
    assert not (tmp_path / "sprung").exists()


def test_the_trap_springs(tmp_path):
    """The companion: the array above is dangerous."""
    np.load(io.BytesIO(trap(tmp_path / "sprung")), allow_pickle=True)
    assert (tmp_path / "sprung").exists()


HEADER = {"descr": "<f4", "fortran_order": False, "shape": (2, 3)}
NUMBERS = np.arange(6, dtype="<f4").tobytes()


@pytest.mark.parametrize("version", [1, 2])
def test_an_array_with_a_header_of_our_own(path, version):
    """The companion of the refusals: an honest header is read."""
    replace(path, "edge.npy", npy_claiming(HEADER, NUMBERS, version))
    np.testing.assert_array_equal(read(path).arrays["edge"], np.arange(6).reshape(2, 3))


def test_big_endian_arrays_come_back_native(path):
    replace(path, "edge.npy", npy(np.arange(6, dtype=">f4").reshape(2, 3)))
    found = read(path).arrays["edge"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.arange(6).reshape(2, 3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": (2, 4)}, "does not agree with its size"),
        ({"shape": (2, 2)}, "does not agree with its size"),
        ({"shape": (2**40, 2**40)}, "does not agree with its size"),
        ({"shape": (2**32, 2**32)}, "does not agree with its size"),
        ({"shape": (9, 6 * pow(9, -1, 2**64) % 2**64)}, "does not agree with its size"),
        ({"shape": (0, 2**62)}, "does not agree with its size"),
        ({"shape": (-2, -3)}, "impossible shape"),
        ({"shape": (2.0, 3)}, "impossible shape"),
        ({"shape": ("2", 3)}, "impossible shape"),
        ({"shape": 6}, NOT_A_MODEL),
        ({"descr": "<f8"}, "does not agree with its size"),
        ({"descr": "|O"}, "not numbers or text"),
        ({"descr": "<f4,<f4"}, "not numbers or text"),
        ({"descr": [("a", "<f4")]}, "not numbers or text"),
        ({"descr": ("<f4", (2,))}, "not numbers or text"),
        ({"descr": "<M8"}, "not numbers or text"),
        ({"descr": "<f3"}, NOT_A_MODEL),
        ({"descr": None}, "not numbers or text"),
    ],
)
def test_a_header_that_lies(path, change, message):
    replace(path, "edge.npy", npy_claiming(HEADER | change, NUMBERS))
    with pytest.raises(ValueError, match=message):
        read(path)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"{'descr': '<f4', 'shape': (2, 3",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}",
        b"{'descr': '<f4'}",
        b"[1, 2]",
        b"3",
        b"__import__('os').mkdir('sprung')",
        b"(" * 4000,
        b"-" * 4000 + b"1",
        b"\xff" * 20,
    ],
    ids=lambda raw: repr(raw[:40]),
)
def test_a_header_that_is_none(path, monkeypatch, header):
    monkeypatch.chdir(path.parent)
    replace(path, "edge.npy", npy_claiming(header, NUMBERS))
    with pytest.raises(ValueError, match=NOT_A_MODEL):
        read(path)
    assert os.listdir(path.parent) == [path.name]


def test_headers_beyond_their_file(path):
    whole = npy_claiming(HEADER, NUMBERS)
    for raw in (
        whole[:8] + b"\xff\xff" + whole[10:],
        npy_claiming(b" " * 10_000 + repr(HEADER).encode(), NUMBERS),
        *(whole[:length] for length in range(len(whole))),
    ):
        replace(path, "edge.npy", raw)
        with pytest.raises(ValueError, match=NOT_A_MODEL):
            read(path)


# Random damage.


def damaged(raw, random):
    """Some bytes changed, half of the time near the end, where the directory is."""
    changed = bytearray(raw)
    for _ in range(random.integers(1, 4)):
        end = len(raw) if random.random() < 0.5 else 400
        changed[len(raw) - 1 - random.integers(end)] = random.choice([0, 1, 12, 14, 127, 255])
    return bytes(changed)


def test_damaged_files_load_or_raise(path):
    """Checksums catch most; what they do not cover is the directory and the members' headers."""
    whole, random, outcomes = path.read_bytes(), np.random.default_rng(0), set()
    for _ in range(MUTATIONS):
        path.write_bytes(damaged(whole, random))
        try:
            read(path)
            outcomes.add("read")
        except ValueError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


def test_damaged_arrays_load_or_raise(path):
    """With checksums that are right, as one who means harm would write them."""
    whole, random, outcomes = npy(np.zeros((2, 3), np.float32)), np.random.default_rng(0), set()
    odd = np.frombuffer(b"()[]{}'\",:<>OVSUL0123456789 \n\\-\x00\xff", dtype=np.uint8)
    rest = members(path)
    for _ in range(MUTATIONS):
        changed = bytearray(whole)
        for _ in range(random.integers(1, 4)):
            changed[random.integers(70)] = random.choice(odd)
        rewrite(path, (rest | {"edge.npy": bytes(changed)}).items(), zipfile.ZIP_STORED)
        try:
            read(path)
            outcomes.add("read")
        except ValueError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}
