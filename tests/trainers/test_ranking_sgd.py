"""Descent over queries: slopes by differences, sparse and dense alike, subsets by epoch."""

import numpy as np
import pytest
from scipy import sparse

from crfx.objectives.ranking import OBJECTIVES
from crfx.testing import central_differences
from crfx.trainers.ranking_sgd import QueryBatches
from tests.trainers.ranking_tasks import make_ranking_task

DIFFERENCES = {"rtol": 1e-5, "atol": 1e-7}
FLOAT32 = {"rtol": 1e-4, "atol": 1e-5}
"""Scores of sparse features are float32."""
ALL = np.arange(5)


def task(objective="kl", n_subsets=2, weights=None):
    ranking, random = make_ranking_task(
        [3, 6, 5, 8, 4], objective, size=4, n_subsets=n_subsets, weights=weights
    )
    n_rows = len(ranking.gains)
    X = random.normal(size=(n_rows, 3)).astype(np.float32)
    return ranking, X, random.normal(size=n_rows)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_slopes_are_those_of_differences(objective):
    ranking, X, base = task(objective)
    _, loss = QueryBatches(ranking, X, base, seed=0, size=2)(ALL, 7)
    at = np.array([0.3, -1.0, 0.5])
    expected = central_differences(lambda w: loss(w)[0], at)
    np.testing.assert_allclose(loss(at)[1], expected, **DIFFERENCES)


def test_sparse_features_touch_their_own_weights():
    ranking, X, base = task()
    X[:, 1] = 0
    X[X < 0] = 0
    dense = QueryBatches(ranking, X, base, seed=0, size=2)
    result = QueryBatches(ranking, sparse.csr_matrix(X), base, seed=0, size=2)
    weights = np.array([0.3, -1.0, 0.5])
    at, loss = result(ALL, 3)
    assert at.tolist() == [0, 2]
    value, gradient = loss(weights[at])
    whole, whole_gradient = dense(ALL, 3)[1](weights)
    np.testing.assert_allclose(value, whole, **FLOAT32)
    np.testing.assert_allclose(gradient, whole_gradient[at], **FLOAT32)
    np.testing.assert_allclose(result.value(weights).value, dense.value(weights).value, **FLOAT32)


def test_subsets_are_drawn_once_an_epoch():
    ranking, X, base = task(n_subsets=1)
    batches = QueryBatches(ranking, X, base, seed=0, size=2)  # three steps an epoch
    weights = np.array([0.3, -1.0, 0.5])

    def value(number):
        return batches(ALL, number)[1](weights)[0]

    assert value(0) == value(2) != value(3)
    assert value(3) == value(5) != value(6)
    assert value(0) == QueryBatches(ranking, X, base, seed=0, size=2)(ALL, 1)[1](weights)[0]
    assert value(0) != QueryBatches(ranking, X, base, seed=1, size=2)(ALL, 1)[1](weights)[0]
    assert value(None) == batches.value(weights).value


def test_the_loss_of_some_queries_is_theirs():
    ranking, X, base = task()
    batches = QueryBatches(ranking, X, base, seed=0, size=1)
    weights = np.array([0.3, -1.0, 0.5])
    parts = [batches(np.array([query]), 0)[1](weights)[0] for query in range(5)]
    assert sum(parts) == pytest.approx(batches(ALL, 0)[1](weights)[0])


def test_weights_of_queries():
    weights = np.array([1.0, 2.0, 0.5, 1.0, 3.0])
    ranking, X, base = task(weights=weights)
    plain, _, _ = task()
    at = np.array([0.3, -1.0, 0.5])
    parts = [
        QueryBatches(plain, X, base, 0, 1)(np.array([query]), 0)[1](at)[0] for query in range(5)
    ]
    assert QueryBatches(ranking, X, base, 0, 1)(ALL, 0)[1](at)[0] == pytest.approx(weights @ parts)


def test_scores_that_are_not_finite_have_infinite_loss():
    ranking, X, base = task()
    _, loss = QueryBatches(ranking, X, base, 0, 1)(ALL, 0)
    value, gradient = loss(np.array([np.inf, 0.0, 0.0]))
    assert value == np.inf
    assert not gradient.any()
