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


# Steps are found by trials -------------------------------------------------------------------------


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
