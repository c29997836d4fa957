"""RankingCRF and shards: instances are queries, labels are relevance."""

import numpy as np
import pytest

import crfx
from crfx import RankingCRF

SAME_SCORES = 1e-6
"""BLAS may sum the scores of a chunk in another order than those of the whole."""


@pytest.fixture
def kinds(make_queries, tmp_path):
    """Shards, and (X, relevance, group) of the same in memory."""
    X, relevance, group = make_queries()
    weights = np.arange(len(group)) % 3
    shards = crfx.write_shards(
        tmp_path, X, relevance, lengths=group, sample_weight=weights, positions=40
    )
    assert len(shards) > 3
    return shards, (X, relevance, group), weights


def make(scorer, **options):
    return RankingCRF(scorer, random_state=0, n_jobs=1, **options)


@pytest.mark.parametrize(
    "crf", [make("linear", sweeps=2), make("trees", n_estimators=3)], ids=["linear", "trees"]
)
def test_rank_reads_shards_file_by_file(crf, kinds):
    shards, (X, relevance, group), weights = kinds
    crf.fit(X, relevance, group=group)
    np.testing.assert_allclose(crf.predict(shards.X), crf.predict(X), rtol=SAME_SCORES)
    for ranking, expected in zip(crf.rank(shards.X), crf.rank(X, group), strict=True):
        np.testing.assert_array_equal(ranking, expected)
    expected = crf.score(X, relevance, group, sample_weight=weights)
    assert crf.score(shards.X, shards.y) == expected


def test_trees_from_shards_equal_trees_from_memory(kinds):
    shards, (X, relevance, group), weights = kinds
    crf = make("trees", n_estimators=5).fit(shards.X, shards.y)
    expected = make("trees", n_estimators=5).fit(X, relevance, group=group, sample_weight=weights)
    np.testing.assert_array_equal(crf.predict(X), expected.predict(X))
    assert np.ptp(crf.predict(X)) > 0


def test_warm_start_of_trees_on_linear_scorer_from_shards(kinds):
    shards, (X, relevance, group), weights = kinds
    base = make("linear", sweeps=2).fit(X, relevance, group=group)

    def grown(*data, **options):
        first = make("trees", n_estimators=3).fit(*data, init_model=base, **options)
        return make("trees", n_estimators=2).fit(*data, init_model=first, **options)

    crf = grown(shards.X, shards.y)
    expected = grown(X, relevance, group=group, sample_weight=weights)
    assert crf.n_rounds_ == 5
    assert crf.history_["objective"] == pytest.approx(
        expected.history_["objective"], rel=SAME_SCORES
    )
    np.testing.assert_allclose(crf.predict(X), expected.predict(X), rtol=SAME_SCORES)


def test_shards_reject_unsupported_methods(kinds):
    shards, (X, relevance, group), _ = kinds
    crf = make("linear", sweeps=1)
    with pytest.raises(ValueError, match="eval_set: its shards have sample_weight"):
        crf.fit(X, relevance, group=group, eval_set=(shards.X, shards.y))
    crf.fit(X, relevance, group=group)
    with pytest.raises(ValueError, match="X_q is shards: explain one query at a time"):
        crf.explain(shards.X)


def test_epochs_reject_shards(kinds):
    shards, (X, relevance, group), _ = kinds
    with pytest.raises(ValueError, match=r"own = shards.load\(\)"):
        make("linear").fit(shards.X, shards.y)
    loaded = shards.load()  # as the error says
    crf = make("linear", sweeps=2).fit(loaded["X"], loaded["y"], group=loaded["lengths"])
    assert crf.predict(loaded["X"]) == pytest.approx(
        make("linear", sweeps=2).fit(X, relevance, group=group).predict(X)
    )
