"""Warm starts of RankingCRF: from memory, pickle and file, as one run; interruptions; bases."""

import pickle

import numpy as np
import pytest

from crfx import Checkpoint, RankingCRF, load

ROUNDS = {"linear": "sweeps", "trees": "n_estimators"}
ROUNDING = 1e-5
"""Of scores that are summed in another order."""


def make(scorer, n, **options):
    settings = {ROUNDS[scorer]: n, "random_state": 0, "n_jobs": 1, "subset_size": 4}
    leaves = {"min_child_weight": 0.5} if scorer == "trees" else {}
    return RankingCRF(scorer, **{**settings, **leaves, **options})


WAYS = {
    "memory": lambda crf, path: crf,
    "pickle": lambda crf, path: pickle.loads(pickle.dumps(crf)),
    "file": lambda crf, path: crf.save(path) or path,
}


@pytest.mark.parametrize(
    ("scorer", "options", "way"),
    [
        ("linear", {}, "file"),
        ("linear", {"l2": 0.5, "batch_size": 3, "burn_in": 2, "step": 0.1}, "pickle"),
        ("linear", {"objective": "expected_loss", "n_subsets": 2}, "memory"),
        ("trees", {}, "memory"),
        ("trees", {"subsample": 0.6, "colsample_bynode": 0.5, "learning_rate": 0.4}, "file"),
        ("trees", {"objective": "expected_loss", "n_subsets": 1}, "pickle"),
    ],
)
def test_warm_start_equals_one_longer_run(make_queries, tmp_path, scorer, options, way):
    X, relevance, group = make_queries()
    whole = make(scorer, 7, **options).fit(X, relevance, group=group)
    first = make(scorer, 3, **options).fit(X, relevance, group=group)
    before = first.predict(X)
    start = WAYS[way](first, tmp_path / "first.crfx")
    second = make(scorer, 4, **options).fit(X, relevance, group=group, init_model=start)
    np.testing.assert_array_equal(second.predict(X), whole.predict(X))
    assert second.history_["objective"] == whole.history_["objective"]
    assert second.n_rounds_ == 7
    np.testing.assert_array_equal(first.predict(X), before)
    assert first.n_rounds_ == 3


@pytest.mark.parametrize("scorer", ROUNDS)
def test_warm_start_continues_early_stopping(make_queries, tmp_path, scorer):
    X, relevance, group = make_queries()
    dev = make_queries(1)
    options = {"early_stopping_rounds": 4, "eval_metric": "ndcg@3"}
    whole = make(scorer, 30, **options).fit(X, relevance, group=group, eval_set=dev)
    assert whole.n_rounds_ + 4 == len(whole.history_["objective"]) < 30
    first = make(scorer, 2, eval_metric="ndcg@3").fit(X, relevance, group=group, eval_set=dev)
    second = make(scorer, 28, **options)
    second.fit(X, relevance, group=group, eval_set=dev, init_model=first)
    np.testing.assert_array_equal(second.predict(X), whole.predict(X))
    assert second.history_["eval_metric"] == whole.history_["eval_metric"]
    # A run that is over stays over, from its best round.
    third = make(scorer, 5, **options)
    third.fit(X, relevance, group=group, eval_set=dev, init_model=second)
    assert third.n_rounds_ >= second.n_rounds_


def test_warm_start_ignores_metric_of_another_eval_set(make_queries):
    X, relevance, group = make_queries()
    first = make("linear", 3).fit(X, relevance, group=group, eval_set=make_queries(1))
    second = make("linear", 3, early_stopping_rounds=5)
    second.fit(X, relevance, group=group, eval_set=make_queries(2), init_model=first)
    assert np.isnan(second.history_["eval_metric"]).tolist() == [True] * 3 + [False] * 3


def test_checkpoint_is_resumed(make_queries, tmp_path):
    X, relevance, group = make_queries()
    path = tmp_path / "m.crfx"
    whole = make("trees", 6).fit(X, relevance, group=group, callbacks=[Checkpoint(path, 4)])
    assert load(path).n_rounds_ == 4
    rest = make("trees", 2).fit(X, relevance, group=group, init_model=path)
    np.testing.assert_array_equal(rest.predict(X), whole.predict(X))


def test_trees_on_a_linear_model_and_back(make_queries, tmp_path):
    X, relevance, group = make_queries()
    linear = make("linear", 5).fit(X, relevance, group=group)
    trees = make("trees", 5).fit(X, relevance, group=group, init_model=linear)
    added = trees.model_.function.scores(X, len(X))[:, 0]
    np.testing.assert_allclose(trees.predict(X), added + linear.predict(X), atol=ROUNDING)
    assert trees.history_["objective"][-1] < linear.history_["objective"][-1]
    trees.save(tmp_path / "both.crfx")
    again = load(tmp_path / "both.crfx")
    np.testing.assert_array_equal(again.predict(X), trees.predict(X))
    more = make("trees", 2).fit(X, relevance, group=group, init_model=again)
    assert more.model_.base.scorer == "linear"
    assert more.n_rounds_ == 7
    back = make("linear", 2).fit(X, relevance, group=group, init_model=trees)
    assert back.model_.base.base.scorer == "linear"
    assert back.n_rounds_ == 2
    assert back.score(X, relevance, group) > 0.9


@pytest.mark.parametrize("place", ["callback", "metric"])
@pytest.mark.parametrize("scorer", ROUNDS)
def test_interrupted_run_keeps_whole_rounds(make_queries, scorer, place):
    X, relevance, group = make_queries()
    calls = []

    def interrupt(*_):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return 0.5 if place == "metric" else False

    crf, arguments, n_kept = make(scorer, 8), {"callbacks": [interrupt]}, 3
    if place == "metric":  # before the round is settled
        crf, arguments, n_kept = make(scorer, 8, eval_metric=interrupt), {}, 2
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, relevance, group=group, eval_set=make_queries(1), **arguments)
    assert crf.n_rounds_ == len(crf.history_["objective"]) == n_kept
    few = make(scorer, n_kept).fit(X, relevance, group=group)
    np.testing.assert_array_equal(crf.predict(X), few.predict(X))
    rest = make(scorer, 8 - n_kept).fit(X, relevance, group=group, init_model=crf)
    whole = make(scorer, 8).fit(X, relevance, group=group)
    np.testing.assert_array_equal(rest.predict(X), whole.predict(X))


def test_warm_start_keeps_step_by_default(make_queries):
    X, relevance, group = make_queries()
    whole = make("linear", 4, step=0.07).fit(X, relevance, group=group)
    first = make("linear", 2, step=0.07).fit(X, relevance, group=group)
    same, other = (
        make("linear", 2, step=step).fit(X, relevance, group=group, init_model=first).predict(X)
        for step in (None, 0.5)
    )
    np.testing.assert_array_equal(same, whole.predict(X))
    assert not np.array_equal(other, whole.predict(X))


@pytest.mark.parametrize("scorer", ROUNDS)
def test_failed_first_round_changes_nothing(make_queries, scorer):
    X, relevance, group = make_queries()
    crf = make(scorer, 2).fit(X, relevance, group=group)
    before = crf.predict(X)

    def fail(relevance, scores, group):
        raise RuntimeError("broken metric")

    crf.set_params(eval_metric=fail)
    with pytest.raises(RuntimeError, match="broken metric"):
        crf.fit(X, relevance, group=group, eval_set=make_queries(1))
    np.testing.assert_array_equal(crf.predict(X), before)
    fresh = make(scorer, 2, eval_metric=fail)
    with pytest.raises(RuntimeError, match="broken metric"):
        fresh.fit(X, relevance, group=group, eval_set=make_queries(1))
    assert not hasattr(fresh, "model_")
