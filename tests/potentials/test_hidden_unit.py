"""Hidden units: the core against the formulas in float64, gradients against differences."""

import numpy as np
import pytest
from scipy import sparse

from crfx.potentials import hidden_unit
from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction
from crfx.testing import central_differences
from tests.pairwise import pairwise
from tests.potentials.hidden_formula import plain_scores

SINGLE = {"rtol": 2e-5, "atol": 2e-5}
"""Sums of some tens of float32 numbers of order 1."""
DIFFERENCES = {"rtol": 1e-4, "atol": 1e-4}
FAR = 1e-4
"""Of the largest score, where numbers are."""
ACTIVATIONS = ["softplus", "relu", "tanh", "sigmoid"]
N_ROWS, N_FEATURES, N_HIDDEN, N_LABELS = 37, 6, 5, 4


def features(n_rows=N_ROWS, seed=0):
    random = np.random.default_rng(seed)
    return sparse.random(n_rows, N_FEATURES, 0.5, "csr", np.float32, rng=random)


def function(activation="softplus", skip=True, n_hidden=N_HIDDEN, scale=1.0, seed=1):
    shape = HiddenShape(N_FEATURES, n_hidden, N_LABELS, activation, skip)
    weights = np.random.default_rng(seed).normal(size=shape.size) * scale
    return HiddenUnitFunction(shape, weights.astype(np.float32))


@pytest.mark.parametrize(
    ("activation", "skip", "n_hidden"), pairwise(ACTIVATIONS, [False, True], [0, 1, 5, 40])
)
def test_scores_are_those_of_the_formula(activation, skip, n_hidden):
    units, X = function(activation, skip, n_hidden), features()
    expected = plain_scores(units.shape, units.weights, X.toarray())
    np.testing.assert_allclose(units.scores(X.toarray(), N_ROWS), expected, **SINGLE)
    np.testing.assert_allclose(units.scores(X, N_ROWS), expected, **SINGLE)
    np.testing.assert_allclose(units.prepare(X).scores(units.weights), expected, **SINGLE)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradient_of_every_part_is_that_of_differences(activation):
    """Differences use the formula in float64; those of the core's scores would measure rounding."""
    units, X = function(activation), features()
    slope = np.random.default_rng(2).normal(size=(N_ROWS, N_LABELS)).astype(np.float32)
    expected = central_differences(
        lambda at: float((slope * plain_scores(units.shape, at, X.toarray())).sum()), units.weights
    )
    assert all(np.abs(part).max() > 0.1 for part in units.shape.split(expected).values())
    for inputs in (X, X.toarray()):
        prepared = units.prepare(inputs)
        prepared.scores(units.weights)
        np.testing.assert_allclose(prepared.gradient(slope), expected, **DIFFERENCES)


def test_gradient_belongs_to_the_last_scores(monkeypatch):
    units, X = function(), features()
    slope = np.ones((N_ROWS, N_LABELS), np.float32)
    other = units.weights * 2
    fresh, used = units.prepare(X), units.prepare(X)
    fresh.scores(other)
    used.scores(units.weights)
    first = used.gradient(slope)
    used.scores(other)
    np.testing.assert_array_equal(used.gradient(slope), fresh.gradient(slope))
    assert not np.allclose(first, fresh.gradient(slope))
    whole = units.scores(X, N_ROWS)
    monkeypatch.setattr(hidden_unit, "ROWS_AT_ONCE", 8)
    np.testing.assert_array_equal(units.scores(X, N_ROWS), whole)


@pytest.mark.parametrize("skip", [False, True])
def test_prepare_part_selects_weights_of_its_rows(skip):
    units, X = function(skip=skip), features()
    X = sparse.csr_matrix(X.multiply(np.arange(N_FEATURES) != 2))
    X.eliminate_zeros()
    rows = np.arange(5, 20)
    part, at = units.prepare_part(X[rows])
    whole = units.prepare(X)
    own_shape = units.shape.split(np.arange(units.shape.size))
    gone = [own_shape["weights"][2], *([own_shape["skip"][2]] if skip else [])]
    assert not np.isin(np.concatenate(gone), at).any()
    np.testing.assert_allclose(
        part.scores(units.weights[at]), whole.scores(units.weights)[rows], **SINGLE
    )
    slope = np.zeros((N_ROWS, N_LABELS), np.float32)
    slope[rows] = np.random.default_rng(3).normal(size=(len(rows), N_LABELS))
    expected = whole.gradient(slope)
    gradient = np.zeros(units.shape.size)
    gradient[at] = part.gradient(slope[rows])
    np.testing.assert_allclose(gradient, expected, **SINGLE)
    X = X.toarray()  # a part of dense rows has all weights
    part, at = units.prepare_part(X[:9])
    np.testing.assert_array_equal(at, np.arange(units.shape.size))
    np.testing.assert_array_equal(part.scores(units.weights), units.scores(X[:9], 9))
    X[3, 4] = np.nan  # a missing value counts as 0
    np.testing.assert_array_equal(units.scores(X, N_ROWS), units.scores(np.nan_to_num(X), N_ROWS))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_threads_give_the_same_bits(activation):
    n_rows = 3000
    X = features(n_rows)
    slope = np.random.default_rng(2).normal(size=(n_rows, N_LABELS)).astype(np.float32)
    results = []
    for n_jobs in (1, 2):
        units = function(activation)
        units.use_threads(n_jobs)
        prepared = units.prepare(X)
        results.append((prepared.scores(units.weights), prepared.gradient(slope)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_extreme_numbers_stay_finite(activation):
    for scale_of_weights, scale_of_inputs in ((1.0, 1e4), (1e4, 1.0), (1e4, 1e4)):
        units = function(activation, scale=scale_of_weights)
        X = features().toarray() * np.float32(scale_of_inputs)
        with np.errstate(over="ignore"):
            expected = plain_scores(units.shape, units.weights, X)
        scores = units.scores(X, N_ROWS)
        assert np.isfinite(scores).all()
        np.testing.assert_allclose(scores, expected, rtol=FAR, atol=FAR * np.abs(expected).max())
        prepared = units.prepare(X)
        prepared.scores(units.weights)
        assert np.isfinite(prepared.gradient(np.ones((N_ROWS, N_LABELS), np.float32))).all()


# Fewer weights than a pack, a pack and a rest, whole packs; exp(95) overflows in float32.
@pytest.mark.parametrize(("n_hidden", "far"), [(3, 95.0), (7, -95.0), (7, 95.0), (16, 95.0)])
def test_huge_weights_bypass_exponential_table(n_hidden, far):
    shape = HiddenShape(n_features=2, n_hidden=n_hidden, n_labels=5)
    X = np.array([[0.5, -1.0], [1.0, 2.0], [90.0, 0.0]], np.float32)
    for place in np.ndindex(n_hidden, 5):
        units = HiddenUnitFunction.random(shape, 1.0, np.random.default_rng(0))
        shape.split(units.weights)["to_label"][place] = far
        expected = plain_scores(shape, units.weights, X)
        np.testing.assert_allclose(units.scores(X, 3), expected, rtol=1e-5)


def test_maximised_and_random_functions():
    units, X = function(), features()
    best = units.maximised
    assert best.weights is units.weights
    assert best.shape.activation == "relu"
    assert (units.scores(X, N_ROWS) > best.scores(X, N_ROWS)).all()
    with pytest.raises(ValueError, match="there is nothing to maximise over"):
        _ = function("tanh").maximised
    shape = HiddenShape(50, 40, 3, skip=True)
    parts = shape.split(HiddenUnitFunction.random(shape, 0.01, np.random.default_rng(0)).weights)
    for name, part in parts.items():
        is_drawn = name in ("weights", "to_label")
        assert part.std() == (pytest.approx(0.01, rel=0.2) if is_drawn else 0)
        assert is_drawn or not part.any()


def test_another_number_of_features_is_rejected():
    units = function()
    for n_features, make in ((N_FEATURES - 1, np.asarray), (N_FEATURES + 1, sparse.csr_matrix)):
        X = make(np.ones((3, n_features), np.float32))
        message = f"X has {n_features} features, .* for {N_FEATURES}"
        for call in (lambda X: units.scores(X, 3), units.prepare, units.prepare_part):
            with pytest.raises(ValueError, match=message):
                call(X)
