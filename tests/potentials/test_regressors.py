"""Any regressor as the function of a round: what it is fitted to, seeds, steps and rounds."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from crfx.potentials.regressors import BoostedRegressors

SAME32 = {"rtol": 1e-6, "atol": 1e-7}
N_ROWS, N_OUTPUTS = 60, 3


class Recorder(RegressorMixin, BaseEstimator):
    """A regressor that predicts 0 and records the data of every fit."""

    calls = []  # noqa: RUF012 - shared by clones on purpose

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight):
        self.calls.append((y.copy(), sample_weight.copy(), self.random_state))
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.fixture
def recorder():
    Recorder.calls.clear()
    return Recorder()


def features(seed=0):
    return np.random.default_rng(seed).normal(size=(N_ROWS, 4))


def derivatives(seed=1):
    random = np.random.default_rng(seed)
    gradient = random.normal(size=(N_ROWS, N_OUTPUTS)).astype(np.float32)
    return gradient, random.uniform(0.1, 1, size=gradient.shape).astype(np.float32)


def bound(regressor, *followed, seed=0):
    function = BoostedRegressors(regressor, N_OUTPUTS, seed)
    function.bind(features(), list(followed))
    return function


def test_propose_fits_the_newton_step_with_curvature_as_weight(recorder):
    gradient, curvature = derivatives()
    bound(recorder).propose(gradient, curvature, 0)
    assert len(recorder.calls) == N_OUTPUTS
    for k, (target, weight, _) in enumerate(recorder.calls):
        np.testing.assert_allclose(target, -gradient[:, k] / curvature[:, k], **SAME32)
        np.testing.assert_array_equal(weight, curvature[:, k])
    recorder.calls.clear()
    curvature[0] = 1e-40  # -g/h beyond float32 is no infinity
    bound(recorder).propose(gradient, curvature, 0)
    assert all(np.isfinite(target).all() for target, _, _ in recorder.calls)
    assert np.abs(recorder.calls[0][0][0]) > 1e38


def test_leaves_of_a_tree_take_the_newton_step():
    """The weighted mean of -g/h in a leaf is -sum g / sum h."""
    gradient, curvature = derivatives()
    tree = DecisionTreeRegressor(max_leaf_nodes=4, random_state=0)
    delta = bound(tree).propose(gradient, curvature, 0).delta
    assert delta.shape == (N_ROWS, N_OUTPUTS)
    assert delta.dtype == np.float32
    for k in range(N_OUTPUTS):
        values = np.unique(delta[:, k])
        assert len(values) == 4
        for value in values:
            leaf = delta[:, k] == value
            step = -gradient[leaf, k].sum() / curvature[leaf, k].sum()
            np.testing.assert_allclose(value, step, rtol=1e-4)
    # The companion: curvature that is the same everywhere gives other leaves.
    plain = bound(tree).propose(gradient / curvature, np.ones_like(curvature), 0).delta
    assert not np.allclose(delta, plain, rtol=1e-4)


def test_rows_without_curvature_are_ignored():
    """Rows that a round leaves out have neither gradient nor curvature: 0 / 0."""
    gradient, curvature = derivatives()
    out = np.arange(N_ROWS) % 3 == 0
    gradient[out] = curvature[out] = 0
    tree = DecisionTreeRegressor(max_leaf_nodes=4, random_state=0)
    delta = bound(tree).propose(gradient, curvature, 0).delta
    rest = BoostedRegressors(tree, N_OUTPUTS, 0)
    rest.bind(features()[~out], [features()])
    expected = rest.propose(gradient[~out], curvature[~out], 0).followed[0]
    np.testing.assert_allclose(delta, expected, rtol=1e-5, atol=1e-6)
    nothing, no_rows = np.zeros((N_ROWS, N_OUTPUTS), dtype=np.float32), features()[:0]
    for regressor in (tree, LinearRegression()):  # the second has no random_state
        function = bound(regressor, no_rows)
        np.testing.assert_array_equal(function.propose(nothing, nothing, 0).delta, 0)
        addition = function.propose(*derivatives(), 0)
        assert addition.followed[0].shape == (0, N_OUTPUTS)
        addition.accept(1.0)
        assert function.scores(no_rows, 0).shape == (0, N_OUTPUTS)


def test_seeds_differ_by_output_and_round_and_repeat(recorder):
    def seeds(seed):
        recorder.calls.clear()
        function = bound(recorder, seed=seed)
        for number in range(3):
            function.propose(*derivatives(), number)
        return [state for _, _, state in recorder.calls]

    assert len(set(seeds(0))) == 3 * N_OUTPUTS
    assert seeds(0) == seeds(0)
    assert not set(seeds(0)) & set(seeds(1))
    assert recorder.random_state is None


def test_rounds_add_up_when_accepted_and_can_be_dropped():
    other = features(seed=5)
    function = bound(DecisionTreeRegressor(max_depth=2), other)
    total, seen = np.zeros((N_ROWS, N_OUTPUTS), dtype=np.float32), []
    for number, step in enumerate((1.0, 0.3, 0.0, 0.7)):
        addition = function.propose(*derivatives(seed=number), number)
        np.testing.assert_array_equal(function.scores(other, N_ROWS), total)
        addition.accept(step)
        total += np.float32(step) * addition.followed[0]
        seen.append(total.copy())
    for n_rounds, expected in enumerate(seen, start=1):
        np.testing.assert_array_equal(function.scores(other, N_ROWS, n_rounds), expected)
    np.testing.assert_array_equal(function.scores(other, N_ROWS), seen[-1])
    np.testing.assert_array_equal(function.scores(other, N_ROWS, 0), 0)
    assert not np.array_equal(seen[0], seen[1])
    function.keep(2)
    np.testing.assert_array_equal(function.scores(other, N_ROWS), seen[1])
