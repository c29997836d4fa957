"""Gradients of parametric objectives against finite differences: potential x order x structure."""

import numpy as np
import pytest
from scipy import sparse

from crfx import HiddenUnitCRF, LinearCRF
from crfx.inputs.passed import Passed
from crfx.inputs.training_set import InputSettings, Start, read_training_set
from crfx.model.flat_parameters import get_weights
from crfx.testing import central_differences

STEP = 2e-2
"""Scores are float32: a small step would measure their rounding."""
CLOSE = {"rtol": 2e-3, "atol": 2e-3}
N_LABELS = 3


def task(shape, seed=0, unknown=False, n_instances=8):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 6, n_instances)
    X = [random.normal(size=(n, 3)).astype(np.float32) for n in lengths]
    y = [list(random.integers(N_LABELS, size=n)) for n in lengths]
    if unknown:
        y = [[None if random.random() < 0.3 else label for label in own] for own in y]
    structure = {}
    if shape == "forest":
        structure["parents"] = [
            np.array([-1, *(random.integers(t) for t in range(1, n))], dtype=np.int64)
            for n in lengths
        ]
    if shape == "typed":
        structure["edge_types"] = [random.integers(2, size=n) for n in lengths]
    return X, y, structure


def objective(crf, X, y, *, sample_weight=None, parents=None, edge_types=None):
    given = read_training_set(
        Passed(X, y, None, parents, edge_types, sample_weight), InputSettings(crf.order), Start()
    )
    model = crf._new_model(given.truth) if isinstance(crf, LinearCRF) else crf._new_model(given, 0)
    return crf._task(given.truth).objective(model), len(get_weights(model))


def check(found, size, seed=1):
    """Return which weights move: those of pairs that do not occur stay 0."""
    at = np.random.default_rng(seed).normal(size=size) * 0.5
    penalty, found.l2 = found.l2, 0.0
    moves = found(at)[1] != 0
    found.l2, at = penalty, at * moves
    expected = central_differences(lambda x: found(x)[0], at, step=STEP)
    np.testing.assert_allclose(found(at)[1], np.where(moves, expected, 0), **CLOSE)
    return moves


@pytest.mark.parametrize("sparse_input", [False, True])
@pytest.mark.parametrize("edges", ["table", "linear", None])
@pytest.mark.parametrize("shape", ["chain", "forest", "typed"])
def test_linear_potentials(shape, edges, sparse_input):
    X, y, structure = task(shape)
    if sparse_input:
        X = [sparse.csr_matrix(np.where(np.abs(x) < 0.7, 0, x)) for x in X]
    found, size = objective(LinearCRF(edges=edges, l2=0.3), X, y, **structure)
    moves = check(found, size)
    if not sparse_input:
        assert moves.all()


@pytest.mark.parametrize("edges", ["table", "linear"])
@pytest.mark.parametrize("order", [2, 3])
def test_higher_orders(order, edges):
    X, y, _ = task("chain")
    check(*objective(LinearCRF(order=order, edges=edges, l2=0.1), X, y))


def test_unknown_labels_and_weights():
    X, y, _ = task("chain", unknown=True)
    weights = np.random.default_rng(3).random(len(X)) + 0.5
    check(*objective(LinearCRF(), X, y, sample_weight=weights))


def hidden(**arguments):
    return HiddenUnitCRF(2, "lbfgs", l2=0.3, skip=True, random_state=0, **arguments)


@pytest.mark.parametrize("sparse_input", [False, True])
@pytest.mark.parametrize("edges", ["table", None])
@pytest.mark.parametrize("shape", ["chain", "forest", "typed"])
def test_hidden_units(shape, edges, sparse_input):
    X, y, structure = task(shape)
    if sparse_input:
        X = [sparse.csr_matrix(np.where(np.abs(x) < 0.7, 0, x)) for x in X]
    assert check(*objective(hidden(edges=edges), X, y, **structure)).all()


@pytest.mark.parametrize("activation", ["softplus", "tanh", "sigmoid"])
def test_hidden_units_of_every_kind_that_bends(activation):
    """Of relu the core is compared with plain loops: differences would step over its kinks."""
    X, y, _ = task("chain")
    assert check(*objective(hidden(activation=activation), X, y)).all()


@pytest.mark.parametrize("order", [2, 3])
def test_hidden_units_of_higher_orders(order):
    X, y, _ = task("chain")
    check(*objective(hidden(order=order), X, y))


def test_hidden_units_with_unknown_labels_and_weights():
    X, y, _ = task("chain", unknown=True)
    weights = np.random.default_rng(3).random(len(X)) + 0.5
    check(*objective(hidden(), X, y, sample_weight=weights))


def test_a_wrong_gradient_is_seen():
    """The companion: of hidden units, with the parts of one parameter in another's place."""
    X, y, _ = task("chain")
    found, size = objective(hidden(), X, y)
    at = np.random.default_rng(1).normal(size=size) * 0.5
    expected = central_differences(lambda x: found(x)[0], at, step=STEP)
    for shift in (1, 6):
        assert not np.allclose(np.roll(found(at)[1], shift), expected, **CLOSE)
