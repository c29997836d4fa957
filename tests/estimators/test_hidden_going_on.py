"""Warm starts of HiddenUnitCRF: parts are one longer run, bit for bit; other models stay below."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, TreeCRF, load
from crfx.model.flat_parameters import get_weights
from crfx.testing import make_task
from crfx.trainers import epochs
from tests.pairwise import pairwise

X, Y = make_task()
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.8, 0, x)) for x in X]
DATA = {"dense": X, "sparse": SPARSE}
TRAINERS = ["sgd", "lbfgs", "perceptron", "large_margin"]
WAYS = ["memory", "file", "pickle"]


def crf(trainer, n, **arguments):
    """Return an estimator with n epochs or iterations, averaged from an epoch on."""
    usual = {"n_hidden": 5, "burn_in": 2, "l2": 0.01, "skip": True, "step": 0.1}
    return HiddenUnitCRF(
        trainer=trainer, sweeps=n, max_iter=n, random_state=0, n_jobs=1, **(usual | arguments)
    )


def taken(way, model, tmp_path):
    """Return the model as it comes back."""
    if way == "memory":
        return model
    if way == "pickle":
        return pickle.loads(pickle.dumps(model))
    model.save(tmp_path / "m.crfx")
    return str(tmp_path / "m.crfx")


def assert_same_run(model, expected):
    np.testing.assert_array_equal(get_weights(model.model_), get_weights(expected.model_))
    assert model.history_["objective"] == expected.history_["objective"]
    assert len(model.history_["seconds"]) == model.n_iter_ == expected.n_iter_
    assert model.best_iteration_ == expected.best_iteration_


@pytest.mark.parametrize(("trainer", "way", "data"), pairwise(TRAINERS, WAYS, list(DATA)))
def test_warm_start_equals_one_run(trainer, way, data, tmp_path):
    """This includes the step if it was found by trials."""
    X = DATA[data]
    whole = crf(trainer, 7, step=None).fit(X, Y)
    part = crf(trainer, 3, step=None).fit(X, Y)
    assert not np.array_equal(get_weights(part.model_), get_weights(whole.model_))
    second = crf(trainer, 1, step=None).fit(X, Y, init_model=taken(way, part, tmp_path))
    third = crf(trainer, 3, step=None).fit(X, Y, init_model=taken(way, second, tmp_path))
    assert_same_run(third, whole)


@pytest.mark.parametrize("trainer", ["sgd", "perceptron", "large_margin"])
def test_warm_start_equals_one_run_in_python(monkeypatch, trainer, tmp_path):
    monkeypatch.setattr(epochs, "can_take_steps", lambda *_: False)
    whole = crf(trainer, 4).fit(X, Y)
    part = crf(trainer, 2).fit(X, Y)
    for way in WAYS:
        model = crf(trainer, 2).fit(X, Y, init_model=taken(way, part, tmp_path))
        assert_same_run(model, whole)


@pytest.mark.parametrize("data", DATA)
def test_warm_start_equals_one_run_with_shrinkage(data):
    """The state keeps the shrinkage so far, since starting its product anew changes bits."""
    arguments, X = {"l2": 5.0, "step": 0.2}, DATA[data]
    whole = crf("sgd", 6, **arguments).fit(X, Y)
    for n_first in (1, 2, 3):
        part = crf("sgd", n_first, **arguments).fit(X, Y)
        assert part.training_.standing.numbers["product"] < 1
        assert_same_run(crf("sgd", 6 - n_first, **arguments).fit(X, Y, init_model=part), whole)


@pytest.mark.parametrize(("n_left", "way", "tol"), pairwise([1, 4, 12], WAYS, [1e-3, 1e-10]))
def test_warm_start_converges_as_one_run(tol, way, n_left, tmp_path):
    """The last values of L-BFGS tell whether it was near the minimum, and in which precision."""
    arguments = {"l2": 0.5, "tol": tol}
    whole = crf("lbfgs", 500, **arguments).fit(X, Y)
    assert n_left < whole.n_iter_ < 500
    assert ("fine" in whole.training_.standing.numbers) == (tol < 1e-8)
    part = crf("lbfgs", whole.n_iter_ - n_left, **arguments).fit(X, Y)
    model = crf("lbfgs", 500, **arguments).fit(X, Y, init_model=taken(way, part, tmp_path))
    assert_same_run(model, whole)


def test_warm_start_on_other_instances_converges():
    arguments = {"l2": 0.5, "tol": 1e-7}
    part = crf("lbfgs", 500, **arguments).fit(X[:10], Y[:10])
    model = crf("lbfgs", 500, **arguments).fit(X, Y, init_model=part)
    assert model.n_iter_ > part.n_iter_ + 12
    more = crf("lbfgs", 500, **arguments).fit(X, Y, init_model=model)
    assert more.history_["objective"][-1] > 0.999 * model.history_["objective"][-1]


@pytest.mark.parametrize("take", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_warm_start_from_copy_taken_in_training(take):
    copies = []

    def keep(progress):
        if progress.n_rounds == 3:
            copies.append(take(whole))

    whole = crf("sgd", 6)
    whole.fit(X, Y, callbacks=[keep])
    assert_same_run(crf("sgd", 3).fit(X, Y, init_model=copies[0]), whole)


@pytest.mark.parametrize("way", WAYS)
def test_warm_start_keeps_votes_of_one_run(way, tmp_path):
    whole = crf("perceptron", 6, herding=True).fit(X, Y)
    part = crf("perceptron", 4, herding=True).fit(X, Y)
    model = crf("perceptron", 2, herding=True).fit(X, Y, init_model=taken(way, part, tmp_path))
    assert_same_run(model, whole)
    assert len(part.votes_) == 2
    np.testing.assert_array_equal(model.votes_, whole.votes_)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_warm_start_leaves_the_first_model_alone(trainer):
    part = crf(trainer, 3, herding=trainer == "perceptron").fit(X, Y)
    weights, history = get_weights(part.model_), list(part.history_["objective"])
    arrays = {name: array.copy() for name, array in part.training_.standing.arrays.items()}
    crf(trainer, 3, herding=trainer == "perceptron").fit(X, Y, init_model=part)
    np.testing.assert_array_equal(get_weights(part.model_), weights)
    assert part.history_["objective"] == history
    for name, array in arrays.items():
        np.testing.assert_array_equal(part.training_.standing.arrays[name], array)
    if part.votes_ is not None:
        assert len(part.votes_) == 1


@pytest.mark.parametrize("trainer", ["lbfgs", "sgd"])
def test_warm_start_from_itself(trainer):
    crf_twice = crf(trainer, 2).fit(X, Y)
    assert_same_run(crf_twice.fit(X, Y, init_model=crf_twice), crf(trainer, 4).fit(X, Y))


@pytest.mark.parametrize("place", range(len(TRAINERS)))
def test_warm_start_with_another_trainer_keeps_parameters(place):
    first, then = TRAINERS[place - 1], TRAINERS[place]
    start = crf(first, 3).fit(X, Y)
    model = crf(then, 0).fit(X, Y, init_model=start)
    np.testing.assert_array_equal(get_weights(model.model_), get_weights(start.model_))
    model = crf(then, 2).fit(X, Y, init_model=start)
    assert model.n_iter_ == len(model.history_["objective"]) == 2
    assert model.training_.standing.trainer == then


@pytest.mark.parametrize(
    "other", [{"n_hidden": 4}, {"activation": "tanh"}, {"skip": False}, {"start_end": False}]
)
def test_warm_start_uses_model_of_another_shape_as_base(other):
    """The shape of the model counts, not the arguments of its estimator."""
    start = crf("sgd", 2).fit(X, Y)
    model = crf("sgd", 2, **other).fit(X, Y, init_model=start.set_params(**other))
    assert model.model_.base is start.model_
    assert model.n_iter_ == 2
    shape = model.model_.node.shape
    wanted = model.n_hidden, model.activation, model.skip
    assert (shape.n_hidden, shape.activation, shape.skip) == wanted


def test_warm_start_rejects_base_of_another_order():
    start = crf("sgd", 2).fit(X, Y).set_params(order=2)
    with pytest.raises(ValueError, match="order"):
        crf("sgd", 2, order=2).fit(X, Y, init_model=start)


@pytest.mark.parametrize(
    ("trainer", "base"),
    [
        ("sgd", GBCRF(2, random_state=0, n_jobs=1)),
        ("lbfgs", TreeCRF(2, random_state=0, n_jobs=1)),
        ("perceptron", LinearCRF(max_iter=5)),
        ("large_margin", GBCRF(2, random_state=0, n_jobs=1)),
    ],
)
def test_warm_start_uses_model_of_another_kind_as_base(base, trainer, tmp_path):
    base.fit(X, Y)
    alone = crf(trainer, 0, decode="viterbi").fit(X, Y, init_model=base)
    set_to_nothing(alone)
    one, other = (np.concatenate(each.predict_marginals(X)) for each in (alone, base))
    np.testing.assert_allclose(one, other, atol=1e-5)
    model = crf(trainer, 3).fit(X, Y, init_model=base)
    assert model.model_.base is base.model_
    if trainer in ("sgd", "lbfgs"):
        assert model.history_["objective"][-1] < crf(trainer, 3).fit(X, Y).history_["objective"][-1]
    model.save(tmp_path / "m.crfx")
    one, other = (
        np.concatenate(each.predict_marginals(X)) for each in (model, load(tmp_path / "m.crfx"))
    )
    np.testing.assert_array_equal(one, other)


def set_to_nothing(crf):
    """Units that are off for every label, whatever they see: only the base scores."""
    parts = crf.model_.node.shape.split(crf.model_.node.weights)
    crf.model_.node.weights[:] = 0
    parts["bias"][:] = -50


@pytest.mark.parametrize(
    ("make", "rounds"),
    [(LinearCRF, "max_iter"), (GBCRF, "n_estimators"), (TreeCRF, "n_estimators")],
)
def test_hidden_unit_model_is_base_of_other_kinds(make, rounds):
    base, joint = crf("sgd", 3).fit(X, Y), crf("perceptron", 4).fit(X, Y)
    above = make(**{rounds: 2}).fit(X, Y, init_model=base)
    assert above.model_.base is base.model_
    assert above.log_likelihood(X, Y).sum() > base.log_likelihood(X, Y).sum()
    same = make(**{rounds: 0}).fit(X, Y, init_model=joint)
    np.testing.assert_array_equal(*(np.concatenate(model.predict(X)) for model in (same, joint)))
    votes = crf("perceptron", 4, herding=True).fit(X, Y)
    with pytest.raises(ValueError, match="votes"):
        make(**{rounds: 0}).fit(X, Y, init_model=votes)
