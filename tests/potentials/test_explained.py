"""Functions as sums over features: each method against what defines it."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction
from crfx.potentials.regressors import sampled_terms
from tests.potentials.hidden_formula import plain_scores

QUADRATURE = {"rtol": 1e-3, "atol": 1e-4}
EXACT = {"rtol": 1e-9, "atol": 1e-9}
FLOAT32 = {"rtol": 1e-5, "atol": 1e-5}
N_POINTS = 4000


def named(column):
    return f"f{column}"


def spread_out(terms, n_features):
    """(features, outputs), zero where a feature adds nothing."""
    dense = np.zeros((n_features, len(terms.base)))
    dense[terms.columns] = terms.contributions
    return dense


@pytest.mark.parametrize(
    ("activation", "skip"),
    [("softplus", False), ("relu", True), ("tanh", False), ("sigmoid", True)],
)
def test_hidden_units_are_explained_by_the_mean_gradient(activation, skip):
    shape = HiddenShape(3, 5, 2, activation, skip)
    weights = np.random.default_rng(0).normal(size=shape.size).astype(np.float32)
    function = HiddenUnitFunction(shape, weights)
    x = np.array([0.7, -1.3, 2.0], np.float32)
    (terms,) = function.explained(x[None], named)
    step = 1e-6
    points = ((np.arange(N_POINTS) + 0.5) / N_POINTS)[:, None] * x.astype(np.float64)
    expected = np.empty((3, 2))
    for column in range(3):
        move = step * np.eye(3)[column]
        ahead, behind = (plain_scores(shape, weights, points + sign * move) for sign in (1, -1))
        expected[column] = (ahead - behind).mean(axis=0) / (2 * step) * x[column]
    np.testing.assert_allclose(spread_out(terms, 3), expected, **QUADRATURE)
    np.testing.assert_allclose(
        terms.base + terms.contributions.sum(axis=0), function.scores(x[None], 1)[0], **FLOAT32
    )


def test_hidden_units_without_movement_have_their_slope():
    shape = HiddenShape(2, 1, 1)
    function = HiddenUnitFunction(shape, np.zeros(shape.size, np.float32))
    parts = shape.split(function.weights)
    parts["weights"][:] = [[1.0], [-1.0]]
    (terms,) = function.explained(np.array([[3.0, 3.0]], np.float32), named)
    # z = 0, where log(1 + exp(z)) has the slope 1/2.
    np.testing.assert_allclose(terms.contributions[:, 0], [1.5, -1.5], **EXACT)


@pytest.mark.parametrize("as_kind", [np.asarray, sparse.csr_matrix])
def test_sampled_values_are_exact_for_pairwise_functions(as_kind):
    def scores(X):
        X = X.toarray() if sparse.issparse(X) else X
        return np.column_stack([X[:, 0] * X[:, 1] + 2 * X[:, 2] + 5, X[:, 0]])

    (terms,) = sampled_terms(scores, as_kind([[2.0, 3.0, 1.0, 0.0]]), named)
    np.testing.assert_allclose(terms.base, [5.0, 0.0], **EXACT)
    np.testing.assert_allclose(
        spread_out(terms, 4), [[3.0, 2.0], [3.0, 0.0], [2.0, 0.0], [0.0, 0.0]], **EXACT
    )


def test_sampled_values_add_up_whatever_the_function():
    def scores(X):
        return np.column_stack([np.cos(np.prod(1 + X, axis=1)), np.isnan(X).sum(axis=1)])

    X = np.array([[0.3, -2.0, 1.1, 4.0], [0.0, 0.0, 0.0, 0.0]])
    for row, terms in enumerate(sampled_terms(scores, X, named)):
        total = terms.base + terms.contributions.sum(axis=0)
        np.testing.assert_allclose(total, scores(X[[row]])[0], **EXACT)
    (missing,) = sampled_terms(scores, np.array([[np.nan, 0.0]]), named)
    assert missing.inputs.tolist() == [None]
    frame = pd.DataFrame({"kind": pd.Categorical(["u"])})  # categories have no zero
    with pytest.raises(ValueError, match="encode them, one column per category"):
        next(sampled_terms(lambda X: np.zeros((len(X), 1)), frame, named))


def test_sampled_values_of_wide_rows_are_scored_in_parts(monkeypatch):
    """All orders of 3000 features at once would be 4 GB."""
    asked = []

    def scores(X):
        asked.append(len(X))
        return X.sum(axis=1, keepdims=True) * X[:, :1]

    X = np.arange(1.0, 8.0)[None]
    (whole,) = sampled_terms(scores, X, named)
    monkeypatch.setattr("crfx.potentials.regressors.MOST_CELLS", 3 * 7, raising=False)
    asked.clear()
    (parted,) = sampled_terms(scores, X, named)
    assert max(asked) == 3
    np.testing.assert_array_equal(parted.contributions, whole.contributions)
    np.testing.assert_array_equal(parted.base, whole.base)
