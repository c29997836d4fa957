"""``sample_weight`` in every estimator and trainer: 2 is the instance twice, 0 is without it.

Trainers that sweep take all instances in one step here: else the order of instances, which is
drawn for so many, would be another one.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, TreeCRF
from crfx.testing import make_task

X, Y = make_task(n_instances=24)
X = [np.round(x) for x in X]  # few values: quantiles of many are not those of weights
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 1, 0, x)) for x in X]
SEED = {"random_state": 0, "n_jobs": 1}
HIDDEN = {"n_hidden": 4, "dropout": 0.0, "step": 0.01, "sweeps": 5, **SEED}
CLOSE = {"rtol": 1e-3, "atol": 1e-4}
"""Of marginals: sums are formed in another order."""
SWEEPING = ("sgd", "perceptron", "large_margin")

ESTIMATORS = {
    "GBCRF": GBCRF(5, max_depth=3, **SEED),
    "GBCRF, trees": GBCRF(4, max_depth=2, edges="trees", **SEED),
    "GBCRF, linear edges": GBCRF(5, max_depth=3, edges="linear", **SEED),
    "GBCRF, no edges": GBCRF(5, max_depth=3, edges=None, **SEED),
    "GBCRF, first order": GBCRF(5, max_depth=3, curvature=None, **SEED),
    "GBCRF, regressors": GBCRF(3, base_learner=DecisionTreeRegressor(max_depth=2), **SEED),
    "TreeCRF": TreeCRF(5, max_leaves=4, **SEED),
    "TreeCRF, second order": TreeCRF(5, max_leaves=4, curvature="auto", **SEED),
    "L-BFGS": LinearCRF(tol=1e-9, **SEED),
    "OWL-QN": LinearCRF(l1=0.5, tol=1e-9, **SEED),
    "hidden, L-BFGS": HiddenUnitCRF(**{**HIDDEN, "trainer": "lbfgs", "max_iter": 8}),
    **{
        f"linear, {trainer}": LinearCRF(trainer, step=0.01, sweeps=5, **SEED)
        for trainer in SWEEPING
    },
    **{f"hidden, {trainer}": HiddenUnitCRF(trainer=trainer, **HIDDEN) for trainer in SWEEPING},
    "KL": LinearCRF(objective="kl", **SEED),
    "labelwise": GBCRF(3, max_depth=2, objective="labelwise_likelihood", **SEED),
    "loss-scaled": GBCRF(3, max_depth=2, objective="loss_scaled", **SEED),
    "expected loss": TreeCRF(3, max_leaves=3, objective="expected_loss", **SEED),
    "balanced": LinearCRF(class_weight="balanced", tol=1e-9, **SEED),
    "balanced, GBCRF": GBCRF(4, max_depth=3, class_weight="balanced", **SEED),
}


def fitted(crf, X, Y, **fit):
    """All instances in one step, where there are steps."""
    crf = clone(crf)
    if getattr(crf, "trainer", None) in SWEEPING:
        crf.set_params(batch_size=len(X))
    return crf.fit(X, Y, **fit)


def marginals(crf, X, **structure):
    return np.concatenate(crf.predict_marginals(X, **structure))


DATA = {"dense": X, "sparse": SPARSE}
SPARSE_TOO = {"GBCRF", "TreeCRF", "L-BFGS", "linear, sgd", "linear, perceptron", "hidden, sgd"}
TWICE = [(name, "dense") for name in ESTIMATORS] + [(name, "sparse") for name in SPARSE_TOO]


@pytest.mark.parametrize(("name", "kind"), sorted(TWICE))
def test_sample_weight_of_two_equals_two_copies(name, kind):
    crf, data = ESTIMATORS[name], DATA[kind]
    heavy = np.where(np.arange(len(X)) < 8, 2.0, 1.0)
    weighted = fitted(crf, data, Y, sample_weight=heavy)
    twice = fitted(crf, data + data[:8], Y + Y[:8])
    plain = fitted(crf, data, Y)
    np.testing.assert_allclose(marginals(weighted, data), marginals(twice, data), **CLOSE)
    assert np.abs(marginals(weighted, data) - marginals(plain, data)).max() > 1e-3


@pytest.mark.parametrize("name", ESTIMATORS)
def test_sample_weight_of_zero_removes_instance(name):
    """Models are equal to the bit, including bins, weight patterns and the order of instances."""
    crf = ESTIMATORS[name]
    far = [*X, 50 + X[0], X[1] - 50]  # would move any quantile
    labels = [*Y, Y[0][::-1], Y[1][::-1]]
    weights = [1.0] * len(X) + [0.0, 0.0]
    without = fitted(crf, X, Y)
    weighted = clone(crf)
    if getattr(crf, "trainer", None) in SWEEPING:
        weighted.set_params(batch_size=len(X))
    weighted.fit(far, labels, sample_weight=weights)
    np.testing.assert_array_equal(marginals(weighted, X), marginals(without, X))


@pytest.mark.parametrize("kind", ["frame", "sparse", "forest", "types", "stacked"])
def test_sample_weight_of_zero_removes_structure(kind):
    data, structure, labels = X, {}, Y
    if kind == "frame":
        numbers = pd.CategoricalDtype(range(-9, 10))
        frames = [pd.DataFrame(x, columns=list("abcd")) for x in X]
        data = [frame.astype({"d": int}).astype({"d": numbers}) for frame in frames]
    elif kind == "sparse":
        data = SPARSE
    elif kind == "forest":
        structure = {"parents": [np.maximum(np.arange(len(x)) - 2, -1) for x in X]}
    elif kind == "types":
        structure = {"edge_types": [np.arange(len(x)) % 3 for x in X]}
    kept = [k for k in range(len(X)) if k % 4]
    part = {name: [values[k] for k in kept] for name, values in structure.items()}
    without = clone(ESTIMATORS["GBCRF"]).fit([data[k] for k in kept], [Y[k] for k in kept], **part)
    expected = marginals(without, data, **structure)
    fit = {"sample_weight": [float(k % 4 > 0) for k in range(len(X))], **structure}
    if kind == "stacked":
        fit["lengths"] = [len(x) for x in X]
        data, labels = np.concatenate(data), np.concatenate(Y)
    crf = clone(without).fit(data, labels, **fit)
    data = X if kind == "stacked" else data
    np.testing.assert_allclose(marginals(crf, data, **structure), expected, **CLOSE)


def test_observed_pairs_ignore_zero_weight_instances():
    words, tags = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["A", "B"]]
    whole = LinearCRF().fit(words, tags)
    weighted = LinearCRF().fit(words, tags, sample_weight=[1.0, 0.0])
    assert (whole.coef_.nnz, weighted.coef_.nnz) == (4, 2)
    light = LinearCRF(class_weight={"A": 0.0}).fit(words, tags)
    assert light.coef_.nnz == 2


def test_fit_rejects_all_zero_weights():
    """All instances with positions have weight 0; the first has none."""
    filled, labels = [X[0][:0], *X[1:]], [Y[0][:0], *Y[1:]]
    message = "sample_weight is zero for every instance that has pos"
    for crf in (GBCRF(1), TreeCRF(1), LinearCRF(), HiddenUnitCRF(2)):
        with pytest.raises(ValueError, match=message):
            crf.fit(filled, labels, sample_weight=np.arange(len(X)) == 0)
