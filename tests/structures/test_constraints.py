"""Settings of constraints, the mask they become, and whether anything is left."""

import re
from itertools import pairwise, product

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.structures import Chain, Constraints, Forest, Mask
from crfx.structures.constraints import from_plain, mask_of, parse, to_plain
from crfx.structures.feasibility import check_allowed, check_possible, impossible_rows

CLASSES = np.array(["a", "b", "c"])
RISING = [("a", "a"), ("a", "b"), ("b", "b"), ("b", "c"), ("c", "c")]


def test_allowed_and_forbidden_pairs():
    mask = mask_of(RISING, CLASSES, is_forest=False)
    assert mask.pair.astype(int).tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 1]]
    assert mask.start is None
    assert mask.end is None
    settings = Constraints(
        RISING, forbidden=[("a", "b")], start_forbidden=["c"], end_forbidden={"a"}
    )
    mask = mask_of(settings, CLASSES, is_forest=False)
    assert mask.pair.astype(int).tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 1]]
    assert mask.start.tolist() == [True, True, False]
    assert mask.end.tolist() == [False, True, True]
    only = mask_of(Constraints(forbidden=[("a", "b")]), CLASSES, is_forest=False)
    assert only.pair.sum() == 8
    assert mask_of(None, CLASSES, is_forest=False) is None


def test_arrays_of_pairs():
    pairs = np.array(RISING)
    wanted = mask_of(RISING, CLASSES, is_forest=False).pair
    for own in (pairs, list(pairs), Constraints(allowed=pairs), Constraints(set(RISING))):
        assert mask_of(own, CLASSES, is_forest=False).pair.tolist() == wanted.tolist()
    mask = mask_of(Constraints(forbidden=pairs), CLASSES, is_forest=False)
    assert mask.pair.tolist() == (~wanted).tolist()
    assert to_plain(pairs) == [list(pair) for pair in RISING]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_table_of_order_n_holds_all_neighbours(order):
    mask = mask_of(RISING, CLASSES, is_forest=False)
    tables = mask.tables(order)
    for codes in product(range(3), repeat=order + 1):
        good = all(mask.pair[a, b] for a, b in pairwise(codes))
        assert tables["edge"][codes] == (0 if good else -np.inf)
    assert ("pairs" in tables) == (order > 1)


@pytest.mark.parametrize(
    "constraints",
    [
        None,
        "bio",
        "bioes",
        RISING,
        [],
        Constraints(allowed=RISING, start_forbidden=["c"]),
        Constraints(forbidden=[(1, 2)], end_forbidden=[1]),
    ],
    ids=str,
)
def test_plain_values_and_back(constraints):
    back = from_plain(to_plain(constraints))
    assert type(back) is type(constraints)
    assert to_plain(back) == to_plain(constraints)
    if isinstance(constraints, str | None):
        assert back == constraints


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: parse("iob"), 'constraints is \'iob\': choose "bio", "bioes"'),
        (lambda: parse(3), "allowed is 3: pass a list of pairs of labels"),
        (lambda: parse(["ab"]), "allowed holds 'ab', which is no pair of labels"),
        (lambda: parse([("a", "b", "c")]), "which is no pair"),
        (lambda: Constraints(forbidden=[1]), "forbidden holds 1, which is no pair"),
        (lambda: Constraints(start_forbidden="a"), "start_forbidden is 'a': pass a list of labels"),
        (
            lambda: mask_of([("a", "x")], CLASSES, is_forest=False),
            "constraints name the label 'x', which y does not have",
        ),
        (lambda: mask_of("bio", CLASSES, is_forest=True), "is for chains, but parents are given"),
        (
            lambda: mask_of(Constraints(end_forbidden=["a"]), CLASSES, is_forest=True),
            "a forest has no last position",
        ),
    ],
)
def test_mistakes(make, message):
    with pytest.raises(ValueError, match=message):
        make()


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


@pytest.mark.parametrize("is_forest", [False, True])
def test_what_is_possible_is_what_enumeration_finds(is_forest):
    random = np.random.default_rng(0)
    n_possible = 0
    for _ in range(300):
        n = int(random.integers(1, 5))
        parents = [-1, *(int(random.integers(-1, t)) for t in range(1, n))]
        if not is_forest:
            parents = list(range(-1, n - 1))
        pair, start = random.random((3, 3)) < 0.4, random.random(3) < 0.7
        end = None if is_forest else random.random(3) < 0.7
        allowed = random.random((n, 3)) < 0.6
        labels = np.where(random.random(n) < 0.3, random.integers(3, size=n), -1)
        batch = Batch.from_lengths(
            [n], parents=np.array(parents) if is_forest else None, allowed=allowed
        )
        structure = Forest() if is_forest else Chain(2)
        found = impossible_rows(batch, structure, Mask(pair, start, end), labels, 3).any()
        possible = any(
            all(
                allowed[t, code]
                and labels[t] in (-1, code)
                and (start[code] if parents[t] < 0 else pair[codes[parents[t]], code])
                and (end is None or t < n - 1 or end[code])
                for t, code in enumerate(codes)
            )
            for codes in product(range(3), repeat=n)
        )
        assert found != possible
        n_possible += possible
    assert 30 < n_possible < 270


def test_an_instance_without_a_label_left_is_named():
    batch = Batch.from_lengths([1, 2], allowed=np.array([[1, 1, 1], [1, 0, 0], [0, 0, 1]], bool))
    mask = mask_of(RISING, CLASSES, is_forest=False)
    with pytest.raises(ValueError, match="instance 1, position 0: constraints leave no label here"):
        check_possible(batch, Chain(1), mask, None, 3)
