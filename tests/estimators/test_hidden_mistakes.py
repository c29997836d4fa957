"""Mistakes that a HiddenUnitCRF once made in silence."""

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, TreeCRF
from crfx.model.flat_parameters import get_weights
from crfx.trainers import epochs

random = np.random.default_rng(0)
LENGTHS = random.integers(2, 8, 40)
Y = [random.integers(3, size=n) for n in LENGTHS]
X = [(np.eye(6)[y] + random.normal(size=(len(y), 6))).astype(np.float32) for y in Y]


def crf(**arguments):
    given = {"n_hidden": 5, "sweeps": 4, "step": 0.1, "random_state": 0, "n_jobs": 1, **arguments}
    return HiddenUnitCRF(**given)


def test_votes_leave_the_model_alone():
    """Also while others predict with it."""
    fitted = crf(trainer="perceptron", herding=True).fit(X, Y)
    before, expected = get_weights(fitted.model_), fitted.predict_marginals(X)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: fitted.predict_marginals(X), range(20)))
    for each in found:
        for one, other in zip(each, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(get_weights(fitted.model_), before)


@pytest.mark.parametrize("changed", [{"n_hidden": 20}, {"activation": "tanh"}, {"skip": True}])
def test_going_on_looks_at_the_model_and_not_at_arguments(changed):
    fitted = crf().fit(X, Y).set_params(**changed)
    found = crf(**changed).fit(X, Y, init_model=fitted)
    shape = found.model_.node.shape
    asked = found.n_hidden, found.activation, found.skip
    assert (shape.n_hidden, shape.activation, shape.skip) == asked
    assert found.model_.base is not None
    with pytest.raises(ValueError, match="order"):
        crf(order=2).fit(X, Y, init_model=fitted.set_params(order=2))


def test_the_same_of_linear_models():
    fitted = LinearCRF().fit(X, Y).set_params(edges="linear")
    found = LinearCRF(edges="linear").fit(X, Y, init_model=fitted)
    assert found.model_.edge_family == "linear"


@pytest.mark.parametrize("take", [copy.deepcopy, lambda own: pickle.loads(pickle.dumps(own))])
def test_a_copy_taken_in_training_goes_on_from_there(take):
    kept = []

    def keep(progress):
        if progress.n_rounds == 3:
            kept.append(take(fitted))

    fitted = crf(sweeps=6, burn_in=1)
    fitted.fit(X, Y, callbacks=[keep])
    found = crf(sweeps=3, burn_in=1).fit(X, Y, init_model=kept[0])
    np.testing.assert_array_equal(get_weights(found.model_), get_weights(fitted.model_))
    assert found.n_iter_ == 6


@pytest.mark.parametrize("above", [LinearCRF(max_iter=0), GBCRF(0), TreeCRF(0)])
def test_what_stands_underneath_is_what_predicts(above):
    below = crf(trainer="perceptron").fit(X, Y)
    found = above.fit(X, Y, init_model=below)
    for one, other in zip(found.predict(X), below.predict(X), strict=True):
        np.testing.assert_array_equal(one, other)
    votes = crf(trainer="perceptron", herding=True).fit(X, Y)
    with pytest.raises(ValueError, match="votes"):
        above.fit(X, Y, init_model=votes)


def test_the_penalty_is_summed_in_float64():
    values = np.full(20_000_000, 0.01, np.float32)
    assert epochs.penalty(1.0, values) == pytest.approx(2000, rel=1e-6)
    assert epochs.penalty(0.0, np.array([np.inf], np.float32)) == 0


def test_features_that_are_too_large_are_told():
    huge = [np.float32(1e30) * x for x in X]
    with pytest.raises(ValueError, match="no step"):
        crf(step=None).fit(huge, Y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        crf(trainer="lbfgs").fit(huge, Y)
    assert any(issubclass(each.category, ConvergenceWarning) for each in caught)


def test_early_stopping_that_goes_on_knows_what_it_has():
    watched = {"eval_set": (X[:10], Y[:10]), "callbacks": None}
    arguments = {"early_stopping_rounds": 2, "step": 0.3, "sweeps": 10, "dropout": 0.0}
    first = crf(**arguments).fit(X[10:], Y[10:], **watched)
    second = crf(**arguments).fit(X[10:], Y[10:], init_model=first, **watched)

    def loss(fitted):
        return -fitted.log_likelihood(X[:10], Y[:10]).sum()

    assert loss(second) <= loss(first) * (1 + 1e-6)


def test_stored_zeros_are_no_features():
    thin = [sparse.csr_matrix(np.where(np.abs(x) < 1, 0, x)) for x in X]
    full = [sparse.csr_matrix(x) for x in X]
    for own, other in zip(full, thin, strict=True):
        own.data[:] = other.toarray().reshape(-1)
    arguments = {"trainer": "perceptron", "block_steps": "size"}
    found = [get_weights(crf(**arguments).fit(each, Y).model_) for each in (thin, full)]
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("path", ["core", "python"])
def test_dropout_makes_up_for_what_it_leaves_out(monkeypatch, path):
    """Without hidden units scores are linear: the mean step is the same."""
    if path == "python":
        monkeypatch.setattr(epochs, "can_take_steps", lambda *_: False)
    ones = [np.ones((50, 40), np.float32) for _ in range(40)]
    labels = [np.arange(50) % 2 for _ in ones]

    def step(dropout):
        linear = crf(n_hidden=0, skip=True, edges=None, sweeps=1, dropout=dropout, step=1e-6)
        labelled = linear.fit(ones, [np.zeros_like(y) if k else y for k, y in enumerate(labels)])
        return labelled.model_.node.shape.split(labelled.model_.node.weights)["skip"].mean(axis=0)

    np.testing.assert_allclose(step(0.5), step(0.0), rtol=0.05)
