"""Estimators in scikit-learn's hands, on lists of instances."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from crfx import GBCRF, FeatureInduction, HiddenUnitCRF, LinearCRF, TreeCRF
from crfx.features import windows
from crfx.testing import make_task

X, Y = make_task()
DICTS = [[{"a": float(row[0]), "b": str(int(row[1]))} for row in x] for x in X]
KINDS = [
    LinearCRF(max_iter=20),
    GBCRF(3, max_depth=2, random_state=0, n_jobs=1),
    HiddenUnitCRF(5, sweeps=10, step=0.1, random_state=0, n_jobs=1),
    TreeCRF(3, max_leaves=4, random_state=0, n_jobs=1),
]
GRIDS = {
    "LinearCRF": {"l2": [0.1, 10.0]},
    "GBCRF": {"max_depth": [1, 3]},
    "HiddenUnitCRF": {"n_hidden": [2, 5]},
    "TreeCRF": {"max_leaves": [2, 6]},
}


@pytest.fixture(params=KINDS, ids=lambda kind: type(kind).__name__)
def estimator(request):
    return clone(request.param)


@pytest.mark.parametrize("data", [X, DICTS], ids=["arrays", "dicts"])
def test_a_grid_is_searched(estimator, data):
    search = GridSearchCV(estimator, GRIDS[type(estimator).__name__], cv=3).fit(data, Y)
    assert 0 < search.best_score_ <= 1
    assert search.predict(data)[0].shape == (len(Y[0]),)


def test_folds_are_scored(estimator):
    assert cross_val_score(estimator, X, Y, cv=3).shape == (3,)


def test_it_ends_a_pipeline(estimator):
    wider = FunctionTransformer(windows, kw_args={"left": 1, "right": 1, "outside": 0.0})
    pipeline = make_pipeline(wider, estimator).fit(X, Y)
    assert pipeline.score(X, Y) > 0.5
    assert pipeline[-1].n_features_in_ == 12


@pytest.mark.parametrize("data", [X, DICTS], ids=["arrays", "dicts"])
def test_a_fitted_one_is_pickled(estimator, data):
    estimator.fit(data, Y)
    again = pickle.loads(pickle.dumps(estimator))
    for one, other in zip(
        estimator.predict_marginals(data), again.predict_marginals(data), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "crf",
    [
        LinearCRF(max_iter=3),
        LinearCRF(max_iter=3, l1=0.1),
        HiddenUnitCRF(3, trainer="lbfgs", max_iter=3, random_state=0, n_jobs=1),
    ],
)
def test_training_that_is_cut_short_says_so(crf):
    with pytest.warns(ConvergenceWarning, match="L-BFGS stopped at max_iter=3") as caught:
        clone(crf).fit(X, Y)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clone(crf).set_params(max_iter=1000).fit(X, Y).n_iter_ < 1000


def test_rounds_between_which_features_are_added_are_short_on_purpose():
    induction = FeatureInduction(rounds=2, per_round=4, iterations=2, min_count=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearCRF(feature_induction=induction).fit(DICTS, Y)
