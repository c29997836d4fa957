"""XGBoost and LightGBM as they are called here."""

import sys

import numpy as np
import pytest

from crfx.ndcg import ndcg
from reproduce.rankers import RANKERS, Given

SETTINGS = {
    "XGBoost": {"max_depth": 3, "learning_rate": 0.1, "min_child_weight": 0.1},
    "LightGBM": {"num_leaves": 8, "learning_rate": 0.1, "min_data_in_leaf": 5},
}


@pytest.fixture(params=SETTINGS)
def name(request):
    if request.param == "LightGBM":
        pytest.importorskip("lightgbm", reason="a peer to measure against: crfx[bench]")
    return request.param


def fit(name, train, validation, **settings):
    return RANKERS[name](Given(train, validation, n_jobs=1), **SETTINGS[name], **settings)


def test_it_learns_what_is_there(make_lists, name):
    train, test = make_lists(n_queries=150), make_lists(seed=1)
    fitted = fit(name, train, make_lists(seed=2))
    scores = fitted.scores(test.X)
    assert (scores.shape, scores.dtype) == ((len(test.X),), np.float64)
    reached = ndcg(test.relevance, scores, test.group, cut=5)
    assert reached > ndcg(test.relevance, test.X @ np.ones(4), test.group, cut=5) + 0.02


def test_it_stops_early_and_is_the_same_every_time(make_lists, name):
    train, validation = make_lists(), make_lists(seed=2)
    fitted, again = (
        fit(name, train, validation, n_estimators=200, early_stopping_rounds=5) for _ in range(2)
    )
    assert 1 <= fitted.rounds < 195
    np.testing.assert_array_equal(fitted.scores(train.X), again.scores(train.X))
    few = fit(name, train, validation, n_estimators=3)
    assert few.rounds <= 3


def test_without_lightgbm_it_says_how_to_get_it(make_lists, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r"crfx\[bench\]"):
        RANKERS["LightGBM"](Given(make_lists(), make_lists()))
