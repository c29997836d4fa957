"""Linear edge scores: conjugate gradients against the exact solution, sparse against dense."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from crfx.potentials import newton
from crfx.potentials.newton import newton_step
from crfx.potentials.numbers import with_constant

SOLVED = {"rtol": 1e-4, "atol": 1e-5}
SAME = {"rtol": 1e-5, "atol": 1e-6}
SLACK = 1e-6
"""By how much rounding may lift the quadratic model, relative to its fall."""

N_ROWS, N_FEATURES, N_OUTPUTS = 80, 7, 4


def problem(seed=0):
    """Features of unequal size, gradients, curvatures with zeros, weights."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(N_ROWS, N_FEATURES)) * np.geomspace(0.1, 10, N_FEATURES)
    X[random.random(X.shape) < 0.5] = 0
    gradient = random.normal(size=(N_ROWS, N_OUTPUTS))
    curvature = random.uniform(0, 1, size=gradient.shape)
    curvature[random.random(curvature.shape) < 0.1] = 0
    weights = random.normal(size=(N_FEATURES, N_OUTPUTS))
    return tuple(array.astype(np.float32) for array in (X, gradient, curvature, weights))


def ridge(X, gradient, curvature, weights, l2):
    """The minimum, column by column: (X' H X + l2) d = -(X' g + l2 w)."""
    X, gradient, curvature, weights = (
        array.astype(np.float64) for array in (X, gradient, curvature, weights)
    )
    columns = []
    for m in range(gradient.shape[1]):
        left = X.T @ (curvature[:, m, None] * X) + l2 * np.eye(X.shape[1])
        columns.append(np.linalg.solve(left, -(X.T @ gradient[:, m] + l2 * weights[:, m])))
    return np.stack(columns, axis=1)


def quadratic(X, gradient, curvature, weights, l2, step):
    """The model that is minimised, for each column."""
    f = X.astype(np.float64) @ step
    loss = (gradient * f + curvature * f**2 / 2).sum(axis=0)
    return loss + l2 / 2 * ((weights + step) ** 2).sum(axis=0)


def test_newton_step_is_exact_after_n_features_steps(monkeypatch):
    """Directions that were conjugate need no more; those of steepest descent would."""
    monkeypatch.setattr(newton, "CG_STEPS", N_FEATURES)
    monkeypatch.setattr(newton, "CG_TOLERANCE", 0.0)
    for l2 in (0.1, 1.0, 30.0):
        step = newton_step(*problem(), l2)
        assert step.dtype == np.float32
        np.testing.assert_allclose(step, ridge(*problem(), l2), **SOLVED)
    monkeypatch.setattr(newton, "CG_STEPS", 1)  # the companion: one step does not
    assert not np.allclose(newton_step(*problem(), 0.1), ridge(*problem(), 0.1), **SOLVED)


@pytest.mark.parametrize(("seed", "l2"), [(0, 0.0), (1, 0.1), (2, 1.0), (3, 0.0), (4, 0.1)])
def test_every_further_step_lowers_the_quadratic_model(monkeypatch, seed, l2):
    """The tolerance is 0, so that no step is left out."""
    monkeypatch.setattr(newton, "CG_TOLERANCE", 0.0)
    arguments = problem(seed)
    values = [quadratic(*arguments, l2, np.zeros_like(arguments[3]))]
    for steps in range(1, 13):
        monkeypatch.setattr(newton, "CG_STEPS", steps)
        values.append(quadratic(*arguments, l2, newton_step(*arguments, l2)))
    falls = -np.diff(values, axis=0)
    fall = values[0] - values[-1]
    assert (falls >= -SLACK * fall).all()
    assert (falls[0] > 0.1 * fall).all()


def test_the_default_steps_come_close():
    """Eight steps reach most of what can be gained; one does not."""
    arguments = problem()
    start = quadratic(*arguments, 1.0, np.zeros_like(arguments[3]))
    step = newton_step(*arguments, 1.0)
    gained = start - quadratic(*arguments, 1.0, step)
    possible = start - quadratic(*arguments, 1.0, ridge(*arguments, 1.0))
    assert (gained > 0.999 * possible).all()
    X, gradient, curvature, weights = arguments
    from_csr = newton_step(sparse.csr_matrix(X), gradient, curvature, weights, 1.0)
    np.testing.assert_allclose(from_csr, step, **SAME)
    at_minimum = newton_step(X, gradient * 0, curvature, weights * 0, 1.0)
    np.testing.assert_array_equal(at_minimum, 0)


@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_newton_step_without_slopes_or_rows(monkeypatch, l2):
    """A feature that is always 0, an output without gradient or curvature, and no rows at all."""
    monkeypatch.setattr(newton, "CG_STEPS", 50)
    monkeypatch.setattr(newton, "CG_TOLERANCE", 1e-7)
    X, gradient, curvature, weights = problem()
    X[:, 2] = 0
    gradient[:, 1] = curvature[:, 1] = 0
    step = newton_step(X, gradient, curvature, weights, l2)
    assert np.isfinite(step).all()
    none = newton_step(X[:0], gradient[:0], curvature[:0], weights, l2)
    expected = np.zeros_like(weights) if l2 == 0 else -weights
    np.testing.assert_allclose(none, expected, **SAME)
    np.testing.assert_allclose(step[:, 1], expected[:, 1], **SAME)
    np.testing.assert_allclose(step[2], expected[2], **SAME)


def test_with_constant_adds_a_column_and_replaces_missing_values():
    """A stored NaN is missing too, and stays NaN in the matrix that was given."""
    X = np.array([[1, np.nan, 0], [0, 2, 3]])
    csr = sparse.csr_array(X)
    for features in (X, csr, csr.tocsc(), csr.astype(np.float32)):
        extended = with_constant(features)
        assert extended.dtype == np.float32
        if sparse.issparse(features):
            assert extended.format == "csr"
            extended, features = extended.toarray(), features.toarray()
        np.testing.assert_array_equal(extended, [[1, 0, 0, 1], [0, 2, 3, 1]])
        assert np.isnan(features[0, 1])
    for nothing in (np.zeros((0, 3)), sparse.csr_matrix((0, 3))):
        assert with_constant(nothing).shape == (0, 4)


def test_with_constant_takes_frames_without_categories():
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": [True, False], "c": [3, 4]})
    np.testing.assert_array_equal(with_constant(frame), [[1, 1, 3, 1], [0, 0, 4, 1]])
    frame["c"] = pd.array([3, None], dtype="Int64")
    np.testing.assert_array_equal(with_constant(frame), [[1, 1, 3, 1], [0, 0, 0, 1]])
    for categories in (["x", "y"], [10, 20]):
        frame["d"] = pd.Categorical(categories)
        with pytest.raises(ValueError, match="encode categorical columns"):
            with_constant(frame)
