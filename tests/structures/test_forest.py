"""Forests: parents in any order, and their checks; `test_chain.py` has scores of labellings."""

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.scores import Scores
from crfx.structures import Chain, Forest
from crfx.testing import make_parents

RTOL = 1e-12
DEEP = 100_000


def test_parts_of_a_forest():
    # Instance 0: 2 -> 0 -> 1 and the single node 3.  Instance 1 is empty.  Instance 2: 1 -> 0.
    batch = Batch.from_lengths([4, 0, 2], parents=[2, 0, -1, -1, 1, -1])
    forest = Forest()
    forest.check(batch)
    assert forest.n_label_axes == 2
    assert forest.root_rows(batch).tolist() == [2, 3, 5]
    assert forest.edge_rows(batch).tolist() == [0, 1, 4]
    assert forest.contexts(batch).tolist() == [[2], [0], [5]]
    assert forest.tree_of(batch).tolist() == [2, 2, 2, 3, 5, 5]
    assert forest.visit_order(batch).tolist() == [2, 3, 0, 1, 5, 4]


def test_parents_are_visited_first():
    random = np.random.default_rng(0)
    lengths = random.integers(0, 9, size=80)
    parents = [make_parents(random, length, "random") for length in lengths]
    batch = Batch.from_lengths(lengths, parents=np.concatenate(parents))
    forest = Forest()
    forest.check(batch)
    order = forest.visit_order(batch)
    assert sorted(order) == list(range(batch.n_rows))
    assert (np.diff(batch.instance_of_row[order]) >= 0).all()
    when = np.argsort(order)
    assert (when[forest.contexts(batch)[:, 0]] < when[forest.edge_rows(batch)]).all()


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([-1, -1, 0, 2], "instance 1, position 2: the node is its own parent"),
        ([-1, -1, 0, 3], "instance 1, position 2: parent 3 is out of range.*0 to 2"),
        ([-1, -1, -2, 0], "instance 1, position 1: parent -2 is out of range"),
        ([1, -1, 0, 0], "instance 0, position 0: parent 1 is out of range"),
        ([-1, 1, 2, 0], "instance 1, position [012]: the node is its own ancestor"),
        ([-1, 1, 2, 1], "instance 1, position [12]: the node is its own ancestor"),
        ([0, -1, 0, 0], "instance 0, position 0: the node is its own parent"),
    ],
)
def test_bad_parents_raise(parents, message):
    with pytest.raises(ValueError, match=message):
        Forest().check(Batch.from_lengths([1, 3], parents=parents))


def test_a_cycle_is_named_by_a_node_that_is_on_it():
    # 0 <-> 1 is the cycle; 2, 3, 4 hang below it and are not on it.
    with pytest.raises(ValueError, match=r"position [01]: the node is its own ancestor"):
        Forest().check(Batch.from_lengths([5], parents=[1, 0, 1, 2, 3]))


def test_missing_parents_and_end_scores_raise():
    with pytest.raises(ValueError, match="needs parents"):
        Forest().check(Batch.from_lengths([1]))
    batch = Batch.from_lengths([1], parents=[-1])
    with pytest.raises(ValueError, match="no last position"):
        Forest().score(batch, Scores(np.zeros((1, 2)), end=np.zeros(2)), [0])


@pytest.mark.parametrize("shape", ["path", "star"])
def test_large_trees_are_checked_without_recursion(shape):
    parents = make_parents(np.random.default_rng(0), DEEP, shape)
    batch = Batch.from_lengths([DEEP], parents=parents)
    Forest().check(batch)
    assert set(Forest().tree_of(batch).tolist()) == {int(np.flatnonzero(parents == -1)[0])}
    cut = parents.copy()
    cut[parents == -1] = np.flatnonzero(parents != -1)[0]
    with pytest.raises(ValueError, match="own ancestor"):
        Forest().check(Batch.from_lengths([DEEP], parents=cut))


def test_a_chain_is_a_forest_whose_parent_is_the_position_before():
    random = np.random.default_rng(6)
    scores = Scores(random.normal(size=(6, 3)), random.normal(size=(3, 3)), random.normal(size=3))
    labels = random.integers(3, size=6)
    chain = Batch.from_lengths([2, 4])
    forest = Batch.from_lengths([2, 4], parents=[-1, 0, -1, 0, 1, 2])
    np.testing.assert_allclose(
        Forest().score(forest, scores, labels), Chain().score(chain, scores, labels), rtol=RTOL
    )
