"""Settings of constraints, and the mask they become."""

from itertools import pairwise, product

import numpy as np
import pytest

from crfx.structures import Constraints
from crfx.structures.constraints import from_plain, mask_of, parse, to_plain

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
    for constraints in (pairs, list(pairs), Constraints(allowed=pairs), Constraints(set(RISING))):
        assert mask_of(constraints, CLASSES, is_forest=False).pair.tolist() == wanted.tolist()
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


def test_bad_constraints_raise():
    for make, message in (
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
    ):
        with pytest.raises(ValueError, match=message):
            make()
