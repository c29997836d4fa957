"""The door to inference: cheap checks, and messages that say where and what to do."""

from time import perf_counter

import numpy as np
import pytest

from crfx.inference.problem import prepare
from crfx.structures import Chain, Forest

NODE = np.zeros((5, 3))
EDGE = np.zeros((3, 3))
OFFSETS = [0, 2, 5]
PARENTS = [-1, 0, -1, 0, 0]
GENEROUS_SECONDS = 2e-3
"""Some twenty times what it takes; a pass over the 27 million scores below takes 10 or more."""


@pytest.mark.parametrize(
    ("edge", "extra", "structure", "sharing"),
    [
        (None, {}, Chain(1), "none"),
        (None, {"order": 3}, Chain(3), "none"),
        (EDGE, {}, Chain(1), "shared"),
        (np.zeros((3, 3, 3)), {"order": 2}, Chain(2), "shared"),
        (np.zeros((5, 3, 3)), {}, Chain(1), "each"),
        (np.zeros((2, 3, 3)), {"edge_types": [0, 1, 0, 1, 0]}, Chain(1), "typed"),
        (EDGE, {"parents": PARENTS}, Forest(), "shared"),
        (np.zeros((5, 3, 3)), {"parents": PARENTS, "start": np.zeros(3)}, Forest(), "each"),
    ],
)
def test_arguments_become_a_problem(edge, extra, structure, sharing):
    problem = prepare(NODE, edge, OFFSETS, **extra)
    assert (problem.structure, problem.sharing) == (structure, sharing)
    assert problem.order == extra.get("order", 1)
    assert problem.scores.node is NODE
    assert problem.batch.n_instances == 2


@pytest.mark.parametrize(
    ("edge", "extra", "message"),
    [
        (EDGE, {"offsets": [0, 2, 4]}, "offsets end at 4 but node has 5 rows"),
        (EDGE, {"offsets": [0, 3, 2, 5]}, "instance 1"),
        (EDGE, {"order": 2}, "with order 2"),
        (EDGE, {"order": 0}, "order must be 1 or more"),
        (EDGE, {"order": 1.5}, "order must be a whole number"),
        (np.zeros((4, 4)), {}, "3 entries"),
        (np.zeros((4, 3, 3)), {}, "4 tables for 5 rows"),
        (EDGE, {"edge_types": [0] * 5}, "one table for all edges"),
        (None, {"edge_types": [0] * 5}, "without edge scores"),
        (EDGE, {"parents": PARENTS, "end": np.zeros(3)}, "no last position"),
        (np.zeros((3, 3, 3)), {"parents": PARENTS, "order": 2}, "order 1 only"),
        (EDGE, {"parents": PARENTS[:4]}, "parents has 4 entries"),
        (EDGE, {"start": np.zeros(4)}, r"start has shape \(4,\)"),
    ],
)
def test_bad_arguments_are_refused(edge, extra, message):
    with pytest.raises(ValueError, match=message):
        prepare(NODE, edge, **{"offsets": OFFSETS, **extra})


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ([0, 0, 0, 2, 0], "instance 1, position 1: edge type 2 .* 2 tables"),
        ([0, -1, 0, 0, 0], "instance 0, position 1: edge type -1"),
    ],
)
def test_edge_types_out_of_range_are_named(types, message):
    for extra in ({}, {"parents": PARENTS}):
        with pytest.raises(ValueError, match=message):
            prepare(NODE, np.zeros((2, 3, 3)), OFFSETS, edge_types=types, **extra)


def test_edge_types_are_free_where_no_edge_ends():
    tables = np.zeros((2, 3, 3))
    prepare(NODE, tables, OFFSETS, edge_types=[-1, 0, 99, 1, 0])
    prepare(NODE, tables, OFFSETS, edge_types=[-1, 0, 99, 1, 0], parents=PARENTS)
    second_order = np.zeros((2, 3, 3, 3))
    prepare(NODE, second_order, OFFSETS, edge_types=[7, 7, 7, 7, 0], order=2)


def test_there_is_no_pass_over_the_scores():
    lengths = np.full(6_877, 8)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    node = np.zeros((offsets[-1], 500), dtype=np.float32)
    edge = np.zeros((500, 500), dtype=np.float32)
    seconds = []
    for _ in range(20):
        began = perf_counter()
        problem = prepare(node, edge, offsets)
        seconds.append(perf_counter() - began)
    assert problem.scores.node is node
    assert min(seconds) < GENEROUS_SECONDS
