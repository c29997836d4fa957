"""RankingCRF: it learns orders, by every objective, from every kind of features."""

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone

from crfx import RankingCRF
from crfx.ndcg import ndcg
from crfx.objectives.ranking import OBJECTIVES

SCORERS = ("linear", "trees")
FEW = {
    "linear": {"sweeps": 8},
    "trees": {"n_estimators": 20, "learning_rate": 0.3, "min_child_weight": 0.5},
}
NEAR = {"rtol": 1e-4, "atol": 1e-5}
"""Scores of linear functions are float32, and sums of trees' gradients may differ in the last
digit."""


def make(scorer, **options):
    return RankingCRF(scorer, **{**FEW[scorer], "random_state": 0, "n_jobs": 1, **options})


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("scorer", SCORERS)
def test_orders_are_learned(make_queries, scorer, objective):
    X, relevance, group = make_queries()
    X_new, relevance_new, group_new = make_queries(1)
    crf = make(scorer, objective=objective).fit(X, relevance, group=group)
    random = ndcg(relevance_new, np.random.default_rng(0).random(len(X_new)), group_new)
    assert random < 0.75
    assert crf.score(X_new, relevance_new, group_new) > 0.9
    assert crf.history_["objective"][-1] < crf.history_["objective"][0]
    assert crf.n_rounds_ == len(crf.history_["objective"]) == crf.best_iteration_ + 1


@pytest.mark.parametrize("scorer", SCORERS)
def test_predict_rank_and_score_tell_the_same(make_queries, scorer):
    X, relevance, group = make_queries()
    crf = make(scorer).fit(X, relevance, group=group)
    scores = crf.predict(X)
    assert scores.shape == (len(X),)
    orders = crf.rank(X, group)
    assert [len(order) for order in orders] == group.tolist()
    begin = 0
    for order, size in zip(orders, group, strict=True):
        assert sorted(order) == list(range(size))
        assert (np.diff(scores[begin : begin + size][order]) <= 0).all()
        begin += size
    assert crf.score(X, relevance, group, cut=3) == ndcg(relevance, scores, group, cut=3)


def test_the_gain_is_that_of_the_score(make_queries):
    X, relevance, group = make_queries()
    crf = make("linear", gain="linear").fit(X, relevance, group=group)
    expected = ndcg(relevance, crf.predict(X), group, gain="linear")
    assert crf.score(X, relevance, group) == expected
    assert crf.score(X, relevance, group) != ndcg(relevance, crf.predict(X), group)


@pytest.mark.parametrize("scorer", SCORERS)
def test_sparse_and_data_frames(make_queries, scorer):
    X, relevance, group = make_queries()
    dense = make(scorer).fit(X, relevance, group=group)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    named = make(scorer).fit(frame, relevance, group=group)
    np.testing.assert_allclose(named.predict(frame), dense.predict(X), **NEAR)
    assert named.feature_names_in_.tolist() == list("abcd")
    csr = sparse.csr_matrix(X)  # without zeros: nothing is missing
    found = make(scorer).fit(csr, relevance, group=group)
    np.testing.assert_allclose(found.predict(csr), dense.predict(X), **NEAR)
    assert found.n_features_in_ == 4
    with pytest.raises(AttributeError, match="no feature names"):
        _ = found.feature_names_in_


def test_categories_are_for_trees(make_queries):
    X, relevance, group = make_queries()
    frame = pandas.DataFrame(X).rename(columns=str)
    frame["kind"] = pandas.Categorical(np.where(relevance > 0, "good", "bad"))
    crf = make("trees").fit(frame, relevance, group=group)
    assert crf.score(frame, relevance, group) > 0.95
    with pytest.raises(ValueError, match="linear functions need numbers"):
        make("linear").fit(frame, relevance, group=group)


def test_missing_values(make_queries):
    X, relevance, group = make_queries()
    X[::3, 3] = np.nan
    for scorer in SCORERS:
        crf = make(scorer).fit(X, relevance, group=group)
        assert np.isfinite(crf.predict(X)).all()
    zeros = np.nan_to_num(X)
    np.testing.assert_allclose(
        make("linear").fit(X, relevance, group=group).predict(X),
        make("linear").fit(zeros, relevance, group=group).predict(zeros),
        **NEAR,
    )


@pytest.mark.parametrize("scorer", SCORERS)
def test_queries_without_an_order_are_skipped_and_counted(make_queries, scorer):
    X, relevance, group = make_queries()
    more_X = np.concatenate([X[:1], X, X[:4]])
    more_relevance = np.concatenate([[2.0], relevance, [1.0, 1.0, 1.0, 1.0]])
    more_group = [1, *group, 4]
    few = make(scorer).fit(X, relevance, group=group)
    more = make(scorer).fit(more_X, more_relevance, group=more_group)
    begin, one_level = 0, 0
    for size in group:
        one_level += len(set(relevance[begin : begin + size])) == 1
        begin += size
    assert few.n_skipped_ == one_level
    assert more.n_skipped_ == one_level + 2
    np.testing.assert_array_equal(more.predict(X), few.predict(X))
    # They count where models are judged.
    by_hand = ndcg(more_relevance, more.predict(more_X), more_group)
    assert more.score(more_X, more_relevance, more_group) == by_hand
    assert by_hand != more.score(X, relevance, group)


@pytest.mark.parametrize("scorer", SCORERS)
def test_a_weight_of_two_is_a_query_twice(make_queries, scorer):
    """To the bit it cannot be: subsets are drawn for each. Small queries have one subset."""
    X, relevance, group = make_queries(n_queries=6)
    options = {"subset_size": 14, "step": 0.1} if scorer == "linear" else {"subset_size": 14}
    if scorer == "linear":
        options |= {"batch_size": 20, "sweeps": 1}  # one step, of all queries
    weights = np.array([2, 1, 1, 1, 1, 2])
    first, last = group[0], group[-1]
    twice = make(scorer, **options).fit(
        np.concatenate([X, X[:first], X[-last:]]),
        np.concatenate([relevance, relevance[:first], relevance[-last:]]),
        group=[*group, first, last],
    )
    weighted = make(scorer, **options).fit(X, relevance, group=group, sample_weight=weights)
    np.testing.assert_allclose(weighted.predict(X), twice.predict(X), rtol=2e-3, atol=1e-3)


def test_a_query_of_weight_0_is_not_looked_at(make_queries):
    X, relevance, group = make_queries()
    weights = np.ones(len(group))
    weights[0] = 0
    some = make("trees").fit(X, relevance, group=group, sample_weight=weights)
    rest = make("trees").fit(X[group[0] :], relevance[group[0] :], group=group[1:])
    np.testing.assert_array_equal(some.predict(X), rest.predict(X))
    assert some.n_skipped_ == make("trees").fit(X, relevance, group=group).n_skipped_


@pytest.mark.parametrize("scorer", SCORERS)
def test_the_same_seed_gives_the_same_model(make_queries, scorer):
    X, relevance, group = make_queries()
    options = {"subset_size": 4} | ({} if scorer == "linear" else {"subsample": 0.6})
    first, again, other = (
        make(scorer, **options, random_state=seed).fit(X, relevance, group=group).predict(X)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_large_subsets_are_sampled_and_say_so(make_queries):
    X, relevance, group = make_queries(n_queries=8)
    group = np.array([group.sum() // 2, group.sum() - group.sum() // 2])
    for scorer in SCORERS:
        crf = make(scorer, subset_size=20, n_samples=100).fit(X, relevance, group=group)
        assert len(crf.history_["effective_samples"]) == crf.n_rounds_
        assert all(1 <= entry <= 100 for entry in crf.history_["effective_samples"])
        assert crf.score(X, relevance, group) > 0.8
        exact = make(scorer, subset_size=8).fit(X, relevance, group=group)
        assert "effective_samples" not in exact.history_


def test_the_best_round_is_restored(make_queries):
    X, relevance, group = make_queries()
    dev = make_queries(1)
    for scorer in SCORERS:
        crf = make(scorer, early_stopping_rounds=3, eval_metric="ndcg@3")
        crf.fit(X, relevance, group=group, eval_set=dev)
        metric = crf.history_["eval_metric"]
        assert crf.best_iteration_ == int(np.argmax(metric))
        assert crf.n_rounds_ == crf.best_iteration_ + 1
        assert crf.score(*dev, cut=3) == pytest.approx(max(metric), abs=1e-3)
        as_dict = dict(zip(("X", "relevance", "group"), dev, strict=True))
        again = clone(crf).fit(X, relevance, group=group, eval_set=as_dict)
        assert again.history_["eval_metric"] == metric


def test_metrics(make_queries):
    X, relevance, group = make_queries()
    dev = make_queries(1)
    for metric, expected in {
        "ndcg": lambda s: ndcg(dev[1], s, dev[2]),
        "ndcg@2": lambda s: ndcg(dev[1], s, dev[2], cut=2),
        "letor-ndcg@2": lambda s: ndcg(dev[1], s, dev[2], cut=2, definition="letor"),
    }.items():
        crf = make("linear", eval_metric=metric).fit(X, relevance, group=group, eval_set=dev)
        assert crf.history_["eval_metric"][-1] == expected(crf.predict(dev[0]))
    crf = make("linear", eval_metric=lambda r, s, g: float(len(g)))
    crf.fit(X, relevance, group=group, eval_set=dev)
    assert crf.history_["eval_metric"] == [30.0] * 8


def test_scikit_learn_manners(make_queries):
    X, relevance, group = make_queries()
    crf = make("trees", max_depth=2, tree_params={"gamma": 0.1})
    before = crf.get_params()
    assert clone(crf).get_params() == before
    crf.fit(X, relevance, group=group)
    assert crf.get_params() == before
    assert "RankingCRF" in repr(crf)
    crf.set_params(max_depth=3)
    assert crf.max_depth == 3


def test_callbacks_are_called_and_may_stop(make_queries):
    X, relevance, group = make_queries()
    for scorer in SCORERS:
        seen = []

        def stop_at_three(progress, seen=seen):
            seen.append(progress.n_rounds)
            return progress.n_rounds == 3

        crf = make(scorer).fit(X, relevance, group=group, callbacks=[stop_at_three])
        assert seen == [1, 2, 3]
        assert crf.n_rounds_ == 3


def test_coefficients(make_queries):
    X, relevance, group = make_queries()
    crf = make("linear").fit(X, relevance, group=group)
    np.testing.assert_allclose(crf.predict(X), X @ crf.coef_, **NEAR)
    assert crf.coef_[0] > 0 > crf.coef_[1]
    with pytest.raises(AttributeError, match="this model has trees"):
        _ = make("trees").fit(X, relevance, group=group).coef_


def test_a_penalty_holds_weights_down(make_queries):
    X, relevance, group = make_queries()
    free, held = (
        make("linear", l2=l2, sweeps=20).fit(X, relevance, group=group).coef_ for l2 in (0.0, 10.0)
    )
    assert np.abs(held).max() < 0.8 * np.abs(free).max()


@pytest.mark.parametrize("objective", ["kl", "likelihood", "loss_scaled", "expected_loss"])
def test_trees_learn_from_few_queries(make_queries, objective):
    """The usual weight of a leaf is made for hundreds."""
    X, relevance, group = make_queries(n_queries=30)
    crf = RankingCRF("trees", objective=objective, random_state=0).fit(X, relevance, group=group)
    assert crf.score(X, relevance, group) > 0.9


def test_steps_out_of_range_are_halved(make_queries):
    X, relevance, group = make_queries(n_queries=60)
    crf = RankingCRF(
        "trees", objective="loss_scaled", min_child_weight=0, reg_lambda=0, learning_rate=1.0,
        n_estimators=30, random_state=0,
    ).fit(X, relevance, group=group)  # fmt: skip
    assert np.isfinite(crf.predict(X)).all()


@pytest.mark.parametrize("scorer", ["linear", "trees"])
def test_a_model_can_be_the_base_after_its_scorer_argument_was_changed(make_queries, scorer):
    X, relevance, group = make_queries()
    crf = RankingCRF("linear", sweeps=2, random_state=0).fit(X, relevance, group=group)
    if scorer == "trees":
        crf.set_params(scorer="trees", sweeps=None, n_estimators=2)
    model = crf.fit(X, relevance, group=group, init_model=crf).model_
    assert model.scorer == scorer
    assert (model.base is None) == (scorer == "linear")


def test_a_training_that_stops_early_still_warns_that_no_tree_split(make_queries):
    X, relevance, group = make_queries()
    crf = RankingCRF("trees", n_estimators=5, min_child_weight=1e9, random_state=0)
    with pytest.warns(RuntimeWarning, match="no tree found a split"):
        crf.fit(X, relevance, group=group, callbacks=[lambda progress: True])
    assert crf.n_rounds_ == 1
