"""``class_weight`` in every estimator and trainer: what it does, equals, and rejects."""

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

ESTIMATORS = {
    "GBCRF": GBCRF(8, max_depth=2, **SEED),
    "GBCRF, tree edges": GBCRF(8, max_depth=2, edges="trees", **SEED),
    "GBCRF, linear edges": GBCRF(8, max_depth=2, edges="linear", **SEED),
    "GBCRF, no edges": GBCRF(8, max_depth=2, edges=None, **SEED),
    "GBCRF, first order": GBCRF(8, max_depth=2, curvature=None, **SEED),
    "GBCRF, regressors": GBCRF(4, base_learner=DecisionTreeRegressor(max_depth=2), **SEED),
    "TreeCRF": TreeCRF(8, max_leaves=4, **SEED),
    "TreeCRF, second order": TreeCRF(8, max_leaves=4, curvature="auto", **SEED),
    "LinearCRF": LinearCRF(**SEED),
    "LinearCRF, linear edges": LinearCRF(edges="linear", **SEED),
    "LinearCRF, OWL-QN": LinearCRF(l1=0.5, **SEED),
    "LinearCRF, SGD": LinearCRF("sgd", step=0.05, **SEED),
    "LinearCRF, perceptron": LinearCRF("perceptron", **SEED),
    "LinearCRF, large margin": LinearCRF("large_margin", **SEED),
    "HiddenUnitCRF, SGD": HiddenUnitCRF(sweeps=20, **HIDDEN),
    "HiddenUnitCRF": HiddenUnitCRF(trainer="lbfgs", l2=0.1, **HIDDEN),
    "HiddenUnitCRF, perceptron": HiddenUnitCRF(trainer="perceptron", sweeps=20, **HIDDEN),
    "HiddenUnitCRF, margin": HiddenUnitCRF(trainer="large_margin", sweeps=20, **HIDDEN),
}


def share(crf, X, label):
    """Return how often a label is predicted."""
    return np.mean(np.concatenate(crf.predict(X)) == label)


@pytest.mark.parametrize("name", list(ESTIMATORS)[::3])
def test_class_weight_favours_heavy_label(name, tmp_path):
    plain, heavy = clone(ESTIMATORS[name]), clone(ESTIMATORS[name])
    heavy.set_params(class_weight={"L1": 30.0})
    assert clone(heavy).get_params()["class_weight"] == {"L1": 30.0}
    data = SPARSE if isinstance(plain, LinearCRF) else X
    assert share(heavy.fit(data, Y), data, "L1") > share(plain.fit(data, Y), data, "L1") + 0.1
    heavy.save(tmp_path / "m.crfx")
    assert load(tmp_path / "m.crfx").class_weight == {"L1": 30.0}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_equal_class_weights_equal_sample_weights(name):
    """Sums are equal; steps of perceptrons and trees do not depend on the kind of weight."""
    crf, weights = ESTIMATORS[name], dict.fromkeys(["L0", "L1", "L2"], 2.0)
    weighted = clone(crf).set_params(class_weight=weights).fit(X, Y)
    expected = clone(crf).fit(X, Y, sample_weight=np.full(len(X), 2.0))
    objectives = [each.history_["objective"][:3] for each in (weighted, expected)]
    np.testing.assert_allclose(*objectives, rtol=1e-4)


def test_class_weight_without_edges_equals_logistic_regression():
    crf = LinearCRF(edges=None, l2=0.5, class_weight=HEAVY, tol=1e-9, features="all")
    crf.fit(X, Y)
    peer = LogisticRegression(C=1.0, class_weight=HEAVY, fit_intercept=False, tol=1e-8)
    peer.fit(np.concatenate(X), np.concatenate(Y))
    np.testing.assert_allclose(crf.coef_, peer.coef_, rtol=0, atol=2e-3)
    plain = LinearCRF(edges=None, l2=0.5, tol=1e-9, features="all").fit(X, Y)
    assert np.abs(crf.coef_ - plain.coef_).max() > 0.1


def test_balanced_class_weight_agrees_with_scikit_learn():
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
    partly = [[None if k == 0 else label for k, label in enumerate(tags)] for tags in Y]
    LinearCRF(class_weight="balanced").fit(X, partly)


def test_class_weight_saves_numeric_labels(tmp_path):
    y = [[int(label[1]) for label in labels] for labels in Y]
    LinearCRF(class_weight={np.int64(1): 2, 0: 0.5}, max_iter=3).fit(X, y).save(tmp_path / "m")
    assert load(tmp_path / "m").class_weight == {1: 2.0, 0: 0.5}


def test_warm_start_recomputes_class_weight():
    old = HiddenUnitCRF(sweeps=3, **HIDDEN).fit(X, Y)
    more = HiddenUnitCRF(sweeps=3, class_weight=HEAVY, **HIDDEN).fit(X, Y, init_model=old)
    assert len(more.history_["objective"]) == 3  # another goal: counted anew


def test_eval_set_loss_uses_class_weight():
    crf = GBCRF(3, class_weight=HEAVY, **SEED).fit(X, Y, eval_set=(X, Y))
    total = np.array(crf.history_["eval_metric"]) * sum(map(len, Y))
    penalty = np.array(crf.history_["objective"]) - total
    assert (penalty > -1e-3).all()
    assert (penalty < 0.1 * total).all()


def test_class_weight_ignores_labels_of_zero_weight_instances():
    """Only instances of weight 0 have the label, or no label is known."""
    y = [["L0"] * len(labels) for labels in Y[:-1]] + [["L1"] * len(Y[-1])]
    unknown = [[None] * len(labels) for labels in Y[:-1]] + y[-1:]
    weights = np.append(np.ones(len(X) - 1), 0)
    for class_weight, labels, message in (
        ({"L0": 0}, y, "class_weight is 0 for every label of y that counts"),
        ("balanced", unknown, "class_weight is given, but y has no known label"),
        ({"L1": 2.0}, unknown, "class_weight is given, but y has no known label"),
        ({"L0": True}, y, "class_weight of 'L0' is True: it must be 0 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            LinearCRF(class_weight=class_weight).fit(X, labels, sample_weight=weights)


class OwnObjective:
    """An objective of the user, which does not say that it weighs labels."""

    name, uses_loss, curvatures = "own", False, None

    def bind(self, truth, loss, n_jobs):
        raise AssertionError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "kl"}, "class_weight is given, but objective 'kl' is no sum"),
        ({"objective": "loss_scaled"}, "class_weight is given, but objective 'loss_scaled'"),
        ({"objective": "expected_loss", "task_loss": "zero_one"}, "with task_loss 'zero_one'"),
        ({"objective": OwnObjective()}, "class_weight is given, but objective 'own'"),
    ],
)
def test_class_weight_rejects_unsupported_objectives(settings, message):
    for make in (GBCRF, HiddenUnitCRF):
        with pytest.raises(ValueError, match=message):
            make(class_weight="balanced", **settings).fit(X, Y)


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
