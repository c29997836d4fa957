"""``class_weight`` in every estimator and trainer: what it does, equals, and refuses."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, TreeCRF, load
from crfx.testing import make_task

X, Y = make_task(n_instances=40)
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.8, 0, x)) for x in X]
HEAVY = {"L0": 8.0}
SEED = {"random_state": 0, "n_jobs": 1}
SAME = {"rtol": 1e-5, "atol": 1e-5}
HIDDEN = {"n_hidden": 4, "dropout": 0.0, "step": 0.05, **SEED}

ESTIMATORS = [
    pytest.param(GBCRF(8, max_depth=2, **SEED), id="GBCRF"),
    pytest.param(GBCRF(8, max_depth=2, edges="trees", **SEED), id="GBCRF, tree edges"),
    pytest.param(GBCRF(8, max_depth=2, edges="linear", **SEED), id="GBCRF, linear edges"),
    pytest.param(GBCRF(8, max_depth=2, edges=None, **SEED), id="GBCRF, no edges"),
    pytest.param(GBCRF(8, max_depth=2, curvature=None, **SEED), id="GBCRF, first order"),
    pytest.param(
        GBCRF(4, base_learner=DecisionTreeRegressor(max_depth=2), **SEED), id="GBCRF, regressors"
    ),
    pytest.param(TreeCRF(8, max_leaves=4, **SEED), id="TreeCRF"),
    pytest.param(TreeCRF(8, max_leaves=4, curvature="auto", **SEED), id="TreeCRF, second order"),
    pytest.param(LinearCRF(**SEED), id="LinearCRF"),
    pytest.param(LinearCRF(edges="linear", **SEED), id="LinearCRF, linear edges"),
    pytest.param(LinearCRF(l1=0.5, **SEED), id="LinearCRF, OWL-QN"),
    pytest.param(LinearCRF("sgd", step=0.05, **SEED), id="LinearCRF, SGD"),
    pytest.param(LinearCRF("perceptron", **SEED), id="LinearCRF, perceptron"),
    pytest.param(LinearCRF("large_margin", **SEED), id="LinearCRF, large margin"),
    pytest.param(HiddenUnitCRF(sweeps=20, **HIDDEN), id="HiddenUnitCRF, SGD"),
    pytest.param(HiddenUnitCRF(trainer="lbfgs", l2=0.1, **HIDDEN), id="HiddenUnitCRF"),
    pytest.param(
        HiddenUnitCRF(trainer="perceptron", sweeps=20, **HIDDEN), id="HiddenUnitCRF, perceptron"
    ),
    pytest.param(
        HiddenUnitCRF(trainer="large_margin", sweeps=20, **HIDDEN), id="HiddenUnitCRF, margin"
    ),
]
OBJECTIVES = (
    "likelihood",
    "pseudo_likelihood",
    "labelwise_likelihood",
    "loss_augmented",
    "expected_loss",
)


def share(crf, X, label):
    """How often a label is predicted."""
    return np.mean(np.concatenate(crf.predict(X)) == label)


def with_params(crf, **params):
    return clone(crf).set_params(**params)


@pytest.mark.parametrize("crf", ESTIMATORS)
def test_a_heavy_label_is_found_more_often(crf):
    data = SPARSE if isinstance(crf, LinearCRF) else X
    plain, heavy = (
        with_params(crf, class_weight=weight).fit(data, Y) for weight in (None, {"L1": 30.0})
    )
    assert share(heavy, data, "L1") > share(plain, data, "L1") + 0.1


@pytest.mark.parametrize("crf", ESTIMATORS)
def test_equal_weights_are_sample_weights(crf):
    """In a sum; steps of perceptrons and trees do not depend on how it is told."""
    labels = {"L0", "L1", "L2"}
    found = with_params(crf, class_weight=dict.fromkeys(labels, 2.0)).fit(X, Y)
    expected = clone(crf).fit(X, Y, sample_weight=np.full(len(X), 2.0))
    objectives = [own.history_["objective"][:3] for own in (found, expected)]
    np.testing.assert_allclose(*objectives, rtol=1e-4)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("make", [GBCRF, TreeCRF, LinearCRF])
def test_every_objective_weighs_labels(make, objective):
    settings = {"max_iter": 30} if make is LinearCRF else {"n_estimators": 8}
    heavy = make(objective=objective, class_weight={"L1": 30.0}, **settings, **SEED).fit(X, Y)
    plain = make(objective=objective, **settings, **SEED).fit(X, Y)
    assert share(heavy, X, "L1") > share(plain, X, "L1")


def test_without_edges_it_is_logistic_regression_with_that_class_weight():
    crf = LinearCRF(edges=None, l2=0.5, class_weight=HEAVY, tol=1e-9, features="all")
    crf.fit(X, Y)
    peer = LogisticRegression(C=1.0, class_weight=HEAVY, fit_intercept=False, tol=1e-8)
    peer.fit(np.concatenate(X), np.concatenate(Y))
    np.testing.assert_allclose(crf.coef_, peer.coef_, rtol=0, atol=2e-3)
    plain = LinearCRF(edges=None, l2=0.5, tol=1e-9, features="all").fit(X, Y)
    assert np.abs(crf.coef_ - plain.coef_).max() > 0.1


def test_without_edges_boosting_sees_positions_with_their_weights():
    settings = {"n_estimators": 5, "edges": None, **SEED}
    crf = GBCRF(class_weight=HEAVY, **settings).fit(X, Y)
    rows, labels = np.concatenate(X)[:, None], np.concatenate(Y)[:, None]
    weights = np.where(labels[:, 0] == "L0", 8.0, 1.0)
    alone = GBCRF(**settings).fit(list(rows), list(labels), sample_weight=weights)
    np.testing.assert_allclose(
        np.concatenate(crf.predict_marginals(X)),
        np.concatenate(alone.predict_marginals(list(rows))),
        **SAME,
    )


def test_balanced_is_as_in_scikit_learn_and_counts_weights_of_instances():
    labels, counts = np.unique(np.concatenate(Y), return_counts=True)
    weights = dict(zip(labels, counts.sum() / (len(labels) * counts), strict=True))
    named = LinearCRF(class_weight=weights).fit(X, Y)
    balanced = LinearCRF(class_weight="balanced").fit(X, Y)
    np.testing.assert_allclose(balanced.coef_, named.coef_, **SAME)
    twice = LinearCRF(class_weight="balanced").fit(X + X[:5], Y + Y[:5])
    heavy = LinearCRF(class_weight="balanced").fit(
        X, Y, sample_weight=np.where(np.arange(len(X)) < 5, 2, 1)
    )
    np.testing.assert_allclose(heavy.coef_, twice.coef_, rtol=0, atol=2e-2)
    partly = [[None if k == 0 else label for k, label in enumerate(own)] for own in Y]
    LinearCRF(class_weight="balanced").fit(X, partly)


@pytest.mark.parametrize("crf", ESTIMATORS[::3])
def test_it_is_kept_copied_and_saved(crf, tmp_path):
    crf = with_params(crf, class_weight=HEAVY)
    assert clone(crf).get_params()["class_weight"] == HEAVY
    if getattr(crf, "base_learner", None) is not None:
        return
    crf.fit(X, Y).save(tmp_path / "m.crfx")
    assert load(tmp_path / "m.crfx").class_weight == HEAVY


def test_labels_that_are_numbers_are_saved_as_such(tmp_path):
    y = [[int(label[1]) for label in own] for own in Y]
    LinearCRF(class_weight={np.int64(1): 2, 0: 0.5}, max_iter=3).fit(X, y).save(tmp_path / "m")
    assert load(tmp_path / "m").class_weight == {1: 2.0, 0: 0.5}


def test_training_goes_on_with_other_weights():
    old = HiddenUnitCRF(sweeps=3, **HIDDEN).fit(X, Y)
    more = HiddenUnitCRF(sweeps=3, class_weight=HEAVY, **HIDDEN).fit(X, Y, init_model=old)
    assert len(more.history_["objective"]) == 3  # another goal: counted anew


def test_the_watched_loss_has_the_weights():
    crf = GBCRF(3, class_weight=HEAVY, **SEED).fit(X, Y, eval_set=(X, Y))
    total = np.array(crf.history_["eval_metric"]) * sum(map(len, Y))
    penalty = np.array(crf.history_["objective"]) - total
    assert (penalty > -1e-3).all()
    assert (penalty < 0.1 * total).all()


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ({"Q": 2.0}, "class_weight has the label 'Q', which y has not: its labels are 'L0', 'L1'"),
        ({"L0": -1.0}, "class_weight of 'L0' is -1.0: it must be 0 or more"),
        ({"L0": np.nan}, "class_weight of 'L0' is nan: it must be 0 or more"),
        ({"L0": np.inf}, "class_weight of 'L0' is inf: it must be 0 or more"),
        ({"L0": "2"}, "class_weight of 'L0' is '2': it must be 0 or more"),
        ({"L0": True}, "class_weight of 'L0' is True: it must be 0 or more"),
        ("even", "class_weight is 'even': pass a dict from labels to weights, \"balanced\" or"),
        ([1.0, 2.0, 1.0], "class_weight is .*: pass a dict"),
        (dict.fromkeys(["L0", "L1", "L2"], 0), "class_weight is 0 for every label of y"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weight, message):
    for crf in (GBCRF(2), TreeCRF(2), LinearCRF(), HiddenUnitCRF(2)):
        with pytest.raises(ValueError, match=message):
            crf.set_params(class_weight=weight).fit(X, Y)


@pytest.mark.parametrize("make", [GBCRF, TreeCRF, LinearCRF, HiddenUnitCRF])
def test_labels_of_instances_without_weight_do_not_count(make):
    """What is left has weights of 0 only, or no label that is known."""
    y = [["L0"] * len(own) for own in Y[:-1]] + [["L1"] * len(Y[-1])]
    weights = np.ones(len(X))
    weights[-1] = 0
    with pytest.raises(ValueError, match="class_weight is 0 for every label of y that counts"):
        make(class_weight={"L0": 0}).fit(X, y, sample_weight=weights)
    unknown = [[None] * len(own) for own in Y[:-1]] + y[-1:]
    for weight in ("balanced", {"L1": 2.0}):
        with pytest.raises(ValueError, match="class_weight is given, but y has no known label"):
            make(class_weight=weight).fit(X, unknown, sample_weight=weights)
    with pytest.raises(ValueError, match="sample_weight is zero for every instance"):
        make(class_weight={"L0": 2.0}).fit(X, y, sample_weight=0 * weights)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "kl"}, "class_weight is given, but objective 'kl' is no sum"),
        ({"objective": "loss_scaled"}, "class_weight is given, but objective 'loss_scaled'"),
        ({"objective": "expected_loss", "task_loss": "zero_one"}, "with task_loss 'zero_one'"),
    ],
)
def test_objectives_that_cannot_weigh_labels_refuse(settings, message):
    for make in (GBCRF, TreeCRF, LinearCRF, HiddenUnitCRF):
        with pytest.raises(ValueError, match=message):
            make(class_weight="balanced", **settings).fit(X, Y)


def test_an_objective_of_the_users_own_must_say_that_it_weighs_labels():
    class Own:
        name, uses_loss, curvatures = "own", False, None

        def bind(self, truth, loss, n_jobs):
            raise AssertionError

    with pytest.raises(ValueError, match="class_weight is given, but objective 'own'"):
        GBCRF(2, objective=Own(), class_weight="balanced").fit(X, Y)


def test_partial_fit_takes_a_dict():
    crf = LinearCRF("sgd", class_weight={"L1": 30.0}, **SEED)
    plain = LinearCRF("sgd", **SEED)
    for _ in range(5):
        crf.partial_fit(X, Y)
        plain.partial_fit(X, Y)
    assert share(crf, X, "L1") > share(plain, X, "L1")
    with pytest.raises(ValueError, match="partial_fit sees a part of the labels"):
        LinearCRF("sgd", class_weight="balanced").partial_fit(X, Y)


def test_induction_and_pretraining_take_weights():
    words = [[[f"a{int(v)}" for v in row] for row in x] for x in X]
    LinearCRF(feature_induction=1, class_weight=HEAVY).fit(words, Y)
    for kind in ("discriminative", "contrastive"):
        HiddenUnitCRF(pretrain=kind, sweeps=2, class_weight=HEAVY, **HIDDEN).fit(X, Y)
