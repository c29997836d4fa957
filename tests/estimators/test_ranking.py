"""RankingCRF: objectives, kinds of features, weights, metrics, arguments and model files."""

import shutil

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone

from crfx import RankingCRF, load
from crfx.ndcg import ndcg
from crfx.objectives.ranking import OBJECTIVES

SCORERS = ("linear", "trees")
FEW = {
    "linear": {"sweeps": 8},
    "trees": {"n_estimators": 20, "learning_rate": 0.3, "min_child_weight": 0.5},
}
each_scorer = pytest.mark.parametrize("scorer", SCORERS)
NEAR = {"rtol": 1e-4, "atol": 1e-5}
"""Scores of linear functions are float32, and sums of trees' gradients may differ in the last
digit."""


def make(scorer, **options):
    return RankingCRF(scorer, **{**FEW[scorer], "random_state": 0, "n_jobs": 1, **options})


@pytest.mark.parametrize("objective", OBJECTIVES)
@each_scorer
def test_orders_are_learned(make_queries, scorer, objective):
    X, relevance, group = make_queries()
    X_new, relevance_new, group_new = make_queries(1)
    crf = make(scorer, objective=objective).fit(X, relevance, group=group)
    random = ndcg(relevance_new, np.random.default_rng(0).random(len(X_new)), group_new)
    assert random < 0.75
    assert crf.score(X_new, relevance_new, group_new) > 0.9
    assert crf.history_["objective"][-1] < crf.history_["objective"][0]
    assert crf.n_rounds_ == len(crf.history_["objective"]) == crf.best_iteration_ + 1


@each_scorer
def test_predict_rank_and_score_agree(make_queries, scorer):
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


@each_scorer
def test_sparse_and_data_frames(make_queries, scorer):
    X, relevance, group = make_queries()
    dense = make(scorer).fit(X, relevance, group=group)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    named = make(scorer).fit(frame, relevance, group=group)
    np.testing.assert_allclose(named.predict(frame), dense.predict(X), **NEAR)
    assert named.feature_names_in_.tolist() == list("abcd")
    csr = sparse.csr_matrix(X)  # without zeros: nothing is missing
    crf = make(scorer).fit(csr, relevance, group=group)
    np.testing.assert_allclose(crf.predict(csr), dense.predict(X), **NEAR)
    assert crf.n_features_in_ == 4
    with pytest.raises(AttributeError, match="no feature names"):
        _ = crf.feature_names_in_


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
    trees = make("trees").fit(X, relevance, group=group)
    assert np.isfinite(trees.predict(X)).all()
    zeros = np.nan_to_num(X)
    with_holes, with_zeros = (
        make("linear").fit(features, relevance, group=group) for features in (X, zeros)
    )
    np.testing.assert_allclose(with_holes.predict(X), with_zeros.predict(zeros), **NEAR)


@each_scorer
def test_fit_skips_and_counts_queries_of_one_level(make_queries, scorer):
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


@each_scorer
def test_query_weight_equals_copies(make_queries, scorer):
    """Bits differ, since subsets are drawn for each copy; small queries have a single subset."""
    X, relevance, group = make_queries(n_queries=6)
    options = {"subset_size": 14}
    if scorer == "linear":
        options |= {"step": 0.1, "batch_size": 20, "sweeps": 1}  # one step, of all queries
    copies = np.array([2, 0, 1, 1, 1, 2])
    rows = np.split(np.arange(len(X)), np.cumsum(group)[:-1])
    picked = np.concatenate([rows[k] for k in np.repeat(np.arange(6), copies)])
    repeated = make(scorer, **options)
    repeated.fit(X[picked], relevance[picked], group=np.repeat(group, copies))
    weighted = make(scorer, **options).fit(X, relevance, group=group, sample_weight=copies)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=2e-3, atol=1e-3)
    assert weighted.n_skipped_ == make(scorer).fit(X, relevance, group=group).n_skipped_


@each_scorer
def test_same_seed_gives_the_same_model(make_queries, scorer):
    X, relevance, group = make_queries()
    options = {"subset_size": 4} | ({} if scorer == "linear" else {"subsample": 0.6})
    first, again, other = (
        make(scorer, **options, random_state=seed).fit(X, relevance, group=group).predict(X)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_large_subsets_are_sampled_and_counted(make_queries):
    X, relevance, group = make_queries(n_queries=8)
    group = np.array([group.sum() // 2, group.sum() - group.sum() // 2])
    for scorer in SCORERS:
        crf = make(scorer, subset_size=20, n_samples=100).fit(X, relevance, group=group)
        assert len(crf.history_["effective_samples"]) == crf.n_rounds_
        assert all(1 <= entry <= 100 for entry in crf.history_["effective_samples"])
        assert crf.score(X, relevance, group) > 0.8
        exact = make(scorer, subset_size=8).fit(X, relevance, group=group)
        assert "effective_samples" not in exact.history_


def test_early_stopping_restores_the_best_round(make_queries):
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
    crf = make("linear", gain="linear").fit(X, relevance, group=group)
    scores = crf.predict(X)
    assert crf.score(X, relevance, group) == ndcg(relevance, scores, group, gain="linear")
    assert crf.score(X, relevance, group) != ndcg(relevance, scores, group)


def test_coefficients_and_penalty(make_queries):
    X, relevance, group = make_queries()
    free, held = (
        make("linear", l2=l2, sweeps=20).fit(X, relevance, group=group) for l2 in (0.0, 10.0)
    )
    np.testing.assert_allclose(free.predict(X), X @ free.coef_, **NEAR)
    assert free.coef_[0] > 0 > free.coef_[1]
    assert np.abs(held.coef_).max() < 0.8 * np.abs(free.coef_).max()
    with pytest.raises(AttributeError, match="this model has trees"):
        _ = make("trees").fit(X, relevance, group=group).coef_


def test_trees_learn_from_few_queries(make_queries):
    """The usual weight of a leaf is made for hundreds, and lighter with some objectives."""
    X, relevance, group = make_queries(n_queries=30)
    for objective in ("kl", "loss_scaled", "expected_loss"):
        crf = RankingCRF("trees", objective=objective, random_state=0)
        assert crf.fit(X, relevance, group=group).score(X, relevance, group) > 0.9


@each_scorer
def test_warm_start_uses_fitted_scorer(make_queries, scorer):
    X, relevance, group = make_queries()
    crf = RankingCRF("linear", sweeps=2, random_state=0).fit(X, relevance, group=group)
    if scorer == "trees":
        crf.set_params(scorer="trees", sweeps=None, n_estimators=2)
    model = crf.fit(X, relevance, group=group, init_model=crf).model_
    assert model.scorer == scorer
    assert (model.base is None) == (scorer == "linear")


def test_early_stopping_warns_if_no_tree_split(make_queries):
    X, relevance, group = make_queries()
    crf = RankingCRF("trees", n_estimators=5, min_child_weight=1e9, random_state=0)
    with pytest.warns(RuntimeWarning, match="no tree found a split"):
        crf.fit(X, relevance, group=group, callbacks=[lambda progress: True])
    assert crf.n_rounds_ == 1


# Arguments and data: `tests/bad_inputs` has most of what raises.

DOCUMENTS, RELEVANCE, GROUP = np.arange(12.0).reshape(6, 2), [0, 1, 2, 0, 1, 0], [4, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "temperature is 0: it must be above 0"),
        ({"loss_weight": -2.0, "objective": "loss_augmented"}, "loss_weight is -2.0"),
        ({"cut": 0}, "cut is 0: it must be a whole number of 1 or more"),
        ({"subset_size": 1}, "subset_size is 1: it must be a whole number of 2 or more"),
        ({"subset_size": 500}, "subset_size is 500: it must be at most 160"),
        ({"n_subsets": 0}, "n_subsets is 0: it must be a whole number of 1 or more"),
        ({"n_samples": 10}, "n_samples is 10, but nothing is sampled"),
        ({"eval_metric": "ndcg@0"}, "eval_metric is 'ndcg@0': choose 'ndcg'"),
        ({"step": 0.0}, "step is 0.0: it must be above 0, or None"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"scorer": "trees", "tree_params": {"eta": 1}}, "RankingCRF sets these itself"),
        ({"max_depth": 3}, "max_depth is 3, but scorer is 'linear'"),
        ({"scorer": "trees", "step": 1.0}, "argument of scorer='linear'; leave it None"),
        ({"objective": "likelihood", "temperature": 1.0}, "temperature is 1.0, but objective is"),
        ({"loss_weight": 1.0}, "argument of objective='loss_augmented'; leave it None"),
        ({"truths": "sum"}, "argument of objective='likelihood' or 'loss_augmented'; leave it"),
        (
            {"truths": "sum", "objective": "likelihood", "subset_size": 30},
            'truths is "sum" and subset_size is 30',
        ),
        ({"eval_metric": lambda *args: float("nan")}, "eval_metric gave NaN on the eval_set"),
    ],
)
def test_fit_rejects_arguments(options, message):
    crf = RankingCRF(**options)
    eval_set = (DOCUMENTS, RELEVANCE, GROUP)
    with pytest.raises(ValueError, match=message):
        crf.fit(DOCUMENTS, RELEVANCE, group=GROUP, eval_set=eval_set)
    assert not hasattr(crf, "model_")


def test_early_stopping_needs_an_eval_set():
    with pytest.raises(ValueError, match="early_stopping_rounds needs an eval_set"):
        RankingCRF(early_stopping_rounds=3).fit(DOCUMENTS, RELEVANCE, group=GROUP)


def test_fit_raises_if_step_is_too_large():
    with pytest.raises(ValueError, match=r"step is 1e\+308: weights grew .* take a smaller one"):
        RankingCRF(step=1e308).fit(1e30 * DOCUMENTS, RELEVANCE, group=GROUP)


def test_lists_of_queries():
    crf, queries = RankingCRF(random_state=0), [DOCUMENTS[:4], DOCUMENTS[4:]]
    with pytest.raises(ValueError, match="pass a list of arrays"):
        crf.fit([query.tolist() for query in queries], [RELEVANCE[:4], RELEVANCE[4:]])
    crf.fit(queries, [RELEVANCE[:4], RELEVANCE[4:]])
    with pytest.raises(ValueError, match=r"a list of 2 queries: explain one at a time, X\[i\]"):
        crf.explain(queries)
    assert len(crf.explain(queries[:1]).positions) == 4


def test_score_reads_features_once(monkeypatch):
    crf = RankingCRF(sweeps=1).fit(DOCUMENTS, RELEVANCE, group=GROUP)
    reads, matched = [], type(crf.columns_).matched

    def counted(*args, **how):
        reads.append(1)
        return matched(*args, **how)

    monkeypatch.setattr(type(crf.columns_), "matched", counted)
    crf.score(DOCUMENTS, RELEVANCE, GROUP)
    assert len(reads) == 1


# Model files: `tests/contracts` saves and damages files of every kind.


def test_models_without_rounds_are_saved(make_queries, tmp_path):
    X, relevance, group = make_queries()
    for scorer, none in (("linear", {"sweeps": 0}), ("trees", {"n_estimators": 0})):
        crf = make(scorer, **none).fit(X, relevance, group=group)
        assert not crf.predict(X).any()
        crf.save(tmp_path / "model.crfx")
        assert not load(tmp_path / "model.crfx").predict(X).any()


def test_user_metric_is_not_saved(make_queries, tmp_path):
    X, relevance, group = make_queries()
    crf = make("linear", eval_metric=lambda *args: 1.0)
    crf.fit(X, relevance, group=group, eval_set=make_queries(1)).save(tmp_path / "model.crfx")
    loaded = load(tmp_path / "model.crfx")
    assert loaded.eval_metric == "ndcg"
    assert "eval_metric" not in loaded.history_


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of each scorer, after three rounds."""
    folder = tmp_path_factory.mktemp("models")
    trees = {"n_estimators": 3, "min_child_weight": 0.0}
    for scorer, few in (("linear", {"sweeps": 3}), ("trees", trees)):
        crf = RankingCRF(scorer, random_state=0, n_jobs=1, **few)
        crf.fit(DOCUMENTS, RELEVANCE, group=GROUP).save(folder / scorer)
    return folder


@pytest.mark.parametrize(
    ("scorer", "manifest", "arrays", "message"),
    [
        ("linear", lambda v: v["model"].update(scorer="trees"), {}, "scores are not those of"),
        ("linear", lambda v: v["model"].update(scorer="x"), {}, "unknown scorer 'x'"),
        ("linear", lambda v: v["arguments"].update(max_depth=3), {}, "max_depth is 3, but scorer"),
        ("linear", lambda v: v["training"].pop("step"), {}, "told in a way that"),
        ("linear", lambda v: v["training"].update(step=-1.0), {}, "an impossible step"),
        ("linear", lambda v: v["training"].update(n_counted=-1.0), {}, "counts what is not there"),
        ("linear", lambda v: v.pop("n_skipped"), {}, "n_skipped"),
        ("linear", None, {"weights": lambda a: a[:1]}, "the array weights does not fit"),
        ("linear", None, {"training.sum": lambda a: a[:1]}, "the array training.sum does not fit"),
        ("trees", lambda v: v.update(n_rounds=2, best_iteration=1), {}, "rounds are not as many"),
        ("trees", lambda v: v.update(n_rounds=5), {}, "but its history is shorter"),
        ("linear", lambda v: v.update(n_rounds=5), {}, "but its history is shorter"),
        ("linear", lambda v: v.update(n_rounds=-1), {}, "its n_rounds is -1: it must be a whole"),
        ("linear", lambda v: v.update(best_iteration=3), {}, "its best_iteration is 3"),
        ("linear", lambda v: v.update(n_skipped=-1), {}, "its n_skipped is -1"),
        ("linear", lambda v: v["training"].update(step="0.5"), {}, "its step is '0.5'"),
        ("trees", lambda v: v.update(training={}), {}, "told in a way that"),
    ],
)
def test_load_rejects_broken_files(files, tmp_path, changed, scorer, manifest, arrays, message):
    path = tmp_path / "model.crfx"
    shutil.copy(files / scorer, path)
    changed(path, manifest, arrays)
    with pytest.raises(ValueError, match=rf"model\.crfx is not a model file of crfx: .*{message}"):
        load(path)
