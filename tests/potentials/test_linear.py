"""Linear functions: the core against plain matrix products, dense against sparse."""

import numpy as np
import pytest
from scipy import sparse

from crfx.features.conjunctions import Conjunctions
from crfx.potentials import linear_features
from crfx.potentials.linear import LinearFunction
from crfx.potentials.linear_features import SparseFeatures
from crfx.potentials.weight_pattern import WeightPattern

SINGLE = {"rtol": 2e-5, "atol": 2e-5}
"""Sums of some tens of float32 numbers of order 1."""

N_ROWS, N_FEATURES = 120, 40


def features(binary=False, seed=0):
    random = np.random.default_rng(seed)
    X = sparse.random(N_ROWS, N_FEATURES, 0.2, "csr", np.float32, rng=random)
    if binary:
        X.data[:] = 1
    return X


def observed(n_outputs, X, seed=1):
    codes = np.random.default_rng(seed).integers(0, n_outputs, N_ROWS)
    return WeightPattern.observed(X, codes, n_outputs), codes


def table(pattern, weights):
    """(features, outputs), zero where there is no weight."""
    if pattern.outputs is None:
        return weights.reshape(pattern.n_features, pattern.n_outputs)
    dense = np.zeros((pattern.n_features, pattern.n_outputs))
    for feature in range(pattern.n_features):
        entries = slice(pattern.starts[feature], pattern.starts[feature + 1])
        dense[feature, pattern.outputs[entries]] = weights[entries]
    return dense


def free_table(pattern):
    """(features, outputs), whether there is a weight that training may change."""
    return table(pattern, np.ones(pattern.n_weights) if pattern.free is None else pattern.free) != 0


def random_weights(pattern, seed=2):
    weights = np.random.default_rng(seed).normal(size=pattern.n_weights)
    return weights if pattern.free is None else weights * pattern.free


@pytest.mark.parametrize("n_outputs", [1, 3, 26, 70])
def test_observed_weights_are_for_the_pairs_that_occur(n_outputs):
    X = features()
    pattern, codes = observed(n_outputs, X)
    expected = np.zeros((N_FEATURES, n_outputs), bool)
    rows, columns = X.nonzero()
    expected[columns, codes[rows]] = True
    np.testing.assert_array_equal(free_table(pattern), expected)
    # Rows without a label give no weights.
    X = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    pattern = WeightPattern.observed(X, np.array([1, -1, 0]), 9)
    np.testing.assert_array_equal(np.diff(pattern.starts), [1, 0, 1])
    np.testing.assert_array_equal(pattern.outputs, [1, 0])


# Kernels sum rows in packs of 16: widths around their borders.
@pytest.mark.parametrize("n_outputs", [1, 3, 15, 16, 17, 26, 32, 33, 48, 63, 64, 65, 70, 100])
@pytest.mark.parametrize("is_observed", [True, False])
def test_scores_and_gradient_are_matrix_products(n_outputs, is_observed):
    for n_jobs, binary in ((1, n_outputs % 2 == 0), (2, n_outputs % 2 == 1)):
        X = features(binary)
        everything = WeightPattern.all(N_FEATURES, n_outputs)
        pattern = observed(n_outputs, X)[0] if is_observed else everything
        function = LinearFunction(pattern, random_weights(pattern))
        function.use_threads(n_jobs)
        prepared = function.prepare(X)
        expected = X.toarray() @ table(pattern, function.weights)
        np.testing.assert_allclose(prepared.scores(function.weights), expected, **SINGLE)
        from_dense = function.scores(X.toarray(), N_ROWS)
        np.testing.assert_allclose(from_dense, expected, **SINGLE)
        slope = np.random.default_rng(3).normal(size=(N_ROWS, n_outputs)).astype(np.float32)
        expected = np.where(free_table(pattern), X.toarray().T @ slope, 0)
        np.testing.assert_allclose(table(pattern, prepared.gradient(slope)), expected, **SINGLE)
        if not is_observed:
            from_dense = function.prepare(X.toarray()).gradient(slope)
            np.testing.assert_allclose(table(pattern, from_dense), expected, **SINGLE)


def test_gradients_sum_over_every_block_of_rows(monkeypatch):
    X = features().toarray()
    X[40:45] = 0  # a block of rows without any feature
    X = sparse.csr_matrix(X)
    pattern, _ = observed(5, X)
    slope = np.random.default_rng(3).normal(size=(N_ROWS, 5)).astype(np.float32)
    whole = SparseFeatures(X, pattern, 1).gradient(slope)
    monkeypatch.setattr(linear_features, "SLOPES_PER_BLOCK", 5 * 5)  # five rows
    by_blocks = SparseFeatures(X, pattern, 2).gradient(slope)
    np.testing.assert_allclose(by_blocks, whole, **SINGLE)
    expected = np.where(free_table(pattern), X.T @ slope, 0)
    np.testing.assert_allclose(table(pattern, by_blocks), expected, **SINGLE)


def test_missing_values_count_as_zero():
    X = features().toarray()
    X[3, 4] = np.nan
    pattern = WeightPattern.all(N_FEATURES, 2)
    function = LinearFunction(pattern, random_weights(pattern))
    expected = function.scores(np.nan_to_num(X), N_ROWS)
    np.testing.assert_array_equal(function.scores(X, N_ROWS), expected)
    np.testing.assert_allclose(function.scores(sparse.csr_matrix(X), N_ROWS), expected, **SINGLE)


@pytest.mark.parametrize("kinds", ["oo", "oa", "ao", "aa"])
def test_patterns_follow_each_other(kinds):
    """Features have weights for observed labels (o) or for all labels (a)."""
    X = features()
    patterns = [
        observed(30, X, seed)[0] if kind == "o" else WeightPattern.all(N_FEATURES, 30)
        for seed, kind in enumerate(kinds)
    ]
    both = patterns[0].followed_by(patterns[1])
    weights = [random_weights(pattern, seed) for seed, pattern in enumerate(patterns)]
    parts = [one.matrix(block) for one, block in zip(patterns, weights, strict=True)]
    joined = both.matrix(np.concatenate(weights))
    np.testing.assert_array_equal(joined.toarray(), sparse.vstack(parts).toarray())
    assert joined.nnz == sum(part.nnz for part in parts)
    assert (both.outputs is None) == (kinds == "aa")


def test_conjunctions_are_its_last_features():
    X = features()
    X.data[5] = np.nan  # counts as 0
    pairs = Conjunctions.of([(0, 1), (2, 7, 9), (3, 4)])
    wide = sparse.csr_matrix(pairs.widened(sparse.csr_matrix(np.nan_to_num(X.toarray()))))
    pattern = WeightPattern.all(N_FEATURES + 3, 4)
    function = LinearFunction(pattern, random_weights(pattern), pairs)
    plain = LinearFunction(pattern, function.weights)
    expected = plain.scores(wide, N_ROWS)
    assert function.n_columns == N_FEATURES
    for inputs in (X, X.toarray()):
        np.testing.assert_allclose(function.scores(inputs, N_ROWS), expected, **SINGLE)
    slope = np.random.default_rng(3).normal(size=(N_ROWS, 4)).astype(np.float32)
    gradients = [
        one.prepare(inputs).gradient(slope) for one, inputs in ((function, X), (plain, wide))
    ]
    np.testing.assert_allclose(*gradients, **SINGLE)
    rows = np.arange(20, 60)
    part, at = function.prepare_part(sparse.csr_matrix(np.nan_to_num(X.toarray()))[rows])
    np.testing.assert_allclose(part.scores(function.weights[at]), expected[rows], **SINGLE)


def test_long_sums_stay_exact_for_any_number_of_threads():
    rows = 200_000
    X = sparse.csr_matrix(np.ones((rows, 1), np.float32))
    pattern = WeightPattern.all(1, 2)
    slope = np.full((rows, 2), 0.1, np.float32)
    results = []
    for n_jobs in (1, 2):
        function = LinearFunction(pattern)
        function.use_threads(n_jobs)
        results.append(function.prepare(X).gradient(slope))
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], rows * np.float64(np.float32(0.1)), rtol=1e-6)
