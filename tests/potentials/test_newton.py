"""Linear edge scores: conjugate gradients against the exact solution, sparse against dense."""

import numpy as np
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
    own = (gradient * f + curvature * f**2 / 2).sum(axis=0)
    return own + l2 / 2 * ((weights + step) ** 2).sum(axis=0)


@pytest.mark.parametrize("l2", [0.1, 1.0, 30.0])
def test_as_many_steps_as_features_find_the_exact_solution(monkeypatch, l2):
    """Directions that were conjugate need no more; those of steepest descent would."""
    monkeypatch.setattr(newton, "CG_STEPS", N_FEATURES)
    monkeypatch.setattr(newton, "CG_TOLERANCE", 0.0)
    found = newton_step(*problem(), l2)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, ridge(*problem(), l2), **SOLVED)


def test_one_step_does_not(monkeypatch):
    """The companion: the comparison with the exact solution can fail."""
    monkeypatch.setattr(newton, "CG_STEPS", 1)
    assert not np.allclose(newton_step(*problem(), 0.1), ridge(*problem(), 0.1), **SOLVED)


@pytest.mark.parametrize("l2", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(5))
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
    gained = start - quadratic(*arguments, 1.0, newton_step(*arguments, 1.0))
    possible = start - quadratic(*arguments, 1.0, ridge(*arguments, 1.0))
    assert (gained > 0.999 * possible).all()


@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_csr_equals_dense(l2):
    X, *rest = problem()
    dense = newton_step(X, *rest, l2)
    np.testing.assert_allclose(newton_step(sparse.csr_matrix(X), *rest, l2), dense, **SAME)


@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_nothing_to_fit(monkeypatch, l2):
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


def test_a_step_at_the_minimum_is_zero():
    X, gradient, curvature, weights = problem()
    step = newton_step(X, gradient * 0, curvature, weights * 0, 1.0)
    np.testing.assert_array_equal(step, 0)


def test_features_get_a_constant_and_missing_counts_as_0():
    X = np.array([[1, np.nan, 0], [0, 2, 3]])
    found = with_constant(X)
    np.testing.assert_array_equal(found, [[1, 0, 0, 1], [0, 2, 3, 1]])
    assert found.dtype == np.float32
    assert np.isnan(X[0, 1])


def test_sparse_features():
    """A stored NaN is missing too, and stays NaN in the matrix that was given."""
    X = sparse.csr_array(np.array([[1, np.nan, 0], [0, 2, 3]]))
    for given in (X, X.tocsc(), X.astype(np.float32)):
        found = with_constant(given)
        assert found.format == "csr"
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found.toarray(), [[1, 0, 0, 1], [0, 2, 3, 1]])
        assert np.isnan(given.toarray()[0, 1])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_no_rows(kind):
    assert with_constant(kind(np.zeros((0, 3)))).shape == (0, 4)


def test_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, np.nan], "b": [True, False], "c": [3, 4]})
    np.testing.assert_array_equal(with_constant(frame), [[1, 1, 3, 1], [0, 0, 4, 1]])
    frame["c"] = pandas.array([3, None], dtype="Int64")
    np.testing.assert_array_equal(with_constant(frame), [[1, 1, 3, 1], [0, 0, 0, 1]])
    for categories in (["x", "y"], [10, 20]):
        frame["d"] = pandas.Categorical(categories)
        with pytest.raises(ValueError, match="encode categorical columns"):
            with_constant(frame)
