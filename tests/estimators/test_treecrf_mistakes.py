"""TreeCRF: arguments and inputs that make no sense, and what it says to them."""

import os

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from crfx import TreeCRF
from crfx.testing import make_task

X, Y = make_task()
PARENTS = [np.arange(len(x)) - 1 for x in X]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": 2}, "window is 2: it must be an odd number"),
        ({"window": 0}, "window is 0: it must be an odd number"),
        ({"window": -1}, "window is -1: it must be an odd number"),
        ({"window": 3.0}, "window is 3.0: it must be an odd number, or"),
        ({"window": True}, "window is True"),
        ({"window": None}, "window is None"),
        ({"window": "3"}, "window is '3'"),
        ({"window": "ab"}, "window is 'ab'"),
        ({"window": (1, -1)}, r"window is \(1, -1\)"),
        ({"window": (1, 1.0)}, r"window is \(1, 1.0\)"),
        ({"window": (1, 1, 1)}, r"window is \(1, 1, 1\)"),
        ({"window": (True, 1)}, r"window is \(True, 1\)"),
        ({"max_leaves": 0}, "max_leaves is 0"),
        ({"max_leaves": 2.5}, "max_leaves is 2.5"),
        ({"n_estimators": -1}, "n_estimators is -1"),
        ({"n_estimators": "a"}, "n_estimators is 'a'"),
        ({"pseudo_likelihood_rounds": -1}, "pseudo_likelihood_rounds is -1"),
        ({"pseudo_likelihood_rounds": None}, "pseudo_likelihood_rounds is None"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"learning_rate": 1.5}, "learning_rate is 1.5"),
        ({"learning_rate": np.nan}, "learning_rate is nan"),
        ({"subsample": 0}, "subsample is 0"),
        ({"subsample": "all"}, "subsample is 'all'"),
        ({"influence_trimming": 1}, "influence_trimming is 1: it must be 0 or more and below 1"),
        ({"influence_trimming": -0.1}, "influence_trimming is -0.1"),
        ({"influence_trimming": np.nan}, "influence_trimming is nan"),
        ({"influence_trimming": True}, "influence_trimming is True"),
        ({"reg_lambda": -1.0}, "reg_lambda is -1.0"),
        ({"reg_lambda": np.inf}, "reg_lambda is inf"),
        ({"min_child_weight": -0.5}, "min_child_weight is -0.5"),
        ({"min_child_weight": np.nan}, "min_child_weight is nan"),
        ({"curvature": "newton"}, "curvature is 'newton'"),
        ({"curvature": 0.0}, "curvature is 0.0"),
        ({"order": 0}, "order is 0: it must be a whole number of 1 or more"),
        ({"order": 1.0}, "order is 1.0"),
        ({"order": 30}, "order=30 with 3 labels needs edge tables"),
        ({"start_end": "yes"}, "start_end is 'yes'"),
        ({"decode": "best"}, "decode is 'best'"),
        ({"eval_metric": "f1"}, "eval_metric is 'f1'"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds"),
        ({"early_stopping_rounds": 3}, "early_stopping_rounds needs an eval_set"),
        ({"n_jobs": "all"}, "n_jobs"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"random_state": "x", "subsample": 0.5}, "x"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(arguments, message):
    crf = TreeCRF(**{"n_estimators": 1, **arguments})
    with pytest.raises(ValueError, match=message):
        crf.fit(X, Y)
    assert not hasattr(crf, "classes_")


@pytest.mark.parametrize("window", [1, np.int64(3), (0, 0), [1, 2], (np.int32(1), 0)], ids=str)
def test_windows_that_are_taken(window):
    assert TreeCRF(1, window=window, random_state=0).fit(X, Y).n_rounds_ == 1


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"edge_types": [np.zeros(len(x), int) for x in X]}, "edge_types are given, but TreeCRF"),
        ({"X": [np.full_like(X[0], np.inf), *X[1:]]}, "instance 0, position 0: feature 0"),
        ({"X": [X[0][:, :3], *X[1:]]}, "instance 1: X has 4 features, instance 0 has 3"),
        ({"X": [sparse.csr_matrix(X[0]), *X[1:]]}, "instance 1: X is dense"),
        ({"y": [Y[0][:-1], *Y[1:]]}, "instance 0: y has"),
        ({"y": [[None] * len(own) for own in Y]}, "no known label"),
        ({"sample_weight": np.zeros(len(X))}, "sample_weight is zero for every instance"),
        ({"sample_weight": [1.0]}, "one weight per instance"),
        ({"X": [], "y": []}, "X has no instances"),
        ({"parents": [p + 1 for p in PARENTS]}, "its own parent"),
        ({"init_model": "nothing.crfx"}, "nothing.crfx"),
        ({"eval_set": ([sparse.csr_matrix(X[0])], [Y[0]])}, "X is sparse, but the model was"),
    ],
)
def test_bad_input_is_refused(inputs, message):
    error = OSError if "init_model" in inputs else ValueError
    with pytest.raises(error, match=message):
        TreeCRF(1, window=3).fit(**{"X": X, "y": Y, **inputs})


def test_forests_have_order_one():
    with pytest.raises(ValueError, match="parents are given with order=2"):
        TreeCRF(1, order=2).fit(X, Y, parents=PARENTS)


def test_columns_with_too_many_categories():
    def frames(n):
        names = [f"c{k}" for k in range(n)]
        return [pd.DataFrame({"a": pd.Categorical(names[: len(x)], categories=names)}) for x in X]

    with pytest.raises(ValueError, match="column 'a' has 255 categories: trees take up to 254"):
        TreeCRF(1).fit(frames(255), Y)
    assert TreeCRF(1, window=3).fit(frames(254), Y).n_rounds_ == 1


def test_more_than_the_memory_there_is(monkeypatch):
    """3 arrays of 126 rows and 9 numbers of 4 bytes; two more with curvature."""
    sizes = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 3 * 126 * 9 * 4}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    one = TreeCRF(1, n_jobs=1).fit(X, Y)
    assert one.n_rounds_ == 1
    with pytest.raises(ValueError, match="this machine has"):
        TreeCRF(1, n_jobs=1).fit(X, Y, eval_set=(X, Y))
    with pytest.raises(ValueError, match="this machine has"):
        TreeCRF(1, curvature="mixing", n_jobs=1).fit(X, Y, init_model=one)
    with pytest.raises(ValueError, match=r"126 positions with 3\^2 scores each need"):
        TreeCRF(1, curvature="mixing", n_jobs=1).fit(X, Y)
    with pytest.raises(ValueError, match=r"126 positions with 3\^3 scores each need"):
        TreeCRF(1, order=2, n_jobs=1).fit(X, Y)


def test_bad_input_to_a_fitted_model():
    crf = TreeCRF(1, window=3, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features, but crfx is expecting 4"):
        crf.predict([x[:, :3] for x in X])
    with pytest.raises(ValueError, match="X is sparse, but the model was fitted on dense features"):
        crf.predict([sparse.csr_matrix(x) for x in X])
    with pytest.raises(ValueError, match="trained on chains"):
        crf.predict(X, parents=PARENTS)
    with pytest.raises(ValueError, match="edge_types exactly"):
        crf.predict(X, edge_types=[np.zeros(len(x), int) for x in X])
    with pytest.raises(ValueError, match="kind is 'shap': choose one of 'total_gain'"):
        crf.feature_importance("shap")
