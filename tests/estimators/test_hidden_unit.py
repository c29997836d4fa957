"""HiddenUnitCRF: what it learns, early stopping, pre-training, kinds of features, votes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from crfx import HiddenUnitCRF, LinearCRF, load
from crfx.model.flat_parameters import get_weights
from crfx.testing import make_task

X, Y = make_task()
X_DEV, Y_DEV = make_task(1, 12)
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.8, 0, x)) for x in X]
PARENTS = [np.arange(len(x)) // 2 - (np.arange(len(x)) == 0) for x in X]
TRAINERS = ["sgd", "lbfgs", "perceptron", "large_margin"]
CONVERGED = 1e-3
"""Weights of two runs that end near the same minimum."""


def crf(trainer="sgd", **arguments):
    """Return a small estimator with a seed."""
    usual = {"n_hidden": 6, "sweeps": 3, "step": 0.1, "max_iter": 8}
    return HiddenUnitCRF(trainer=trainer, random_state=0, n_jobs=1, **(usual | arguments))


# What it learns.


def test_hidden_units_learn_nonlinear_labels():
    """The label is whether the signs of two features differ."""
    random = np.random.default_rng(0)
    X = [random.choice([-1.0, 1.0], size=(5, 2)).astype(np.float32) for _ in range(40)]
    y = [(x[:, 0] * x[:, 1] > 0).tolist() for x in X]
    arguments = {"edges": None, "trainer": "lbfgs", "l2": 1e-3, "max_iter": 200}
    assert HiddenUnitCRF(8, random_state=0, **arguments).fit(X, y).score(X, y) == 1
    assert LinearCRF(**arguments).fit(X, y).score(X, y) < 0.7


@pytest.mark.parametrize(
    ("trainer", "activation"),
    [
        ("sgd", "softplus"),
        ("sgd", "relu"),
        ("lbfgs", "sigmoid"),
        ("lbfgs", "tanh"),
        ("perceptron", "relu"),
        ("large_margin", "softplus"),
        ("large_margin", "tanh"),
    ],
)
def test_every_trainer_learns(trainer, activation):
    model = crf(trainer, activation=activation, sweeps=30, max_iter=40, l2=0.1, dropout=0.0)
    model.fit(X, Y)
    assert model.score(X, Y) > 0.75
    assert model.score(X_DEV, Y_DEV) > 0.6
    assert len(model.history_["objective"]) == len(model.history_["seconds"]) == model.n_iter_
    assert model.transitions_.shape == (3, 3)


def test_objective_is_likelihood_plus_penalty():
    for trainer in ("sgd", "lbfgs"):
        model = crf(trainer, l2=0.3).fit(X, Y)
        expected = -model.log_likelihood(X, Y).sum() + 0.3 * (get_weights(model.model_) ** 2).sum()
        assert model.history_["objective"][-1] == pytest.approx(expected, rel=1e-5)


def test_no_hidden_units_equal_linear_model():
    """The constant of a label is the weight of a feature that is always 1."""
    ones = [np.column_stack([x, np.ones(len(x), np.float32)]) for x in X]
    arguments = {"trainer": "lbfgs", "l2": 0.5, "tol": 1e-9, "max_iter": 500}
    model = HiddenUnitCRF(0, skip=True, **arguments).fit(X, Y)
    peer = LinearCRF(features="all", **arguments).fit(ones, Y)
    parts = model.model_.node.shape.split(model.model_.node.weights)
    expected = peer.model_.node.weights.reshape(5, 3)
    np.testing.assert_allclose(parts["skip"], expected[:4], atol=CONVERGED)
    np.testing.assert_allclose(parts["constant"], expected[4], atol=CONVERGED)
    np.testing.assert_allclose(model.transitions_, peer.transitions_, atol=CONVERGED)
    objectives = [each.history_["objective"][-1] for each in (model, peer)]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-5)


def test_same_seed_gives_the_same_model():
    for trainer in TRAINERS:
        arguments = {"trainer": trainer, "step": None, "sweeps": 2}
        one, other = (get_weights(crf(**arguments).fit(X, Y).model_) for _ in range(2))
        np.testing.assert_array_equal(one, other)
        another = crf(**arguments).set_params(random_state=1).fit(X, Y)
        assert not np.allclose(get_weights(another.model_), one)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_forests_and_unknown_labels_can_be_learned(trainer):
    partial = [[None if k % 3 == 1 else label for k, label in enumerate(labels)] for labels in Y]
    arguments = {"sweeps": 8, "max_iter": 30, "skip": True, "dropout": 0.0}
    model = crf(trainer, **arguments).fit(X, partial, parents=PARENTS)
    assert model.score(X, Y, parents=PARENTS) > 0.7
    assert crf(trainer, **arguments).fit(X, partial).score(X, Y) > 0.7


# Stopping early.


@pytest.mark.parametrize(
    ("trainer", "metric", "decode"),
    [
        ("sgd", "loss", None),
        ("sgd", "token_accuracy", "joint"),
        ("lbfgs", "loss", None),
        ("lbfgs", "token_accuracy", "marginal"),
    ],
)
def test_early_stopping_restores_the_best_parameters(trainer, metric, decode):
    """Whose accuracy is that of the decoder."""
    arguments = {"sweeps": 25, "max_iter": 60, "l2": 0.0, "step": 0.5, "burn_in": 99}
    arguments |= {"decode": decode}
    seen = []
    model = crf(trainer, **arguments, early_stopping_rounds=3, eval_metric=metric)

    def look(progress):
        seen.append(get_weights(model.model_))

    model.fit(X[:8], Y[:8], eval_set=(X_DEV, Y_DEV), callbacks=[look])
    values = np.array(model.history_["eval_metric"])
    best = int(values.argmax() if metric == "token_accuracy" else values.argmin())
    assert model.best_iteration_ == best
    assert model.n_iter_ == best + 4 < (60 if trainer == "lbfgs" else 25)
    np.testing.assert_array_equal(get_weights(model.model_), seen[best].astype(np.float32))
    if metric == "token_accuracy":
        assert model.score(X_DEV, Y_DEV) == pytest.approx(values[best])


# Pre-training.


def before_training(pretrain, X=X, **arguments):
    """Return the log-likelihood of the labels with no epoch after pre-training."""
    model = crf(sweeps=0, pretrain=pretrain, dropout=0.0, **arguments).fit(X, Y)
    return model.log_likelihood(X, Y).sum()


@pytest.mark.parametrize(
    ("pretrain", "n", "X"),
    [("discriminative", 20, X), ("discriminative", 20, SPARSE), ("contrastive", 300, X)],
    ids=["discriminative", "sparse", "contrastive"],
)
def test_pretraining_raises_initial_likelihood(pretrain, n, X):
    assert before_training(pretrain, X, pretrain_sweeps=n) > before_training(None, X) + 5


@pytest.mark.parametrize(
    ("trainer", "pretrain"),
    [("sgd", "discriminative"), ("lbfgs", "contrastive"), ("perceptron", "contrastive")],
)
def test_training_starts_from_pretraining(trainer, pretrain):
    first = crf(trainer, sweeps=0, max_iter=0, pretrain=pretrain, pretrain_sweeps=2).fit(X, Y)
    parts = first.model_.node.shape.split(first.model_.node.weights)
    assert parts["bias"].any()
    assert not first.transitions_.any()
    then = crf(trainer, sweeps=1, max_iter=1, pretrain=pretrain, pretrain_sweeps=2).fit(X, Y)
    assert then.transitions_.any()


@pytest.mark.parametrize("make", [lambda x: x > 1, np.sign], ids=["binary", "spins"])
def test_contrastive_divergence_takes_any_real_features(make):
    inputs = [make(x).astype(np.float32) for x in X]
    assert before_training("contrastive", inputs, pretrain_sweeps=20) > before_training(
        None, inputs
    )


def test_pretraining_is_not_done_again():
    first = crf(pretrain="contrastive", burn_in=0).fit(X, Y)
    more = crf(pretrain="contrastive", burn_in=0, sweeps=0).fit(X, Y, init_model=first)
    np.testing.assert_array_equal(get_weights(more.model_), get_weights(first.model_))


# Kinds of features, and arguments.


WORDS = [[[f"w{label}", "x"] for label in labels] for labels in Y]
DICTS = [[{"w": label, "n": 0.5} for label in labels] for labels in Y]


@pytest.mark.parametrize(
    ("trainer", "inputs", "arguments"),
    [
        ("sgd", WORDS, {}),
        ("lbfgs", DICTS, {}),
        ("perceptron", WORDS, {"n_hashed": 64}),
        ("sgd", DICTS, {"n_hashed": 64}),
        ("lbfgs", WORDS, {"min_count": 2}),
        ("large_margin", DICTS, {"min_count": 2}),
    ],
    ids=range(6),
)
def test_words_and_dicts(trainer, inputs, arguments):
    usual = {"n_hidden": 30, "sweeps": 40, "max_iter": 30, "step": None, "dropout": 0.0}
    model = crf(trainer, **usual, **arguments).fit(inputs, Y)
    assert model.score(inputs, Y) > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pretrain_sweeps": 0}, "pretrain_sweeps is 0: it must be a whole number of 1 or more"),
        ({"batch_size": 0}, "batch_size is 0: it must be a whole number of 1 or more"),
        ({"herding": True, "trainer": "lbfgs"}, "herding is for trainers"),
        ({"decode": "joint", "activation": "sigmoid"}, "there is nothing to maximise over"),
        ({"dropout": 1}, "dropout is 1: it must be 0 or more and below 1"),
    ],
    ids=str,
)
def test_fit_rejects_arguments(arguments, message):
    """Those at the border; `tests/bad_inputs` has the others."""
    with pytest.raises(ValueError, match=message):
        crf(**arguments).fit(X, Y)


def test_fit_takes_numbers_of_numpy(tmp_path):
    model = crf(n_hidden=np.int64(3), skip=np.bool_(True), sweeps=np.int64(1)).fit(X, Y)
    model.save(tmp_path / "m.crfx")
    assert load(tmp_path / "m.crfx").model_.node.shape == model.model_.node.shape


# Herding.


@pytest.mark.parametrize("arguments", [{"sweeps": 0}, {"burn_in": 9}], ids=str)
def test_herding_without_votes_predicts_from_parameters(arguments, tmp_path):
    model = crf("perceptron", herding=True, **arguments).fit(X, Y)
    codes = np.concatenate(model.predict_marginals(X)).argmax(axis=1)
    np.testing.assert_array_equal(model.classes_[codes], np.concatenate(model.predict(X)))
    model.save(tmp_path / "m.crfx")
    assert load(tmp_path / "m.crfx").votes_ == []


def test_herding_counts_one_vote_per_epoch():
    """Votes are what models that end after 2, 3 and 4 epochs predict."""
    arguments = {"trainer": "perceptron", "dropout": 0.0}
    model = crf(sweeps=4, burn_in=1, herding=True, **arguments).fit(X, Y)
    expected = np.zeros((sum(map(len, X)), 3))
    for n in (2, 3, 4):
        labels = np.concatenate(crf(sweeps=n, burn_in=9, **arguments).fit(X, Y).predict(X))
        expected += labels[:, None] == model.classes_
    shares = np.concatenate(model.predict_marginals(X))
    np.testing.assert_allclose(shares, expected / 3, rtol=1e-6)
    assert len(np.unique(shares)) > 2  # the epochs do not all agree
    predicted = np.concatenate(model.predict(X))
    np.testing.assert_array_equal(predicted, model.classes_[expected.argmax(axis=1)])
    assert model.score(X, Y) == pytest.approx(np.mean(predicted == np.concatenate(Y)))


def test_predicting_by_votes_keeps_parameters():
    """This holds while other threads predict, too."""
    model = crf("perceptron", herding=True).fit(X, Y)
    before, expected = get_weights(model.model_), model.predict_marginals(X)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: model.predict_marginals(X), range(20)))
    for answer in answers:
        np.testing.assert_array_equal(np.concatenate(answer), np.concatenate(expected))
    np.testing.assert_array_equal(get_weights(model.model_), before)


def test_herding_rejects_probabilities_of_labellings():
    model = crf("large_margin", herding=True).fit(X, Y)
    for ask in (
        lambda: model.log_likelihood(X, Y),
        lambda: model.predict_edge_marginals(X),
        lambda: model.predict_kbest(X, 2),
        lambda: model.sample(X),
    ):
        with pytest.raises(ValueError, match="sweeps vote on labels"):
            ask()


# Where fitting fails.


def test_eval_metric_of_labels_counts_votes():
    """The last entry of the history is the score of the fitted model."""
    fitted = crf("perceptron", herding=True, burn_in=1, eval_metric="token_accuracy")
    fitted.fit(X, Y, eval_set=(X, Y))
    assert fitted.history_["eval_metric"][-1] == fitted.score(X, Y)


@pytest.mark.parametrize("herding", [False, True])
def test_failed_fit_changes_nothing(herding):
    model = crf("perceptron", herding=herding).fit(SPARSE, Y)
    before, state = model.predict_marginals(SPARSE), model.training_
    model.set_params(pretrain="contrastive")
    with pytest.raises(ValueError, match="X must be dense"):
        model.fit(SPARSE, Y)
    for one, other in zip(model.predict_marginals(SPARSE), before, strict=True):
        np.testing.assert_array_equal(one, other)
    assert model.training_ is state
