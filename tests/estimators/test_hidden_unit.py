"""HiddenUnitCRF: what it learns, its trainers, votes, pre-training, bad arguments."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, load
from crfx.estimators.model_parameters import get_weights
from crfx.testing import make_task

X, Y = make_task()
X_DEV, Y_DEV = make_task(1, 12)
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.8, 0, x)) for x in X]
PARENTS = [np.arange(len(x)) // 2 - (np.arange(len(x)) == 0) for x in X]
TRAINERS = ["sgd", "lbfgs", "perceptron", "large_margin"]
SWEEPING = ["sgd", "perceptron", "large_margin"]


def crf(trainer="sgd", **arguments):
    """Small, and the same every time."""
    usual = {"n_hidden": 6, "sweeps": 3, "step": 0.1, "max_iter": 8}
    return HiddenUnitCRF(trainer=trainer, random_state=0, n_jobs=1, **(usual | arguments))


def unknown(labels):
    return [None] * len(labels)


# Steps are found by trials.


@pytest.mark.parametrize("trainer", SWEEPING)
@pytest.mark.parametrize("case", ["unknown", "empty", "weightless"])
@pytest.mark.parametrize("telling", [0, 1])
def test_a_step_is_judged_by_instances_that_tell(trainer, case, telling):
    """By others all steps are alike, and the smallest, which learns nothing, would be taken."""
    tells = [k == telling for k in range(2)]
    x, y, fit = X[:2], Y[:2], {}
    if case == "unknown":
        y = [own if known else unknown(own) for own, known in zip(y, tells, strict=True)]
    elif case == "empty":
        x = [own if known else own[:0] for own, known in zip(x, tells, strict=True)]
        y = [own if known else own[:0] for own, known in zip(y, tells, strict=True)]
    else:
        fit = {"sample_weight": np.array(tells, dtype=float)}
    found = crf(trainer, step=None, sweeps=1, dropout=0.0).fit(x, y, **fit)
    assert found._state.numbers["step"] > 1e-6


def test_where_nothing_tells_it_ends_all_the_same():
    found = crf(step=None, sweeps=1).fit(X[:3], Y[:3], sample_weight=np.zeros(3))
    assert np.isfinite(get_weights(found.model_)).all()


# Arguments.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_hidden": -1}, "n_hidden is -1: it must be a whole number of 0 or more"),
        ({"n_hidden": 2.0}, r"n_hidden is 2\.0: it must be a whole number"),
        ({"n_hidden": 0}, "n_hidden is 0 and skip is False"),
        ({"trainer": "adam"}, "trainer is 'adam': choose one of"),
        ({"activation": "gelu"}, "activation is 'gelu': choose one of"),
        ({"pretrain": "yes"}, "pretrain is 'yes': choose one of"),
        ({"pretrain_sweeps": 0}, "pretrain_sweeps is 0"),
        ({"edges": "linear"}, "edges is 'linear': choose one of 'table', None"),
        ({"skip": "yes"}, "skip is 'yes': it must be True or False"),
        ({"skip": 1}, "skip is 1: it must be True or False"),
        ({"herding": "yes"}, "herding is 'yes': it must be True or False"),
        ({"herding": True}, "herding is for trainers"),
        ({"herding": True, "trainer": "lbfgs"}, "herding is for trainers"),
        (
            {"herding": True, "trainer": "perceptron", "early_stopping_rounds": 2},
            "herding keeps every sweep",
        ),
        ({"decode": "joint", "activation": "tanh"}, "there is nothing to maximise over"),
        ({"decode": "joint", "activation": "sigmoid"}, "there is nothing to maximise over"),
        ({"decode": "best"}, "decode is 'best': choose one of"),
        ({"dropout": 1}, "dropout is 1: it must be 0 or more and below 1"),
        ({"dropout": -0.1}, "dropout is -0.1"),
        ({"dropout": np.nan}, "dropout is nan"),
        ({"dropout": None}, "dropout is None"),
        ({"batch_size": None}, "batch_size is None"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"sweeps": -1}, "sweeps is -1"),
        ({"max_iter": 1.5}, "max_iter is 1.5"),
        ({"burn_in": -1}, "burn_in is -1"),
        ({"step": 0.0}, "step is 0.0: it must be above 0, or None"),
        ({"l2": -1.0}, "l2 is -1.0"),
        ({"margin": np.inf}, "margin is inf"),
        ({"tol": -1e-3}, "tol is -0.001"),
        ({"order": 0}, "order is 0"),
        ({"min_count": 0}, "min_count is 0"),
        ({"n_hashed": 0}, "n_hashed is 0"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds is 0"),
        ({"early_stopping_rounds": 1}, "early_stopping_rounds needs an eval_set"),
        ({"eval_metric": "f1"}, "eval_metric is 'f1'"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense(arguments, message):
    with pytest.raises(ValueError, match=message):
        crf(**arguments).fit(X, Y)


def test_numbers_of_numpy_are_arguments_too(tmp_path):
    found = crf(n_hidden=np.int64(3), skip=np.bool_(True), sweeps=np.int64(1)).fit(X, Y)
    found.save(tmp_path / "m.crfx")
    assert load(tmp_path / "m.crfx").model_.node.shape == found.model_.node.shape


# Herding.


@pytest.mark.parametrize("arguments", [{"sweeps": 0}, {"burn_in": 9}], ids=str)
def test_where_no_sweep_has_voted_the_parameters_do(arguments):
    found = crf("perceptron", herding=True, **arguments).fit(X, Y)
    codes = np.concatenate(found.predict_marginals(X)).argmax(axis=1)
    np.testing.assert_array_equal(found.classes_[codes], np.concatenate(found.predict(X)))


# Where fitting fails.


def fails(progress):
    raise KeyboardInterrupt


@pytest.mark.parametrize("herding", [False, True])
def test_a_fit_that_fails_before_it_learns_changes_nothing(herding):
    found = crf("perceptron", herding=herding).fit(SPARSE, Y)
    before, state = found.predict_marginals(SPARSE), found._state
    found.set_params(pretrain="contrastive")
    with pytest.raises(ValueError, match="X must be dense"):
        found.fit(SPARSE, Y)
    for one, other in zip(found.predict_marginals(SPARSE), before, strict=True):
        np.testing.assert_array_equal(one, other)
    assert found._state is state


def test_going_on_that_fails_before_it_learns_changes_nothing():
    start, found = crf().fit(X, Y), crf().fit(X, Y, sample_weight=np.arange(len(X)))
    before = get_weights(found.model_)
    with pytest.raises(ValueError, match="eval_metric gave NaN"):
        found.set_params(eval_metric=lambda *_: np.nan).fit(
            X, Y, init_model=start, eval_set=(X_DEV, Y_DEV)
        )
    np.testing.assert_array_equal(get_weights(found.model_), before)


def test_what_was_learned_before_an_interrupt_stays():
    found = crf("sgd")
    with pytest.raises(KeyboardInterrupt):
        found.fit(X, Y, callbacks=[fails])
    assert found.n_iter_ == 1
    assert found.score(X, Y) > 0
