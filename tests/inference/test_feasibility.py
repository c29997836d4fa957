"""Feasibility of constraints and of true labellings, against enumeration."""

import re
import time
from itertools import product

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.inference import feasibility
from crfx.inference.feasibility import check_allowed, check_possible, impossible_rows
from crfx.structures import Chain, Constraints, Forest, Mask
from crfx.structures.constraints import mask_of

CLASSES = np.array(["a", "b", "c"])
RISING = [("a", "a"), ("a", "b"), ("b", "b"), ("b", "c"), ("c", "c")]

FORBIDDEN = Constraints(RISING, start_forbidden=["c"], end_forbidden=["a"])


def checked(labels, parents=None, allowed=None, lengths=None, constraints=FORBIDDEN):
    batch = Batch.from_lengths(
        [len(labels)] if lengths is None else lengths,
        parents=None if parents is None else np.array(parents),
        allowed=allowed,
    )
    structure = Chain(2) if parents is None else Forest()
    mask = mask_of(constraints, CLASSES, is_forest=parents is not None)
    codes = np.array([-1 if label is None else "abc".index(label) for label in labels])
    check_allowed(batch, structure, codes, mask, CLASSES)


@pytest.mark.parametrize(
    ("labels", "more", "message"),
    [
        ("aac", {}, "instance 0, position 2: constraints forbid the pair ('a', 'c')"),
        ("bbaab", {"lengths": [2, 3]}, None),
        (
            "bbcb",
            {"lengths": [2, 2]},
            "instance 1, position 0: constraints forbid 'c' as the first",
        ),
        ("aa", {}, "instance 0, position 1: constraints forbid 'a' as the last label"),
        (["a", None, None, "c"], {}, None),
        (["a", None, "c"], {}, None),
        (["b", None, "a"], {"constraints": RISING}, "leave no label here that agrees with"),
        ([None, None], {}, None),
    ],
)
def test_true_labels_must_be_allowed(labels, more, message):
    if message is None:
        checked(labels, **more)
        return
    with pytest.raises(ValueError, match=re.escape(message)):
        checked(labels, **more)


def test_pairs_of_a_forest_are_parent_and_child():
    rising = Constraints(RISING)
    checked("cbab", parents=[1, 2, -1, 2], constraints=rising)
    with pytest.raises(ValueError, match=r"position 0: constraints forbid the pair \('b', 'a'\)"):
        checked("ab", parents=[1, -1], constraints=rising)


def test_a_true_label_that_its_position_has_not():
    allowed = np.array([[1, 1, 0], [1, 1, 0]], bool)
    with pytest.raises(ValueError, match="position 1: the true label 'c' is not among those"):
        checked("bc", allowed=allowed, constraints=None)


def is_possible(mask, parents, allowed=None, labels=None):
    """Return whether some labelling of one instance satisfies all constraints."""
    n = len(parents)
    allowed = np.ones((n, 3), bool) if allowed is None else allowed
    labels = np.full(n, -1) if labels is None else labels
    return any(
        all(
            allowed[t, codes[t]]
            and labels[t] in (-1, codes[t])
            and (mask.start[codes[t]] if up < 0 else mask.pair[codes[up], codes[t]])
            for t, up in enumerate(parents)
        )
        and (mask.end is None or mask.end[codes[-1]])
        for codes in product(range(3), repeat=n)
    )


@pytest.mark.parametrize("is_forest", [False, True])
def test_impossible_rows_against_enumeration(is_forest):
    random = np.random.default_rng(0)
    n_possible = 0
    for _ in range(300):
        n = int(random.integers(1, 5))
        parents = [-1, *(int(random.integers(-1, t)) for t in range(1, n))]
        if not is_forest:
            parents = list(range(-1, n - 1))
        pair, start = random.random((3, 3)) < 0.4, random.random(3) < 0.7
        mask = Mask(pair, start, None if is_forest else random.random(3) < 0.7)
        allowed = random.random((n, 3)) < 0.6
        labels = np.where(random.random(n) < 0.3, random.integers(3, size=n), -1)
        batch = Batch.from_lengths(
            [n], parents=np.array(parents) if is_forest else None, allowed=allowed
        )
        structure = Forest() if is_forest else Chain(2)
        possible = is_possible(mask, parents, allowed, labels)
        assert impossible_rows(batch, structure, mask, labels, 3).any() != possible
        n_possible += possible
    assert 30 < n_possible < 270


def test_an_instance_without_a_label_left_is_named():
    batch = Batch.from_lengths([1, 2], allowed=np.array([[1, 1, 1], [1, 0, 0], [0, 0, 1]], bool))
    mask = mask_of(RISING, CLASSES, is_forest=False)
    with pytest.raises(ValueError, match="instance 1, position 1: constraints leave no label here"):
        check_possible(batch, Chain(1), mask, None, 3)


def is_found_possible(batch, structure, mask):
    try:
        check_possible(batch, structure, mask, None, 3)
    except ValueError as error:
        return "instance 1, position" not in str(error)
    return True


@pytest.mark.parametrize("is_forest", [False, True])
def test_masks_alone_against_enumeration(is_forest, monkeypatch):
    """Masks agree with enumeration, without calling the core if every length is possible."""
    random = np.random.default_rng(1)
    whole, result, by_core = feasibility.impossible_rows, [], []

    def counted(*args):
        by_core.append(args)
        return whole(*args)

    monkeypatch.setattr(feasibility, "impossible_rows", counted)
    for _ in range(300):
        n = int(random.integers(1, 6))
        parents = list(range(-1, n - 1))
        if is_forest:
            parents = [-1, *(int(random.integers(-1, t)) for t in range(1, n))]
        pair, start, end = random.random((3, 3)) < 0.3, random.random(3) < 0.6, None
        if not is_forest and random.random() < 0.5:
            end = random.random(3) < 0.6
        mask = Mask(pair, start, end)
        batch = Batch.from_lengths([0, n], parents=np.array(parents) if is_forest else None)
        result.append(is_found_possible(batch, Forest() if is_forest else Chain(2), mask))
        assert result[-1] == is_possible(mask, parents)
    assert 50 < sum(result) < 250
    assert len(by_core) < 250


def test_masks_with_cycles_and_empty_masks():
    """a b a b ...: chains of even length only may begin with a and end with b."""
    pair = np.array([[0, 1], [1, 0]], bool)
    mask = Mask(pair, np.array([True, False]), np.array([False, True]))
    check_possible(Batch.from_lengths([2, 4, 100]), Chain(1), mask, None, 2)
    with pytest.raises(ValueError, match="instance 1, position 0: constraints leave no label"):
        check_possible(Batch.from_lengths([2, 1]), Chain(1), mask, None, 2)
    check_possible(Batch.from_lengths([2, 1]), Chain(1), Mask(), None, 2)
    check_possible(Batch.from_lengths([]), Chain(1), mask, None, 2)
    assert not impossible_rows(Batch.from_lengths([0, 3]), Chain(1), None, None, 2).any()


LONG = 200_000
SOON = 1.0
"""Seconds for one chain of so many positions, on a busy machine: a pass per position took four."""


def test_a_long_chain_is_checked_in_one_pass():
    batch = Batch.from_lengths([LONG], allowed=np.ones((LONG, 9), bool))
    mask = Mask(~np.eye(9, dtype=bool), np.arange(9) > 0)
    labels = np.full(LONG, -1)
    labels[5] = 3
    took = []
    for _ in range(3):
        begin = time.perf_counter()
        check_possible(batch, Chain(1), mask, labels, 9)
        took.append(time.perf_counter() - begin)
    assert min(took) < SOON
