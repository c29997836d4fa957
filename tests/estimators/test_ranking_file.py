"""Model files of RankingCRF: what is saved is what is loaded; what is broken is refused."""

import numpy as np
import pytest

from crfx import RankingCRF, load

FEW = {"linear": {"sweeps": 3}, "trees": {"n_estimators": 3, "min_child_weight": 0.5}}


def make(scorer, **options):
    return RankingCRF(scorer, **{**FEW[scorer], "random_state": 0, "n_jobs": 1, **options})


@pytest.mark.parametrize("scorer", FEW)
def test_saved_and_loaded(make_queries, tmp_path, scorer):
    X, relevance, group = make_queries()
    dev = make_queries(1)
    crf = make(scorer, eval_metric="ndcg@3", cut=5).fit(X, relevance, group=group, eval_set=dev)
    crf.save(tmp_path / "model.crfx")
    found = load(tmp_path / "model.crfx")
    assert type(found) is RankingCRF
    assert found.get_params() == crf.get_params()
    np.testing.assert_array_equal(found.predict(X), crf.predict(X))
    for name in ("history_", "n_rounds_", "best_iteration_", "n_skipped_", "n_features_in_"):
        assert getattr(found, name) == getattr(crf, name)


def test_without_rounds(make_queries, tmp_path):
    X, relevance, group = make_queries()
    for scorer, none in (("linear", {"sweeps": 0}), ("trees", {"n_estimators": 0})):
        crf = make(scorer, **none).fit(X, relevance, group=group)
        assert not crf.predict(X).any()
        crf.save(tmp_path / "model.crfx")
        assert not load(tmp_path / "model.crfx").predict(X).any()


def test_a_function_as_metric_is_not_saved(make_queries, tmp_path):
    X, relevance, group = make_queries()
    crf = make("linear", eval_metric=lambda *given: 1.0)
    crf.fit(X, relevance, group=group, eval_set=make_queries(1)).save(tmp_path / "model.crfx")
    found = load(tmp_path / "model.crfx")
    assert found.eval_metric == "ndcg"
    assert "eval_metric" not in found.history_


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
        ("linear", None, {"weights": lambda a: a[:2]}, "the array weights does not fit"),
        ("linear", None, {"weights": lambda a: a * np.nan}, "the array weights does not fit"),
        ("linear", None, {"weights": lambda a: None}, "weights"),
        ("linear", None, {"training.sum": lambda a: a[:1]}, "the array training.sum does not fit"),
        ("trees", lambda v: v.update(n_rounds=2, best_iteration=1), {}, "rounds are not as many"),
        ("trees", lambda v: v.update(n_rounds=5), {}, "but its history is shorter"),
        ("linear", lambda v: v.update(n_rounds=5), {}, "but its history is shorter"),
        ("linear", lambda v: v.update(n_rounds=-1), {}, "its n_rounds is -1: it must be a whole"),
        ("linear", lambda v: v.update(n_rounds=2.0), {}, "its n_rounds is 2.0: it must be a whole"),
        ("linear", lambda v: v.update(n_rounds=True), {}, "its n_rounds is True: it must be a"),
        ("linear", lambda v: v.update(best_iteration=3), {}, "its best_iteration is 3"),
        ("linear", lambda v: v.update(n_skipped=-1), {}, "its n_skipped is -1"),
        ("linear", lambda v: v["training"].update(step="0.5"), {}, "its step is '0.5'"),
        ("trees", lambda v: v.update(training={}), {}, "told in a way that"),
    ],
)
def test_broken_files(make_queries, tmp_path, changed, scorer, manifest, arrays, message):
    X, relevance, group = make_queries(n_queries=8)
    path = tmp_path / "model.crfx"
    make(scorer).fit(X, relevance, group=group).save(path)
    changed(path, manifest, arrays)
    with pytest.raises(ValueError, match=rf"model\.crfx is not a model file of crfx: .*{message}"):
        load(path)
