"""Hidden units: the core against the formulas in float64, gradients against differences."""

import numpy as np
import pytest
from scipy import sparse

from crfx.potentials import hidden_unit
from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction
from crfx.testing import central_differences

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


def plain_scores(shape, values, X):
    """The formulas of the module, in float64."""
    parts = shape.split(np.asarray(values, np.float64))
    X = np.asarray(X, np.float64)
    inputs = X @ parts["weights"] + parts["bias"]
    both = inputs[:, :, None] + parts["to_label"]
    if shape.activation == "softplus":
        found = np.logaddexp(0, both).sum(axis=1)
    elif shape.activation == "relu":
        found = np.maximum(0, both).sum(axis=1)
    else:
        units = np.tanh(inputs) if shape.activation == "tanh" else 1 / (1 + np.exp(-inputs))
        found = units @ parts["to_label"]
    found = found + parts["constant"]
    return found + X @ parts["skip"] if shape.skip else found


@pytest.mark.parametrize("n_hidden", [0, 1, 5, 40])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_scores_are_those_of_the_formula(activation, skip, n_hidden):
    own, X = function(activation, skip, n_hidden), features()
    expected = plain_scores(own.shape, own.weights, X.toarray())
    np.testing.assert_allclose(own.scores(X.toarray(), N_ROWS), expected, **SINGLE)
    np.testing.assert_allclose(own.scores(X, N_ROWS), expected, **SINGLE)
    np.testing.assert_allclose(own.prepare(X).scores(own.weights), expected, **SINGLE)


@pytest.mark.parametrize("part", ["weights", "bias", "to_label", "constant", "skip"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_gradient_of_every_part_is_that_of_differences(activation, part):
    """Of the formula in float64: differences of the core's scores would measure their rounding."""
    own, X = function(activation), features()
    slope = np.random.default_rng(2).normal(size=(N_ROWS, N_LABELS)).astype(np.float32)
    expected = central_differences(
        lambda at: float((slope * plain_scores(own.shape, at, X.toarray())).sum()), own.weights
    )
    expected = own.shape.split(expected)[part]
    assert np.abs(expected).max() > 0.1
    for given in (X, X.toarray()):
        prepared = own.prepare(given)
        prepared.scores(own.weights)
        found = own.shape.split(prepared.gradient(slope))[part]
        np.testing.assert_allclose(found, expected, **DIFFERENCES)


def test_the_gradient_is_that_of_the_scores_asked_for_last():
    own, X = function(), features()
    slope = np.ones((N_ROWS, N_LABELS), np.float32)
    other = own.weights * 2
    fresh, used = own.prepare(X), own.prepare(X)
    fresh.scores(other)
    used.scores(own.weights)
    first = used.gradient(slope)
    used.scores(other)
    np.testing.assert_array_equal(used.gradient(slope), fresh.gradient(slope))
    assert not np.allclose(first, fresh.gradient(slope))


@pytest.mark.parametrize("skip", [False, True])
def test_a_part_has_the_weights_that_its_rows_touch(skip):
    own, X = function(skip=skip), features()
    X = sparse.csr_matrix(X.multiply(np.arange(N_FEATURES) != 2))
    X.eliminate_zeros()
    rows = np.arange(5, 20)
    part, at = own.prepare_part(X[rows])
    whole = own.prepare(X)
    own_shape = own.shape.split(np.arange(own.shape.size))
    gone = [own_shape["weights"][2], *([own_shape["skip"][2]] if skip else [])]
    assert not np.isin(np.concatenate(gone), at).any()
    np.testing.assert_allclose(
        part.scores(own.weights[at]), whole.scores(own.weights)[rows], **SINGLE
    )
    slope = np.zeros((N_ROWS, N_LABELS), np.float32)
    slope[rows] = np.random.default_rng(3).normal(size=(len(rows), N_LABELS))
    expected = whole.gradient(slope)
    found = np.zeros(own.shape.size)
    found[at] = part.gradient(slope[rows])
    np.testing.assert_allclose(found, expected, **SINGLE)


def test_a_part_of_dense_rows_has_all_weights():
    own, X = function(), features().toarray()
    part, at = own.prepare_part(X[:9])
    np.testing.assert_array_equal(at, np.arange(own.shape.size))
    np.testing.assert_array_equal(part.scores(own.weights), own.scores(X[:9], 9))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_threads_give_the_same_bits(activation):
    n_rows = 3000
    X = features(n_rows)
    slope = np.random.default_rng(2).normal(size=(n_rows, N_LABELS)).astype(np.float32)
    found = []
    for n_jobs in (1, 2):
        own = function(activation)
        own.use_threads(n_jobs)
        prepared = own.prepare(X)
        found.append((prepared.scores(own.weights), prepared.gradient(slope)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_are_scored_a_few_at_a_time(monkeypatch):
    own, X = function(), features()
    whole = own.scores(X, N_ROWS)
    monkeypatch.setattr(hidden_unit, "ROWS_AT_ONCE", 8)
    np.testing.assert_array_equal(own.scores(X, N_ROWS), whole)


@pytest.mark.parametrize("large", ["inputs", "weights", "both"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_extreme_numbers_stay_finite(activation, large):
    own = function(activation, scale=1.0 if large == "inputs" else 1e4)
    X = features().toarray() * np.float32(1.0 if large == "weights" else 1e4)
    expected = plain_scores_quietly(own, X)
    found = own.scores(X, N_ROWS)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=FAR, atol=FAR * np.abs(expected).max())
    prepared = own.prepare(X)
    prepared.scores(own.weights)
    assert np.isfinite(prepared.gradient(np.ones((N_ROWS, N_LABELS), np.float32))).all()


def plain_scores_quietly(own, X):
    with np.errstate(over="ignore"):
        return plain_scores(own.shape, own.weights, X)


def test_maximised_has_the_same_weights():
    own, X = function(), features()
    best = own.maximised
    assert best.weights is own.weights
    assert best.shape.activation == "relu"
    assert (own.scores(X, N_ROWS) > best.scores(X, N_ROWS)).all()
    with pytest.raises(ValueError, match="there is nothing to maximise over"):
        _ = function("tanh").maximised


def test_first_weights_are_small_and_biases_0():
    shape = HiddenShape(50, 40, 3, skip=True)
    own = HiddenUnitFunction.random(shape, 0.01, np.random.default_rng(0))
    parts = shape.split(own.weights)
    for name in ("weights", "to_label"):
        assert parts[name].std() == pytest.approx(0.01, rel=0.2)
    for name in ("bias", "constant", "skip"):
        assert not parts[name].any()


def test_missing_values_count_as_zero():
    own, X = function(), features().toarray()
    X[3, 4] = np.nan
    np.testing.assert_array_equal(own.scores(X, N_ROWS), own.scores(np.nan_to_num(X), N_ROWS))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_features", [N_FEATURES - 1, N_FEATURES + 1])
def test_another_number_of_features_is_refused(make, n_features):
    X = make(np.ones((3, n_features), np.float32))
    own = function()
    for call in (lambda: own.scores(X, 3), lambda: own.prepare(X), lambda: own.prepare_part(X)):
        with pytest.raises(ValueError, match=f"X has {n_features} features, .* for {N_FEATURES}"):
            call()
