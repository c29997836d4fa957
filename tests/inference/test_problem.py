"""Problems: cheap checks of arguments, and labels that are given (clamped)."""

from itertools import product
from time import perf_counter

import numpy as np
import pytest

from crfx.inference.max_product import best_labels
from crfx.inference.problem import prepare
from crfx.inference.sum_product import summed
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


def test_edge_types_are_free_where_no_edge_ends():
    tables = np.zeros((2, 3, 3))
    prepare(NODE, tables, OFFSETS, edge_types=[-1, 0, 99, 1, 0])
    prepare(NODE, tables, OFFSETS, edge_types=[-1, 0, 99, 1, 0], parents=PARENTS)
    second_order = np.zeros((2, 3, 3, 3))
    prepare(NODE, second_order, OFFSETS, edge_types=[7, 7, 7, 7, 0], order=2)


def test_prepare_makes_no_pass_over_the_scores():
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


@pytest.mark.parametrize("observed", [{}, {0: 2}, {1: 0, 3: 1}, {0: 1, 1: 1, 2: 0, 3: 2}])
def test_clamping_leaves_the_labellings_that_agree(observed):
    random = np.random.default_rng(len(observed))
    node, edge = random.normal(size=(4, 3)), random.normal(size=(3, 3))
    problem = prepare(node, edge, [0, 4])
    rows, labels = (np.array(list(values), int) for values in (observed.keys(), observed.values()))
    clamped = problem.clamped(rows, labels)
    scores = {
        codes: node[np.arange(4), codes].sum() + edge[codes[:-1], codes[1:]].sum()
        for codes in product(range(3), repeat=4)
        if all(codes[row] == label for row, label in observed.items())
    }
    total = np.logaddexp.reduce(list(scores.values()))
    assert summed(clamped, None, None).log_z[0] == pytest.approx(total, abs=1e-12)
    assert tuple(best_labels(clamped)[0]) == max(scores, key=scores.get)
    np.testing.assert_array_equal(problem.scores.node, node)  # a copy was changed
