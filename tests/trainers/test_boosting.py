"""Boosting lowers the objective in every round, whatever curvature, structure and step."""

import numpy as np
import pytest

from crfx import GBCRF

CURVATURES = ["mixing", "dobrushin", "exact", "length", "diagonal", 0.3, None]


def random_task(seed, n_labels=3, shape="chain", n_instances=25):
    """Instances with some signal and some noise; parents for forests."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 9, n_instances)
    y = [list(random.integers(n_labels, size=length)) for length in lengths]
    X = [
        random.normal(size=(n, 4)) + np.array(own)[:, None]
        for n, own in zip(lengths, y, strict=True)
    ]
    parents = None
    if shape == "forest":
        parents = [
            np.array([-1, *(random.integers(t) for t in range(1, n))], dtype=np.int64)
            for n in lengths
        ]
    return X, y, parents


def assert_falls(history):
    assert (np.diff(history["objective"]) <= 0).all()


@pytest.mark.parametrize("learning_rate", [0.3, 1.0])
@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("shape", ["chain", "forest"])
def test_the_objective_never_rises(shape, curvature, learning_rate):
    X, y, parents = random_task(0, shape=shape)
    crf = GBCRF(
        8, learning_rate, max_depth=4, curvature=curvature, min_child_weight=0.0, random_state=0
    )
    crf.fit(X, y, parents=parents)
    assert_falls(crf.history_)
    if curvature in ("mixing", "dobrushin", "exact", "length") and learning_rate == 0.3:
        assert sum(crf.history_["halvings"]) == 0


@pytest.mark.parametrize("edges", ["table", "linear", "trees", None])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_every_family_and_order(edges, order):
    X, y, _ = random_task(1)
    crf = GBCRF(6, 0.5, max_depth=3, edges=edges, order=order, random_state=0).fit(X, y)
    assert_falls(crf.history_)
    assert crf.history_["objective"][-1] < 0.8 * sum(map(len, y)) * np.log(3)


def test_steps_without_a_bound_are_halved():
    """The companion: with far too little curvature the safeguard has work to do."""
    X, y, _ = random_task(2)
    crf = GBCRF(8, 1.0, curvature=0.05, min_child_weight=0.0, reg_lambda=0.0, random_state=0)
    crf.fit(X, y)
    assert sum(crf.history_["halvings"]) > 0
    assert_falls(crf.history_)


def test_edge_types_have_tables_of_their_own():
    random = np.random.default_rng(0)
    lengths = random.integers(3, 8, 60)
    types = [random.integers(2, size=n) for n in lengths]
    y = []
    for own in types:  # type 0 repeats the label, type 1 changes it
        labels = [int(random.integers(2))]
        for kind in own[1:]:
            labels.append(labels[-1] if kind == 0 else 1 - labels[-1])
        y.append(labels)
    X = [np.zeros((n, 1)) for n in lengths]
    crf = GBCRF(20, random_state=0).fit(X, y, edge_types=types)
    same, other = crf.transitions_
    assert same[0, 0] > same[0, 1] + 1
    assert other[0, 1] > other[0, 0] + 1
    assert crf.transitions_.shape == (2, 2, 2)
    likelihood = crf.log_likelihood(X, y, edge_types=types)
    blind = GBCRF(20, random_state=0).fit(X, y).log_likelihood(X, y)
    assert likelihood.sum() > blind.sum() + 10
