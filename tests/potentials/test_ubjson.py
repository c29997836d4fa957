"""Binary JSON: what is written is read back, and no input does worse than raise ValueError."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from crfx.potentials import ubjson
from tests.potentials.grown_trees import grown, trees_of

DTYPES = ("u1", "i1", "i2", "i4", "i8", "f4", "f8")
LONGEST_NUMBER = b"L" + struct.pack(">q", 2**62)
"""A length that, were it believed, would exhaust the memory."""

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
)
TYPED = st.sampled_from(DTYPES).flatmap(
    lambda dtype: (
        arrays.arrays(dtype, st.integers(0, 5), elements={"allow_nan": True})
        if dtype[0] == "f"
        else arrays.arrays(dtype, st.integers(0, 5))
    )
)
VALUES = st.recursive(
    SCALARS | TYPED,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def same(a, b):
    """Equal, and of one type all the way down; arrays bit by bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


def test_same_sees_differences():
    """The companion of the round trips."""
    for a, b in (
        (1, True),
        (1, 1.0),
        (None, False),
        ([1], [1, 1]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.zeros(2, "f4"), np.zeros(2, "f8")),
        (np.zeros(2), np.array([0.0, -0.0])),
        ([np.zeros(2)], [[0.0, 0.0]]),
    ):
        assert same(a, a)
        assert not same(a, b)


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_round_trip(value):
    assert same(ubjson.decode(ubjson.encode(value)), value)


@pytest.mark.parametrize("dtype", DTYPES)
def test_decode_returns_native_byte_order(dtype):
    limits = np.finfo(dtype) if dtype[0] == "f" else np.iinfo(dtype)
    values = np.array([limits.min, 0, 1, limits.max], dtype=dtype)
    for order in "<>":
        decoded = ubjson.decode(ubjson.encode({"array": values.astype(order + dtype)}))["array"]
        assert same(decoded, values)
        assert decoded.flags.writeable


def test_decode_reads_foreign_documents():
    """Short lengths and lists without a length, which `encode` never writes."""
    for raw, value in (
        (b"U\xff", 255),
        (b"i\xff", -1),
        (b"I\xff\xfe", -2),
        (b"l\x00\x00\x00\x07", 7),
        (b"d" + struct.pack(">f", 0.5), 0.5),
        (b"[U\x01SU\x01aZTF]", [1, "a", None, True, False]),
        (b"[#U\x02TF", [True, False]),
        (b"{U\x01ai\x05}", {"a": 5}),
        (b"[]", []),
        (b"{}", {}),
    ):
        assert same(ubjson.decode(raw), value)


def test_encode_writes_all_floats_and_rejects_unsupported_values():
    """It would come back as something else, or not at all."""
    decoded = ubjson.decode(ubjson.encode([math.inf, -math.inf, math.nan]))
    assert decoded[:2] == [math.inf, -math.inf]
    assert math.isnan(decoded[2])
    arrays = np.zeros((2, 2)), np.zeros(2, bool), np.zeros(2, "u2"), np.array(["a"])
    for value in (2**63, -(2**63) - 1, (1, 2), {1, 2}, b"bytes", 1j, np.float32(1), *arrays):
        with pytest.raises(ValueError, match=r"cannot be written|does not fit"):
            ubjson.encode({"key": [value]})


def test_decode_of_a_real_model_whole_cut_off_and_mutated():
    raw = grown("stumps")[2][0].raw()
    model = ubjson.decode(raw)
    assert len(trees_of(raw)["trees"]) == 2
    assert same(ubjson.decode(ubjson.encode(model)), model)
    with pytest.raises(ValueError, match="2 bytes follow"):
        ubjson.decode(raw + b"Z}")
    for length in range(len(raw)):
        with pytest.raises(ValueError, match="cut off at byte"):
            ubjson.decode(raw[:length])
    random, outcomes = np.random.default_rng(1), set()
    for _ in range(1500):
        changed = bytearray(raw)
        for place in random.integers(len(raw), size=random.integers(1, 5)):
            changed[place] = random.integers(256)
        try:
            ubjson.decode(bytes(changed))
            outcomes.add("decoded")
        except ValueError:
            outcomes.add("rejected")
    assert outcomes == {"decoded", "rejected"}, "the mutations are too weak, or too strong"


@settings(max_examples=150, deadline=None)
@given(VALUES.filter(lambda value: isinstance(value, dict | list)), st.data())
def test_any_document_cut_off(value, data):
    raw = ubjson.encode(value)
    length = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(ValueError, match="cut off at byte"):
        ubjson.decode(raw[:length])


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.lists(st.sampled_from(b"{}[]$#SUiIlLdDTFZ\x00\x01")).map(bytes))
def test_arbitrary_bytes_decode_or_raise(raw):
    try:
        ubjson.decode(raw)
    except ValueError:
        return
    assert raw


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        # 2**62 items would not fit into memory.
        (b"S" + LONGEST_NUMBER, "cut off at byte"),
        (b"[$D#" + LONGEST_NUMBER, "cut off at byte"),
        (b"[#" + LONGEST_NUMBER + b"T" * 20, "cut off at byte"),
        (b"{" + LONGEST_NUMBER, "cut off at byte"),
        *((begin + b"i\xff", "cut off at byte") for begin in (b"S", b"[#", b"[$U#")),
        # A reader that recurses would run out of stack.
        *((begin * 100_000, "nested too deeply") for begin in (b"[", b"{U\x01a", b"[#U\x01")),
        (b"", "cut off at byte 0"),
        (b"x", "unknown marker b'x' at byte 0"),
        (b"Sd\x00\x00\x00\x00", "a length is expected at byte 1"),
        (b"[$S#U\x01U\x01a", "unknown type"),
        (b"[$U]", "unknown type"),
        (b"SU\x01\xff", "utf-8"),
        # XGBoost may believe the other one than we checked.
        (b"{U\x01aTU\x01aF}", "the key 'a' is there twice"),
    ],
    ids=lambda raw: repr(raw[:20]),
)
def test_decode_rejects_malicious_documents(raw, message):
    with pytest.raises(ValueError, match=message):
        ubjson.decode(raw)
