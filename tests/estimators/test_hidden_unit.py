"""HiddenUnitCRF: what it learns, its trainers, votes, pre-training, bad arguments."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from crfx import HiddenUnitCRF, LinearCRF, load
from crfx.model.flat_parameters import get_weights
from crfx.testing import make_task

X, Y = make_task()
X_DEV, Y_DEV = make_task(1, 12)
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.8, 0, x)) for x in X]
PARENTS = [np.arange(len(x)) // 2 - (np.arange(len(x)) == 0) for x in X]
TRAINERS = ["sgd", "lbfgs", "perceptron", "large_margin"]
SWEEPING = ["sgd", "perceptron", "large_margin"]
CONVERGED = 1e-3
"""Weights of two runs that end near the same minimum."""


def crf(trainer="sgd", **arguments):
    """Small, and the same every time."""
    usual = {"n_hidden": 6, "sweeps": 3, "step": 0.1, "max_iter": 8}
    return HiddenUnitCRF(trainer=trainer, random_state=0, n_jobs=1, **(usual | arguments))


def unknown(labels):
    return [None] * len(labels)


# What it learns.


def test_units_learn_what_no_linear_model_can():
    """The label is whether the signs of two features differ."""
    random = np.random.default_rng(0)
    X = [random.choice([-1.0, 1.0], size=(5, 2)).astype(np.float32) for _ in range(40)]
    y = [(x[:, 0] * x[:, 1] > 0).tolist() for x in X]
    arguments = {"edges": None, "trainer": "lbfgs", "l2": 1e-3, "max_iter": 200}
    assert HiddenUnitCRF(8, random_state=0, **arguments).fit(X, y).score(X, y) == 1
    assert LinearCRF(**arguments).fit(X, y).score(X, y) < 0.7


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("activation", ["softplus", "relu", "tanh", "sigmoid"])
def test_every_trainer_learns(trainer, activation):
    found = crf(trainer, activation=activation, sweeps=30, max_iter=40, l2=0.1, dropout=0.0)
    found.fit(X, Y)
    assert found.score(X, Y) > 0.75
    assert found.score(X_DEV, Y_DEV) > 0.6
    assert len(found.history_["objective"]) == len(found.history_["seconds"]) == found.n_iter_
    assert found.transitions_.shape == (3, 3)


def test_the_objective_is_the_sum_that_it_says():
    for trainer in ("sgd", "lbfgs"):
        found = crf(trainer, l2=0.3).fit(X, Y)
        expected = -found.log_likelihood(X, Y).sum() + 0.3 * (get_weights(found.model_) ** 2).sum()
        assert found.history_["objective"][-1] == pytest.approx(expected, rel=1e-5)


def test_without_units_it_is_a_linear_model():
    """The constant of a label is the weight of a feature that is always 1."""
    ones = [np.column_stack([x, np.ones(len(x), np.float32)]) for x in X]
    arguments = {"trainer": "lbfgs", "l2": 0.5, "tol": 1e-9, "max_iter": 500}
    found = HiddenUnitCRF(0, skip=True, **arguments).fit(X, Y)
    peer = LinearCRF(features="all", **arguments).fit(ones, Y)
    parts = found.model_.node.shape.split(found.model_.node.weights)
    expected = peer.model_.node.weights.reshape(5, 3)
    np.testing.assert_allclose(parts["skip"], expected[:4], atol=CONVERGED)
    np.testing.assert_allclose(parts["constant"], expected[4], atol=CONVERGED)
    np.testing.assert_allclose(found.transitions_, peer.transitions_, atol=CONVERGED)
    assert found.history_["objective"][-1] == pytest.approx(
        peer.history_["objective"][-1], rel=1e-5
    )


@pytest.mark.parametrize("trainer", TRAINERS)
def test_the_same_seed_gives_the_same_model(trainer):
    arguments = {"trainer": trainer, "step": None, "sweeps": 2}
    one, other = (get_weights(crf(**arguments).fit(X, Y).model_) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    another = crf(**arguments).set_params(random_state=1).fit(X, Y)
    assert not np.allclose(get_weights(another.model_), one)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_forests_and_unknown_labels_can_be_learned(trainer):
    partial = [[None if k % 3 == 1 else label for k, label in enumerate(own)] for own in Y]
    arguments = {"sweeps": 8, "max_iter": 30, "skip": True, "dropout": 0.0}
    for y in (Y, partial):
        found = crf(trainer, **arguments).fit(X, y, parents=PARENTS)
        assert found.score(X, Y, parents=PARENTS) > 0.7
    assert crf(trainer, **arguments).fit(X, partial).score(X, Y) > 0.7


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_weight_of_two_is_the_instance_twice(trainer):
    """In one step over all instances."""
    weights = 1.0 + (np.arange(len(X)) % 2)
    twice = [k for k, weight in enumerate(weights) for _ in range(int(weight))]
    arguments = {"batch_size": 1000, "sweeps": 3, "max_iter": 3, "dropout": 0.0, "l2": 0.0}
    found = crf(trainer, **arguments).fit(X, Y, sample_weight=weights)
    expected = crf(trainer, **arguments).fit([X[k] for k in twice], [Y[k] for k in twice])
    np.testing.assert_allclose(
        get_weights(found.model_), get_weights(expected.model_), rtol=1e-3, atol=1e-4
    )


# Perceptrons.


def easy(n=6):
    """Labels that features tell."""
    labels = [np.arange(k + 2) % 3 for k in range(n)]
    return [np.eye(3, dtype=np.float32)[own] for own in labels], [own.tolist() for own in labels]


def test_a_perceptron_rests_where_it_is_right():
    x, y = easy()
    learned = crf("perceptron", sweeps=40, burn_in=99, dropout=0.0).fit(x, y)
    assert learned.score(x, y) == 1
    more = crf("perceptron", sweeps=3, burn_in=99, dropout=0.0).fit(x, y, init_model=learned)
    np.testing.assert_array_equal(get_weights(more.model_), get_weights(learned.model_))
    assert more.history_["objective"][-3:] == [0.0] * 3


def test_a_margin_is_learned_beyond_the_truth():
    """What is right by less than the margin moves; by more, it rests."""
    x, y = easy()
    arguments = {"burn_in": 99, "dropout": 0.0}
    learned = crf("perceptron", sweeps=40, **arguments).fit(x, y)
    inside = crf("large_margin", sweeps=1, margin=50.0, **arguments).fit(x, y, init_model=learned)
    assert not np.allclose(get_weights(inside.model_), get_weights(learned.model_))
    outside = crf("large_margin", sweeps=1, margin=1e-6, **arguments).fit(x, y, init_model=learned)
    np.testing.assert_array_equal(get_weights(outside.model_), get_weights(learned.model_))


def test_no_margin_is_a_perceptron():
    one, other = (
        get_weights(crf(trainer, margin=0.0).fit(X, Y).model_)
        for trainer in ("perceptron", "large_margin")
    )
    np.testing.assert_array_equal(one, other)


def test_the_perceptron_has_no_margin():
    one, other = (
        get_weights(crf("perceptron", margin=margin).fit(X, Y).model_) for margin in (0.0, 9.0)
    )
    np.testing.assert_array_equal(one, other)


# Stopping early.


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("metric", ["loss", "token_accuracy"])
def test_the_best_parameters_are_restored(trainer, metric):
    arguments = {"sweeps": 25, "max_iter": 60, "l2": 0.0, "step": 0.5, "burn_in": 99}
    seen = []
    found = crf(trainer, **arguments, early_stopping_rounds=3, eval_metric=metric)

    def look(progress):
        seen.append(get_weights(found.model_))

    found.fit(X[:8], Y[:8], eval_set=(X_DEV, Y_DEV), callbacks=[look])
    values = np.array(found.history_["eval_metric"])
    best = int(values.argmax() if metric == "token_accuracy" else values.argmin())
    assert found.best_iteration_ == best
    assert found.n_iter_ == best + 4 < (60 if trainer == "lbfgs" else 25)
    np.testing.assert_array_equal(get_weights(found.model_), seen[best].astype(np.float32))
    if metric == "token_accuracy":
        assert found.score(X_DEV, Y_DEV) == pytest.approx(values[best])


def test_the_evaluation_is_of_what_is_decoded():
    for decode in ("viterbi", "marginal", "joint"):
        found = crf(decode=decode, eval_metric="token_accuracy", sweeps=5)
        found.fit(X, Y, eval_set=(X_DEV, Y_DEV))
        assert found.history_["eval_metric"][-1] == pytest.approx(found.score(X_DEV, Y_DEV))


# Pre-training.


def before_training(pretrain, **arguments):
    """The log-likelihood of the labels with no sweeps, or one iteration, after it."""
    found = crf(sweeps=0, pretrain=pretrain, dropout=0.0, **arguments).fit(X, Y)
    return found.log_likelihood(X, Y).sum()


@pytest.mark.parametrize("pretrain", ["discriminative", "contrastive"])
def test_pretraining_is_better_than_nothing(pretrain):
    plain = before_training(None)
    found = before_training(pretrain, pretrain_sweeps=300 if pretrain == "contrastive" else 20)
    assert found > plain + 5


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("pretrain", ["discriminative", "contrastive"])
def test_pretraining_is_where_training_begins(trainer, pretrain):
    first = crf(trainer, sweeps=0, max_iter=0, pretrain=pretrain, pretrain_sweeps=2).fit(X, Y)
    parts = first.model_.node.shape.split(first.model_.node.weights)
    assert parts["bias"].any()
    assert not first.transitions_.any()
    then = crf(trainer, sweeps=1, max_iter=1, pretrain=pretrain, pretrain_sweeps=2).fit(X, Y)
    assert then.transitions_.any()


@pytest.mark.parametrize("kind", ["binary", "spins", "normal"])
def test_contrastive_divergence_takes_features_of_every_kind(kind):
    make = {"binary": lambda x: x > 1, "spins": lambda x: np.sign(x), "normal": lambda x: x}[kind]
    given = [make(x).astype(np.float32) for x in X]
    found = crf(sweeps=0, pretrain="contrastive", pretrain_sweeps=20).fit(given, Y)
    plain = crf(sweeps=0).fit(given, Y)
    assert found.log_likelihood(given, Y).sum() > plain.log_likelihood(given, Y).sum()


def test_contrastive_divergence_needs_dense_features():
    with pytest.raises(ValueError, match="X must be dense"):
        crf(pretrain="contrastive").fit(SPARSE, Y)
    crf(pretrain="discriminative", pretrain_sweeps=1, sweeps=1).fit(SPARSE, Y)


def test_pretraining_is_not_done_again():
    first = crf(pretrain="contrastive", burn_in=0).fit(X, Y)
    more = crf(pretrain="contrastive", burn_in=0, sweeps=0).fit(X, Y, init_model=first)
    np.testing.assert_array_equal(get_weights(more.model_), get_weights(first.model_))


# Features of other kinds, and scikit-learn.


WORDS = [[[f"w{label}", "x"] for label in labels] for labels in Y]
DICTS = [[{"w": label, "n": 0.5} for label in labels] for labels in Y]


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("given", [WORDS, DICTS], ids=["words", "dicts"])
@pytest.mark.parametrize("arguments", [{}, {"n_hashed": 64}, {"min_count": 2}], ids=str)
def test_words_and_dicts(trainer, given, arguments):
    usual = {"n_hidden": 30, "sweeps": 40, "max_iter": 30, "step": None, "dropout": 0.0}
    found = crf(trainer, **usual, **arguments).fit(given, Y)
    assert found.score(given, Y) > 0.9


def test_stacked_rows_are_the_same_as_lists():
    stacked, labels, lengths = np.concatenate(X), np.concatenate(Y), [len(x) for x in X]
    one, other = crf().fit(X, Y), crf().fit(stacked, labels, lengths=lengths)
    np.testing.assert_array_equal(get_weights(one.model_), get_weights(other.model_))
    found = other.predict_marginals(stacked, lengths=lengths)
    np.testing.assert_array_equal(found, np.concatenate(one.predict_marginals(X)))


def test_another_number_of_features_is_told():
    with pytest.raises(ValueError, match="features"):
        crf().fit(X, Y).predict([x[:, :3] for x in X])


@pytest.mark.parametrize("trainer", TRAINERS)
def test_it_is_cloned_and_pickled(trainer):
    found = crf(trainer, herding=trainer == "perceptron").fit(X, Y)
    assert clone(found).get_params() == found.get_params()
    again = pickle.loads(pickle.dumps(found))
    for one, other in zip(again.predict_marginals(X), found.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_grid_is_searched():
    grid = {"n_hidden": [2, 4], "trainer": ["sgd", "perceptron"]}
    search = GridSearchCV(crf(sweeps=2), grid, cv=2).fit(X, Y)
    assert 0 < search.best_score_ <= 1
    assert search.predict(X)[0].shape == (len(Y[0]),)


def test_a_model_that_is_not_fitted_says_so():
    for method in ("predict", "predict_marginals", "sample"):
        with pytest.raises(NotFittedError):
            getattr(crf(), method)(X)


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
    assert found.training_.standing.numbers["step"] > 1e-6


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
        ({"block_steps": "paper"}, "block_steps is .paper."),
        ({"trainer": "lbfgs", "dropout": 0.2}, "dropout is 0.2, but"),
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


def test_every_sweep_votes():
    """Votes are what models that end after 2, 3 and 4 sweeps predict."""
    arguments = {"trainer": "perceptron", "dropout": 0.0}
    found = crf(sweeps=4, burn_in=1, herding=True, **arguments).fit(X, Y)
    expected = np.zeros((sum(map(len, X)), 3))
    for n in (2, 3, 4):
        labels = np.concatenate(crf(sweeps=n, burn_in=9, **arguments).fit(X, Y).predict(X))
        expected += labels[:, None] == found.classes_
    shares = np.concatenate(found.predict_marginals(X))
    np.testing.assert_allclose(shares, expected / 3, rtol=1e-6)
    assert len(np.unique(shares)) > 2  # the sweeps do not all agree
    np.testing.assert_array_equal(
        np.concatenate(found.predict(X)), found.classes_[expected.argmax(axis=1)]
    )
    assert found.score(X, Y) == pytest.approx(
        np.mean(np.concatenate(found.predict(X)) == np.concatenate(Y))
    )


def test_voting_leaves_the_parameters_alone():
    found = crf("perceptron", herding=True).fit(X, Y)
    before = get_weights(found.model_)
    found.predict_marginals(X)
    np.testing.assert_array_equal(get_weights(found.model_), before)


def test_votes_are_no_probabilities_of_labellings():
    found = crf("large_margin", herding=True).fit(X, Y)
    for ask in (
        lambda: found.log_likelihood(X, Y),
        lambda: found.predict_edge_marginals(X),
        lambda: found.predict_kbest(X, 2),
        lambda: found.sample(X),
    ):
        with pytest.raises(ValueError, match="sweeps vote on labels"):
            ask()


# Where fitting fails.


def fails(progress):
    raise KeyboardInterrupt


@pytest.mark.parametrize("herding", [False, True])
def test_a_fit_that_fails_before_it_learns_changes_nothing(herding):
    found = crf("perceptron", herding=herding).fit(SPARSE, Y)
    before, state = found.predict_marginals(SPARSE), found.training_
    found.set_params(pretrain="contrastive")
    with pytest.raises(ValueError, match="X must be dense"):
        found.fit(SPARSE, Y)
    for one, other in zip(found.predict_marginals(SPARSE), before, strict=True):
        np.testing.assert_array_equal(one, other)
    assert found.training_ is state


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
