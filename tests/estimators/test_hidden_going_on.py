"""A HiddenUnitCRF that is trained on equals one longer run, bit for bit."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from crfx import GBCRF, Checkpoint, HiddenUnitCRF, LinearCRF, TreeCRF, load
from crfx.model.flat_parameters import get_weights
from crfx.testing import make_task
from crfx.trainers import epochs

X, Y = make_task()
X_DEV, Y_DEV = make_task(1, 12)
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.8, 0, x)) for x in X]
TRAINERS = ["sgd", "lbfgs", "perceptron", "large_margin"]
WAYS = ["memory", "file", "pickle"]


def crf(trainer, n, **arguments):
    """With so many sweeps or iterations; the average begins at a sweep that is told."""
    usual = {"n_hidden": 5, "burn_in": 2, "l2": 0.01, "skip": True, "step": 0.1}
    return HiddenUnitCRF(
        trainer=trainer, sweeps=n, max_iter=n, random_state=0, n_jobs=1, **(usual | arguments)
    )


def taken(way, found, tmp_path):
    """The model as it comes back."""
    if way == "memory":
        return found
    if way == "pickle":
        return pickle.loads(pickle.dumps(found))
    found.save(tmp_path / "m.crfx")
    return str(tmp_path / "m.crfx")


def assert_same_run(found, expected):
    np.testing.assert_array_equal(get_weights(found.model_), get_weights(expected.model_))
    assert found.history_["objective"] == expected.history_["objective"]
    assert len(found.history_["seconds"]) == found.n_iter_ == expected.n_iter_
    assert found.best_iteration_ == expected.best_iteration_


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("X", [X, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_parts_are_one_run(trainer, X, way, tmp_path):
    """Also the step, where it was found by trials."""
    whole = crf(trainer, 7, step=None).fit(X, Y)
    part = crf(trainer, 3, step=None).fit(X, Y)
    assert not np.array_equal(get_weights(part.model_), get_weights(whole.model_))
    second = crf(trainer, 1, step=None).fit(X, Y, init_model=taken(way, part, tmp_path))
    third = crf(trainer, 3, step=None).fit(X, Y, init_model=taken(way, second, tmp_path))
    assert_same_run(third, whole)


@pytest.mark.parametrize("trainer", ["sgd", "perceptron", "large_margin"])
def test_parts_are_one_run_where_python_takes_the_steps(monkeypatch, trainer, tmp_path):
    monkeypatch.setattr(epochs, "can_take_steps", lambda *_: False)
    whole = crf(trainer, 4).fit(X, Y)
    part = crf(trainer, 2).fit(X, Y)
    for way in WAYS:
        found = crf(trainer, 2).fit(X, Y, init_model=taken(way, part, tmp_path))
        assert_same_run(found, whole)


@pytest.mark.parametrize("X", [X, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_first", [1, 2, 3])
def test_parts_are_one_run_while_parameters_shrink(X, n_first):
    """How much they did is remembered: when it is counted anew, bits change."""
    arguments = {"l2": 5.0, "step": 0.2}
    whole = crf("sgd", 6, **arguments).fit(X, Y)
    part = crf("sgd", n_first, **arguments).fit(X, Y)
    assert part.training_.standing.numbers["product"] < 1
    assert_same_run(crf("sgd", 6 - n_first, **arguments).fit(X, Y, init_model=part), whole)


@pytest.mark.parametrize("n_left", [1, 4, 12])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tol", [1e-3, 1e-10])
def test_parts_converge_where_one_run_does(tol, way, n_left, tmp_path):
    """The last values of L-BFGS tell, whether it was near the minimum, and in which precision."""
    arguments = {"l2": 0.5, "tol": tol}
    whole = crf("lbfgs", 500, **arguments).fit(X, Y)
    assert n_left < whole.n_iter_ < 500
    assert ("fine" in whole.training_.standing.numbers) == (tol < 1e-8)
    part = crf("lbfgs", whole.n_iter_ - n_left, **arguments).fit(X, Y)
    found = crf("lbfgs", 500, **arguments).fit(X, Y, init_model=taken(way, part, tmp_path))
    assert_same_run(found, whole)


def test_other_instances_are_learned_from_until_it_converges():
    arguments = {"l2": 0.5, "tol": 1e-7}
    part = crf("lbfgs", 500, **arguments).fit(X[:10], Y[:10])
    found = crf("lbfgs", 500, **arguments).fit(X, Y, init_model=part)
    assert found.n_iter_ > part.n_iter_ + 12
    more = crf("lbfgs", 500, **arguments).fit(X, Y, init_model=found)
    assert more.history_["objective"][-1] > 0.999 * found.history_["objective"][-1]


@pytest.mark.parametrize("trainer", TRAINERS)
def test_from_a_checkpoint(trainer, tmp_path):
    path = tmp_path / "m.crfx"
    whole = crf(trainer, 6).fit(X, Y)
    again = crf(trainer, 5).fit(X, Y, callbacks=[Checkpoint(path, every=4)])
    assert again.n_iter_ == 5
    assert load(path).n_iter_ == 4
    assert_same_run(crf(trainer, 2).fit(X, Y, init_model=path), whole)


def test_from_where_the_user_interrupts():
    whole = crf("sgd", 5).fit(X, Y)
    part = crf("sgd", 5)

    def interrupt(progress):
        if progress.n_rounds == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        part.fit(X, Y, callbacks=[interrupt])
    assert_same_run(crf("sgd", 3).fit(X, Y, init_model=part), whole)


@pytest.mark.parametrize("way", WAYS)
def test_votes_go_on(way, tmp_path):
    whole = crf("perceptron", 6, herding=True).fit(X, Y)
    part = crf("perceptron", 4, herding=True).fit(X, Y)
    found = crf("perceptron", 2, herding=True).fit(X, Y, init_model=taken(way, part, tmp_path))
    assert_same_run(found, whole)
    assert len(part.votes_) == 2
    np.testing.assert_array_equal(found.votes_, whole.votes_)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_the_model_that_is_trained_on_stays_as_it_is(trainer):
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


@pytest.mark.parametrize("trainer", TRAINERS)
def test_it_can_go_on_from_itself(trainer):
    whole = crf(trainer, 4).fit(X, Y)
    found = crf(trainer, 2).fit(X, Y)
    assert_same_run(found.fit(X, Y, init_model=found), whole)


@pytest.mark.parametrize("first", TRAINERS)
@pytest.mark.parametrize("then", TRAINERS)
def test_another_trainer_begins_with_the_parameters(first, then):
    if first == then:
        return
    start = crf(first, 3).fit(X, Y)
    found = crf(then, 0).fit(X, Y, init_model=start)
    np.testing.assert_array_equal(get_weights(found.model_), get_weights(start.model_))
    found = crf(then, 2).fit(X, Y, init_model=start)
    assert found.n_iter_ == len(found.history_["objective"]) == 2
    assert found.training_.standing.trainer == then


@pytest.mark.parametrize(
    "other", [{"n_hidden": 4}, {"activation": "tanh"}, {"skip": False}, {"start_end": False}]
)
def test_another_shape_stays_underneath(other):
    start = crf("sgd", 2).fit(X, Y)
    found = crf("sgd", 2, **other).fit(X, Y, init_model=start)
    assert found.model_.base is start.model_
    assert found.n_iter_ == 2


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize(
    "kind",
    [
        LinearCRF(max_iter=5),
        GBCRF(2, random_state=0, n_jobs=1),
        TreeCRF(2, random_state=0, n_jobs=1),
    ],
)
def test_another_kind_stays_underneath(kind, trainer, tmp_path):
    base = kind.fit(X, Y)
    alone = crf(trainer, 0, decode="viterbi").fit(X, Y, init_model=base)
    set_to_nothing(alone)
    for one, other in zip(alone.predict_marginals(X), base.predict_marginals(X), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    found = crf(trainer, 3).fit(X, Y, init_model=base)
    assert found.model_.base is base.model_
    if trainer in ("sgd", "lbfgs"):
        assert found.history_["objective"][-1] < crf(trainer, 3).fit(X, Y).history_["objective"][-1]
    found.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    for one, other in zip(found.predict_marginals(X), again.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(one, other)


def set_to_nothing(crf):
    """Units that are off for every label, whatever they see: only the base scores."""
    parts = crf.model_.node.shape.split(crf.model_.node.weights)
    crf.model_.node.weights[:] = 0
    parts["bias"][:] = -50


def test_it_may_lie_underneath_others():
    base = crf("sgd", 3).fit(X, Y)
    for other in (LinearCRF(max_iter=5), GBCRF(2, random_state=0, n_jobs=1), TreeCRF(2, n_jobs=1)):
        found = other.fit(X, Y, init_model=base)
        assert found.model_.base is base.model_
        assert found.log_likelihood(X, Y).sum() > base.log_likelihood(X, Y).sum()
