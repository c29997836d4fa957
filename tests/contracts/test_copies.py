"""Estimators of every kind survive pickle, joblib and copies, fitted or not, with their answers."""

import copy
import pickle
import runpy
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

KINDS = runpy.run_path(str(Path(__file__).parents[1] / "saved_models" / "kinds.py"))["KINDS"]


def by_joblib(crf, folder):
    joblib.dump(crf, folder / "crf.joblib")
    return joblib.load(folder / "crf.joblib")


WAYS = {
    "pickle": lambda crf, folder: pickle.loads(pickle.dumps(crf)),
    "joblib": by_joblib,
    "deepcopy": lambda crf, folder: copy.deepcopy(crf),
}


def answers(kind, crf):
    X, _, more = kind.data(1)
    if kind.ranks:
        return [crf.predict(X)]
    return crf.predict_marginals(X, **more)


@pytest.mark.parametrize("name", KINDS)
def test_copies_answer_alike(name, tmp_path):
    crf = KINDS[name].fitted()
    wanted = answers(KINDS[name], crf)
    for way in WAYS.values():
        for one, other in zip(wanted, answers(KINDS[name], way(crf, tmp_path)), strict=True):
            np.testing.assert_array_equal(one, other)
    assert crf._repr_html_()
    check_is_fitted(crf)


@pytest.mark.parametrize("name", KINDS)
def test_unfitted_ones_stay_so(name, tmp_path):
    crf = KINDS[name].make()
    for again in (*(way(crf, tmp_path) for way in WAYS.values()), clone(crf)):
        assert repr(again) == repr(crf)
        with pytest.raises(NotFittedError):
            check_is_fitted(again)
        with pytest.raises(NotFittedError, match="is not fitted: call fit first"):
            answers(KINDS[name], again)


def test_a_copy_that_differs_is_seen():
    kind = KINDS["linear"]
    one, other = kind.fitted(), kind.fitted(max_iter=1)
    assert not np.array_equal(answers(kind, one)[0], answers(kind, other)[0])
