"""RankingCRF trained further: as one run, from memory, pickle and file; and models underneath."""

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


def from_memory(crf, path):
    return crf


def from_pickle(crf, path):
    return pickle.loads(pickle.dumps(crf))


def from_file(crf, path):
    crf.save(path)
    return path


@pytest.mark.parametrize("kept", [from_memory, from_pickle, from_file])
@pytest.mark.parametrize(
    ("scorer", "options"),
    [
        ("linear", {}),
        ("linear", {"l2": 0.5, "batch_size": 3, "burn_in": 2, "step": 0.1}),
        ("linear", {"objective": "expected_loss", "n_subsets": 2}),
        ("trees", {}),
        ("trees", {"subsample": 0.6, "colsample_bynode": 0.5, "learning_rate": 0.4}),
        ("trees", {"objective": "expected_loss", "n_subsets": 1}),
    ],
)
def test_two_runs_are_one_longer_run(make_queries, tmp_path, scorer, options, kept):
    X, relevance, group = make_queries()
    whole = make(scorer, 7, **options).fit(X, relevance, group=group)
    first = make(scorer, 3, **options).fit(X, relevance, group=group)
    before = first.predict(X)
    start = kept(first, tmp_path / "first.crfx")
    second = make(scorer, 4, **options).fit(X, relevance, group=group, init_model=start)
    np.testing.assert_array_equal(second.predict(X), whole.predict(X))
    assert second.history_["objective"] == whole.history_["objective"]
    assert second.n_rounds_ == 7
    np.testing.assert_array_equal(first.predict(X), before)
    assert first.n_rounds_ == 3


@pytest.mark.parametrize("scorer", ROUNDS)
def test_early_stopping_goes_on_counting(make_queries, tmp_path, scorer):
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


@pytest.mark.parametrize("scorer", ROUNDS)
def test_another_eval_set_is_not_compared_with(make_queries, scorer):
    X, relevance, group = make_queries()
    first = make(scorer, 3).fit(X, relevance, group=group, eval_set=make_queries(1))
    second = make(scorer, 3, early_stopping_rounds=5)
    second.fit(X, relevance, group=group, eval_set=make_queries(2), init_model=first)
    metric = second.history_["eval_metric"]
    assert np.isnan(metric[:3]).all()
    assert not np.isnan(metric[3:]).any()


def test_a_checkpoint_goes_on(make_queries, tmp_path):
    X, relevance, group = make_queries()
    for scorer in ROUNDS:
        path = tmp_path / f"{scorer}.crfx"
        whole = make(scorer, 6).fit(X, relevance, group=group, callbacks=[Checkpoint(path, 4)])
        assert load(path).n_rounds_ == 4
        rest = make(scorer, 2).fit(X, relevance, group=group, init_model=path)
        np.testing.assert_array_equal(rest.predict(X), whole.predict(X))


def test_trees_on_a_linear_model_and_back(make_queries, tmp_path):
    X, relevance, group = make_queries()
    linear = make("linear", 5).fit(X, relevance, group=group)
    trees = make("trees", 5).fit(X, relevance, group=group, init_model=linear)
    own = trees.model_.function.scores(X, len(X))[:, 0]
    np.testing.assert_allclose(trees.predict(X), own + linear.predict(X), atol=ROUNDING)
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


@pytest.mark.parametrize("scorer", ROUNDS)
def test_an_interrupted_run_keeps_what_it_has(make_queries, scorer):
    X, relevance, group = make_queries()

    def interrupt(progress):
        if progress.n_rounds == 3:
            raise KeyboardInterrupt

    crf = make(scorer, 8)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, relevance, group=group, callbacks=[interrupt])
    assert crf.n_rounds_ == 3
    three = make(scorer, 3).fit(X, relevance, group=group)
    np.testing.assert_array_equal(crf.predict(X), three.predict(X))
    rest = make(scorer, 5).fit(X, relevance, group=group, init_model=crf)
    whole = make(scorer, 8).fit(X, relevance, group=group)
    np.testing.assert_array_equal(rest.predict(X), whole.predict(X))


@pytest.mark.parametrize("scorer", ROUNDS)
def test_a_round_that_is_cut_short_leaves_nothing_behind(make_queries, scorer):
    X, relevance, group = make_queries()
    seen = []

    def metric(relevance, scores, group):
        seen.append(len(seen))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return 0.5

    crf = make(scorer, 8, eval_metric=metric)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, relevance, group=group, eval_set=make_queries(1))
    assert crf.n_rounds_ == len(crf.history_["objective"]) == 2
    two = make(scorer, 2).fit(X, relevance, group=group)
    np.testing.assert_array_equal(crf.predict(X), two.predict(X))
    rest = make(scorer, 6).fit(X, relevance, group=group, init_model=crf)
    whole = make(scorer, 8).fit(X, relevance, group=group)
    np.testing.assert_array_equal(rest.predict(X), whole.predict(X))


def test_steps_go_on_from_where_they_were(make_queries):
    """None: those of the first run; a number: that one."""
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
def test_a_run_that_fails_at_once_leaves_the_estimator_as_it_was(make_queries, scorer):
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
