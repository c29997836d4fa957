"""State: names of parts, and checks of what a file holds."""

import numpy as np
import pytest

from crfx.state import State


def test_nested_state_prefixes_names_and_shares_arrays():
    state = State()
    part = state.nested({"a": 1}, "base.").nested({}, "node.")
    part.put("weights", np.zeros(3))
    part.put_blob("trees", b"x")
    assert list(state.arrays) == ["base.node.weights"]
    assert list(state.blobs) == ["base.node.trees"]
    assert part.has("weights")
    assert not part.has("base.node.weights")
    assert part.blob("trees") == b"x"


def test_array_rejects_other_types_shapes_and_infinite_numbers():
    state = State().nested({}, "p.")
    for array, message in (
        (np.zeros((2, 3), np.float32), "the array p.a does not fit: it is of another type"),
        (np.zeros((3, 2)), "the array p.a does not fit: it has shape"),
        (np.full((2, 3), np.inf), "the array p.a does not fit: it is not all finite"),
    ):
        state.put("a", array)
        with pytest.raises(ValueError, match=message):
            state.array("a", np.float64, (2, 3))
        assert state.array("a") is array
    state.put("a", np.zeros((2, 3)))
    assert state.array("a", np.float64, (2, 3)) is state.array("a")


def test_check_all_read_names_a_member_that_no_part_has_read():
    state = State()
    part = state.nested({}, "base.")
    part.put("a", np.zeros(1))
    part.put_blob("a", b"x")
    for read, member in ((part.array, r"base\.a\.npy"), (part.blob, r"base\.a\.ubj")):
        with pytest.raises(ValueError, match=member):
            state.check_all_read()
        read("a")
    state.check_all_read()


def test_whole_rejects_what_is_no_whole_number_in_range():
    for value in (True, 1.0, "1", None, -1, 2**70):
        with pytest.raises(ValueError, match=r"its n is .*: it must be a whole number from 0 on"):
            State({"n": value}).whole("n")


def test_state_truth_uses_default_for_early_files_only():
    assert State({}).truth("b", True)
    with pytest.raises(KeyError):
        State({}).truth("b")
    with pytest.raises(ValueError, match="its b is 1: it must be true or false"):
        State({"b": 1}).truth("b", True)
