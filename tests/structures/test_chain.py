"""Chains of order n: their parts, and the score of a labelling."""

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.scores import Scores
from crfx.structures import Chain

RTOL = 1e-12


def test_parts_of_a_first_order_chain():
    chain, batch = Chain(), Batch.from_lengths([3, 0, 1, 2])
    chain.check(batch)
    assert chain.root_rows(batch).tolist() == [0, 3, 4]
    assert chain.last_rows(batch).tolist() == [2, 3, 5]
    assert chain.edge_rows(batch).tolist() == [1, 2, 5]
    assert chain.contexts(batch).tolist() == [[0], [1], [4]]
    assert chain.tree_of(batch).tolist() == [0, 0, 0, 3, 4, 4]
    assert chain.visit_order(batch).tolist() == list(range(6))


def test_parts_of_a_second_order_chain():
    chain, batch = Chain(order=2), Batch.from_lengths([4, 2])
    assert chain.n_label_axes == 3
    assert chain.edge_rows(batch).tolist() == [2, 3]
    assert chain.contexts(batch).tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("order", [0, -1, 1.0, True, "1", None])
def test_bad_orders_are_refused(order):
    with pytest.raises(ValueError, match="order must be"):
        Chain(order)


def test_parents_are_refused():
    with pytest.raises(ValueError, match="use Forest"):
        Chain().check(Batch.from_lengths([1], parents=[-1]))


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("sharing", ["none", "shared", "typed", "each"])
def test_score_adds_up_the_parts(order, sharing):
    random = np.random.default_rng(order)
    lengths, k = [5, 0, 2, 4], 3
    rows = sum(lengths)
    front = {"shared": (), "typed": (2,), "each": (rows,)}.get(sharing)
    edge = None if front is None else random.normal(size=(*front, *(k,) * (order + 1)))
    types = random.integers(2, size=rows) if sharing == "typed" else None
    batch = Batch.from_lengths(lengths, edge_types=types)
    node, start, end = random.normal(size=(rows, k)), *random.normal(size=(2, k))
    labels = random.integers(k, size=rows)

    expected, row = [], 0
    for length in lengths:
        y, total = labels[row : row + length], 0.0
        for t in range(length):
            total += node[row + t, y[t]]
            if edge is not None and t >= order:
                which = {"shared": (), "typed": (types,), "each": (range(rows),)}[sharing]
                table = edge[tuple(w[row + t] for w in which)]
                total += table[tuple(y[t - order : t + 1])]
        expected.append(total + (start[y[0]] + end[y[-1]] if length else 0.0))
        row += length

    found = Chain(order).score(batch, Scores(node, edge, start, end), labels)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=RTOL)


def test_a_forbidden_labelling_scores_minus_infinity():
    batch, node = Batch.from_lengths([2, 1]), np.zeros((3, 2))
    edge = np.array([[0.0, -np.inf], [0.0, 0.0]])
    assert Chain().score(batch, Scores(node, edge), [0, 1, 1]).tolist() == [-np.inf, 0.0]


def test_bad_labellings_are_refused():
    batch, scores = Batch.from_lengths([2, 1]), Scores(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="instance 1, position 0: label code 2"):
        Chain().score(batch, scores, [0, 1, 2])
    with pytest.raises(ValueError, match="node has 3 rows but the batch has 2"):
        Chain().score(Batch.from_lengths([2]), scores, [0, 1])
