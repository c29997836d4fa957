"""Chains of order n: their parts; scores of labellings, of forests too."""

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.inference.problem import prepare
from crfx.scores import Scores
from crfx.structures import Chain
from crfx.testing import enumerate_instances, make_problem
from tests.pairwise import pairwise


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


def test_bad_orders_raise():
    for order in (0, -1, 1.0, True, "1", None):
        with pytest.raises(ValueError, match="order must be"):
            Chain(order)


def test_parents_raise():
    with pytest.raises(ValueError, match="use Forest"):
        Chain().check(Batch.from_lengths([1], parents=[-1]))


def test_a_forbidden_labelling_scores_minus_infinity():
    batch, node = Batch.from_lengths([2, 1]), np.zeros((3, 2))
    edge = np.array([[0.0, -np.inf], [0.0, 0.0]])
    assert Chain().score(batch, Scores(node, edge), [0, 1, 1]).tolist() == [-np.inf, 0.0]


def test_bad_labellings_raise():
    batch, scores = Batch.from_lengths([2, 1]), Scores(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="instance 1, position 0: label code 2"):
        Chain().score(batch, scores, [0, 1, 2])
    with pytest.raises(ValueError, match="node has 3 rows but the batch has 2"):
        Chain().score(Batch.from_lengths([2]), scores, [0, 1])


@pytest.mark.parametrize(
    ("structure", "sharing"),
    pairwise(
        [{"order": 1}, {"order": 2}, {"order": 3}, {"shape": "random"}],
        ["none", "shared", "typed", "each"],
    ),
    ids=str,
)
def test_scores_of_labellings_against_enumeration(structure, sharing):
    """Scores of labellings of chains and forests agree with enumeration."""
    raw = make_problem(0, lengths=(5, 0, 1, 4), sharing=sharing, **structure)
    problem = prepare(**raw.arguments())
    labels = np.random.default_rng(0).integers(3, size=problem.batch.n_rows)
    expected = [
        instance.score_of(labels[problem.batch.slice_of(k)])
        for k, instance in enumerate(enumerate_instances(**raw.arguments()))
    ]
    scores = problem.structure.score(problem.batch, problem.scores, labels)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
