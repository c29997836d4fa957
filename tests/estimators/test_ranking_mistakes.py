"""RankingCRF says what is wrong, where, and what to do."""

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from crfx import LinearCRF, RankingCRF

X = np.arange(12.0).reshape(6, 2)
RELEVANCE = [0, 1, 2, 0, 1, 0]
GROUP = [4, 2]


def refused(message):
    return pytest.raises(ValueError, match=re.escape(message))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scorer": "forest"}, "scorer is 'forest': choose one of 'linear', 'trees'"),
        ({"objective": "hinge"}, "objective is 'hinge': choose one of 'kl'"),
        ({"gain": "square"}, "gain is 'square': choose one of 'exponential', 'linear'"),
        ({"temperature": 0}, "temperature is 0: it must be above 0"),
        ({"temperature": -1.0}, "temperature is -1.0: it must be above 0"),
        ({"temperature": "hot"}, "temperature is 'hot': it must be a number"),
        ({"cut": 0}, "cut is 0: it must be a whole number of 1 or more"),
        ({"subset_size": 1}, "subset_size is 1: it must be a whole number of 2 or more"),
        ({"subset_size": 500}, "subset_size is 500: it must be at most 160"),
        ({"n_subsets": 0}, "n_subsets is 0: it must be a whole number of 1 or more"),
        ({"n_samples": 10}, "n_samples is 10, but nothing is sampled"),
        ({"eval_metric": "map"}, "eval_metric is 'map': choose 'ndcg'"),
        ({"eval_metric": "ndcg@0"}, "eval_metric is 'ndcg@0': choose 'ndcg'"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds is 0"),
        ({"early_stopping_rounds": 3}, "early_stopping_rounds needs an eval_set"),
        ({"sweeps": -1}, "sweeps is -1: it must be a whole number of 0 or more"),
        ({"step": 0.0}, "step is 0.0: it must be above 0, or None"),
        ({"l2": -1.0}, "l2 is -1.0: it must be 0 or more"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"scorer": "trees", "learning_rate": 2.0}, "learning_rate is 2.0: it must lie in (0, 1]"),
        ({"scorer": "trees", "subsample": 0.0}, "subsample is 0.0: it must lie in (0, 1]"),
        ({"scorer": "trees", "n_estimators": 1.5}, "n_estimators is 1.5"),
        ({"scorer": "trees", "tree_params": {"eta": 1}}, "RankingCRF sets these itself"),
        ({"scorer": "trees", "tree_params": 3}, "tree_params is a int: pass a dict, or None"),
        # What has no use is not silently ignored.
        ({"max_depth": 3}, "max_depth is 3, but scorer is 'linear'"),
        ({"learning_rate": 0.1}, "it is an argument of scorer='trees'; leave it None"),
        ({"scorer": "trees", "sweeps": 3}, "sweeps is 3, but scorer is 'trees'"),
        ({"scorer": "trees", "step": 1.0}, "it is an argument of scorer='linear'; leave it None"),
        ({"objective": "likelihood", "temperature": 1.0}, "temperature is 1.0, but objective is"),
        ({"loss_weight": 1.0}, "it is an argument of objective='loss_augmented'; leave it None"),
        (
            {"truths": "sum"},
            "it is an argument of objective='likelihood' or 'loss_augmented'; leave it None",
        ),
        ({"objective": "likelihood", "truths": "all"}, "truths is 'all'"),
        ({"objective": "loss_augmented", "loss_weight": -2.0}, "loss_weight is -2.0"),
        ({"n_jobs": 0}, "n_jobs is 0: pass a number of threads"),
    ],
)
def test_arguments(options, message):
    crf = RankingCRF(**options)
    with refused(message):
        crf.fit(X, RELEVANCE, group=GROUP)
    assert not hasattr(crf, "model_")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group": None}, "group is missing: pass the number of documents of each query"),
        ({"group": [4, 3]}, "group adds up to 7 documents, but X has 6"),
        ({"group": [6, 0]}, "group[1] is 0: a query has 1 document or more"),
        ({"group": [4.0, 2.0]}, "group must list whole numbers"),
        ({"group": [[4, 2]]}, "group must list whole numbers"),
        ({"relevance": [0, 1, 2, 0, -1, 0]}, "query 1, document 0: relevance is -1"),
        ({"relevance": [0, np.nan, 2, 0, 1, 0]}, "query 0, document 1: relevance is nan"),
        ({"relevance": [0, 1, 2]}, "relevance has shape (3,): pass one number per document, 6"),
        ({"relevance": ["good"] * 6}, "relevance is not a list of numbers"),
        ({"relevance": [1] * 6}, "no query has documents of two relevance levels"),
        ({"relevance": [2000, 1, 0, 0, 0, 0]}, "use gain='linear'"),
        ({"X": np.full((6, 2), np.inf)}, "document 0: feature 0 is infinite"),
        ({"X": [X[:4], X[4:]]}, "group is given, but X is a list of queries"),
        ({"X": X[:, :0]}, "X has no features"),
        ({"sample_weight": [1.0]}, "sample_weight has shape (1,): pass one weight per query, 2"),
        ({"sample_weight": [1.0, -1.0]}, "query 1: its weight -1.0 is not 0 or more"),
        ({"sample_weight": [0.0, 0.0]}, "and a weight above 0: there is no order to learn"),
        ({"eval_set": (X, RELEVANCE)}, "eval_set: group is missing"),
        ({"eval_set": (X, RELEVANCE, [5])}, "eval_set: group adds up to 5 documents"),
        ({"eval_set": (X[:, :1], RELEVANCE, GROUP)}, "eval_set: X has 1 features"),
        ({"eval_set": {"X": X, "y": 1}}, "eval_set has ['X', 'y']: its keys are X, relevance"),
        ({"callbacks": print}, "callbacks is one function: pass a list"),
        ({"init_model": LinearCRF()}, "init_model is a LinearCRF: pass a fitted RankingCRF"),
    ],
)
@pytest.mark.parametrize("scorer", ["linear", "trees"])
def test_documents(scorer, given, message):
    crf = RankingCRF(scorer)
    arguments = {"X": X, "relevance": RELEVANCE, "group": GROUP, **given}
    with refused(message):
        crf.fit(arguments.pop("X"), arguments.pop("relevance"), **arguments)
    assert not hasattr(crf, "model_")


def test_too_many_levels():
    relevance = np.arange(8.0)
    with refused("query 0: it has 8 relevance levels, more than subset_size, 6"):
        RankingCRF().fit(np.zeros((8, 1)), relevance, group=[8])


def test_an_unfitted_model():
    crf = RankingCRF()
    for ask in (
        lambda: crf.predict(X),
        lambda: crf.rank(X, GROUP),
        lambda: crf.score(X, RELEVANCE, GROUP),
        lambda: crf.save("nowhere.crfx"),
        lambda: RankingCRF().fit(X, RELEVANCE, group=GROUP, init_model=crf),
    ):
        with pytest.raises(NotFittedError, match="this RankingCRF is not fitted: call fit first"):
            ask()


def test_other_features_than_in_training():
    crf = RankingCRF(sweeps=1, random_state=0).fit(X, RELEVANCE, group=GROUP)
    with refused("X has 3 features, but crfx is expecting 2"):
        crf.predict(np.zeros((2, 3)))
    with refused("group adds up to 5 documents, but X has 6"):
        crf.rank(X, [5])
    with refused("X has 3 features, but crfx is expecting 2"):
        RankingCRF().fit(np.zeros((6, 3)), RELEVANCE, group=GROUP, init_model=crf)


def test_a_step_that_is_too_large():
    with refused("step is 1e+308: weights grew beyond all measure; take a smaller one"):
        RankingCRF(step=1e308).fit(1e30 * X, RELEVANCE, group=GROUP)


def test_a_metric_that_gives_nan():
    crf = RankingCRF(eval_metric=lambda *given: float("nan"), random_state=0)
    with refused("eval_metric gave NaN on the eval_set"):
        crf.fit(X, RELEVANCE, group=GROUP, eval_set=(X, RELEVANCE, GROUP))


def test_more_mistakes_in_arguments():
    with refused('truths is "sum" and subset_size is 30'):
        RankingCRF(objective="likelihood", truths="sum", subset_size=30).fit(
            X, RELEVANCE, group=GROUP
        )
    for name, value in (("colsample_bynode", 2.0), ("max_leaves", -1), ("max_depth", 1.5)):
        with refused(f"{name} is {value}"):
            RankingCRF("trees", **{name: value}).fit(X, RELEVANCE, group=GROUP)


def test_trees_without_a_split_are_told():
    with pytest.warns(RuntimeWarning, match="no tree found a split"):
        RankingCRF("trees", n_estimators=2, min_child_weight=1e6).fit(X, RELEVANCE, group=GROUP)


def test_one_query_is_explained_at_a_time():
    crf = RankingCRF(random_state=0).fit(X, RELEVANCE, group=GROUP)
    with refused("X_q is a list of 2 queries: explain one at a time, X[i]"):
        crf.explain([X[:4], X[4:]])
    assert len(crf.explain([X[:4]]).positions) == 4


def test_queries_as_plain_lists():
    queries = [X[:4].tolist(), X[4:].tolist()]
    with refused("pass a list of arrays, [np.array(query) for query in X]"):
        RankingCRF().fit(queries, [RELEVANCE[:4], RELEVANCE[4:]])
    RankingCRF().fit(list(map(np.array, queries)), [RELEVANCE[:4], RELEVANCE[4:]])


def test_features_are_read_once_to_be_judged(monkeypatch):
    crf = RankingCRF(sweeps=1).fit(X, RELEVANCE, group=GROUP)
    reads = []
    matched = type(crf.columns_).matched

    def counted(*given, **how):
        reads.append(1)
        return matched(*given, **how)

    monkeypatch.setattr(type(crf.columns_), "matched", counted)
    crf.score(X, RELEVANCE, GROUP)
    assert len(reads) == 1
