"""Bad input to inference: errors name the place, and what to do about it."""

from functools import partial

import numpy as np
import pytest

from crfx import inference

NODE = np.zeros((5, 3))
EDGE = np.zeros((3, 3))
OFFSETS = [0, 2, 5]
INF, NAN = np.inf, np.nan


def at(array, index, value):
    changed = array.copy()
    changed[index] = value
    return changed


def each(row, value):
    return at(np.zeros((5, 3, 3)), (row, 1, 2), value)


CASES = {
    "NaN node score": ({"node": at(NODE, (3, 1), NAN)}, "instance 1, position 1.*label 1 is NaN"),
    "+inf node score": ({"node": at(NODE, (1, 2), INF)}, r"instance 0, position 1.*is \+inf"),
    "NaN edge score": ({"edge": at(EDGE, (0, 1), NAN)}, r"edge score \[0, 1\] is NaN"),
    "+inf edge score": ({"edge": at(EDGE, (0, 1), INF)}, r"edge score \[0, 1\] is \+inf"),
    "NaN in one row's table": (
        {"edge": each(4, NAN)},
        r"instance 1, position 2: entry \[1, 2\] .*is NaN",
    ),
    "NaN start": ({"start": [0.0, NAN, 0.0]}, r"start score \[1\] is NaN"),
    "+inf end": ({"end": [0.0, INF, 0.0]}, r"end score \[1\] is \+inf"),
    "nothing allowed": ({"node": at(NODE, 3, -INF)}, "instance 1: .*no allowed labelling"),
    "no transition": ({"edge": np.full((3, 3), -INF)}, "instance [01]: .*no allowed labelling"),
    "rows": ({"node": NODE[:4]}, "offsets end at 5 but node has 4 rows"),
    "offsets start": ({"offsets": [1, 2, 5]}, "offsets must start at 0"),
    "offsets fall": ({"offsets": [0, 4, 2, 5]}, "instance 1: offsets fall from 4 to 2"),
    "offsets floats": ({"offsets": [0.0, 2.0, 5.0]}, "offsets has dtype float64"),
    "offsets axes": ({"offsets": [[0, 5]]}, "offsets has shape"),
    "integer node": ({"node": NODE.astype(int)}, "node scores have dtype int64"),
    "half node": ({"node": NODE.astype(np.float16)}, "node scores have dtype float16"),
    "one axis": ({"node": np.zeros(5)}, "node scores have shape"),
    "no labels": ({"node": np.zeros((5, 0))}, "one label or more"),
    "edge labels": ({"edge": np.zeros((3, 2))}, "edge scores have shape"),
    "edge text": ({"edge": np.full((3, 3), "a")}, "edge scores have dtype"),
    "edge entries": ({"edge": np.zeros((4, 4))}, "3 entries"),
    "edge rows": ({"edge": np.zeros((4, 3, 3))}, "4 tables for 5 rows"),
    "edge axes": ({"edge": np.zeros((3, 3)), "order": 2}, "with order 2"),
    "start length": ({"start": [0.0, 0.0]}, r"start has shape \(2,\)"),
    "order 0": ({"order": 0}, "order must be 1 or more"),
    "order text": ({"order": "1"}, "order must be a whole number"),
    "parent beyond": ({"parents": [-1, 0, -1, 3, 0]}, "instance 1, position 1: parent 3"),
    "parent below": ({"parents": [-1, 0, -2, 0, 0]}, "instance 1, position 0: parent -2"),
    "own parent": ({"parents": [-1, 0, -1, 1, 0]}, "instance 1, position 1: .*cycle"),
    "cycle": ({"parents": [-1, 0, 1, 2, 0]}, "instance 1, position .*cycle"),
    "parents size": ({"parents": [-1, 0]}, "parents has 2 entries"),
    "parents with order 2": (
        {"parents": [-1, 0, -1, 0, 0], "order": 2, "edge": np.zeros((3, 3, 3))},
        "order 1 only",
    ),
    "end in a forest": ({"parents": [-1, 0, -1, 0, 0], "end": np.zeros(3)}, "no last position"),
    "types of one table": ({"edge_types": [0] * 5}, "one table for all edges"),
    "types without tables": ({"edge": None, "edge_types": [0] * 5}, "without edge scores"),
    "type beyond, in a forest": (
        {"edge": np.zeros((2, 3, 3)), "edge_types": [0, 1, 0, 2, 0], "parents": [-1, 0, -1, 0, 0]},
        "instance 1, position 1: edge type 2 .* 2 tables",
    ),
    "NaN without edges": (
        {"edge": None, "node": at(NODE, (3, 1), NAN)},
        r"instance 1, position 1: the node score of label 1 is (?i:nan)",
    ),
    "+inf without edges": (
        {"edge": None, "node": at(NODE, (3, 1), INF)},
        r"instance 1, position 1: the node score of label 1 is \+inf",
    ),
    "a mask value without edges": (
        {"edge": None, "node": at(NODE, (3, 1), 1e200)},
        r"instance 1, position 1: the node score of label 1 is \+1e\+200",
    ),
    "type beyond": (
        {"edge": np.zeros((2, 3, 3)), "edge_types": [0, 1, 0, 2, 0]},
        "instance 1, position 1: edge type 2",
    ),
    "type below": (
        {"edge": np.zeros((2, 3, 3)), "edge_types": [0, 1, 0, 0, -1]},
        "instance 1, position 2: edge type -1",
    ),
    "types of floats": ({"edge": np.zeros((2, 3, 3)), "edge_types": np.zeros(5)}, "edge_types"),
    "NaN in one type's table": (
        {"edge": at(np.zeros((2, 3, 3)), (1, 2, 0), NAN), "edge_types": [0, 1, 0, 1, 0]},
        r"edge score \[2, 0\] of edge type 1 is NaN",
    ),
    "the first of two": (
        {"node": at(NODE, ([1, 2], 0), NAN)},  # the longer second instance is looked at first
        "instance 0, position 1",
    ),
    "a mask value": (
        {"node": at(NODE, (0, 0), np.finfo(float).min)},
        r"instance 0, position 0.*-1.79769e\+308.*-inf where a label is forbidden",
    ),
    "a masked array": ({"node": np.ma.masked_greater(NODE, 1.0)}, "masked array"),
    "ragged": ({"node": [[0.0, 1.0], [0.0]]}, "unequal lengths"),
    "a table of order 2": ({"edge": np.zeros((3, 3, 3))}, "order=2 if it is one table"),
    "huge parent": ({"parents": np.array([2**64 - 1, 0, 0, 0, 0], np.uint64)}, "beyond 64 bits"),
    "n_jobs huge": ({"n_jobs": 2**40}, "at most"),
    "n_jobs 0": ({"n_jobs": 0}, "n_jobs is 0"),
    "n_jobs text": ({"n_jobs": "2"}, "n_jobs is '2'"),
}


FUNCTIONS = (
    inference.sum_product,
    inference.max_product,
    partial(inference.max_product, k=3),
    inference.sample,
    partial(inference.expectation, cost=np.zeros((5, 3))),
)


@pytest.mark.parametrize("name", CASES)
def test_every_function_names_the_place(name):
    changes, message = CASES[name]
    for function in FUNCTIONS:
        with pytest.raises(ValueError, match=message):
            function(**{"node": NODE, "edge": EDGE, "offsets": OFFSETS, **changes})


def test_bad_options_raise():
    for function, options, message in (
        (inference.sum_product, {"curvature": "mix"}, "curvature is 'mix'"),
        (inference.sum_product, {"edge_marginals": "all"}, "'all'"),
        (inference.max_product, {"k": 0}, "k is 0"),
        (inference.max_product, {"k": 2.5}, "k is 2.5"),
        (inference.sample, {"n": -1}, "n is -1"),
        (inference.sample, {"seed": "a"}, "seed is 'a'"),
        (inference.sample, {"seed": 2**64}, "seed is"),
        (inference.expectation, {"cost": NODE[:2]}, "cost has shape"),
        (
            inference.expectation,
            {"cost": at(NODE, (4, 0), NAN)},
            "instance 1, position 2: the cost of label 0 is nan",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            function(NODE, EDGE, OFFSETS, **options)


def test_tables_without_an_edge_are_ignored():
    """First positions and roots have no edge: their tables may hold anything."""
    edge = at(np.zeros((5, 3, 3)), [0, 2], NAN)
    np.testing.assert_allclose(
        inference.sum_product(NODE, edge, OFFSETS).log_z, np.log([9.0, 27.0])
    )
    types = np.array([7, 0, -3, 0, 0])
    sums = inference.sum_product(NODE, EDGE[None], OFFSETS, edge_types=types)
    np.testing.assert_allclose(sums.log_z, np.log([9.0, 27.0]))


def test_the_first_bad_place_is_named_for_any_number_of_threads():
    node = np.zeros((40_000, 3), np.float32)
    node[[9_999, 31_000], 0] = NAN
    offsets = np.arange(0, 40_001, 10)
    for jobs in (1, 2):
        with pytest.raises(ValueError, match="instance 999, position 9"):
            inference.sum_product(node, EDGE, offsets, n_jobs=jobs)


def test_impossible_position_is_named_without_edges():
    impossible = NODE.copy()
    impossible[1] = -INF
    with pytest.raises(ValueError) as with_edges:  # noqa: PT011
        inference.sum_product(impossible, np.zeros((3, 3)), OFFSETS)
    with pytest.raises(ValueError) as without:  # noqa: PT011
        inference.sum_product(impossible, None, OFFSETS)
    assert str(without.value) == str(with_edges.value)
