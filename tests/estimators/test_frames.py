"""Data frames: categories keep their numbers, and what training has not seen is missing."""

import numpy as np
import pytest

from crfx import GBCRF, RankingCRF, load
from crfx.testing import make_task

pandas = pytest.importorskip("pandas")

_, Y = make_task()
FEW = {"n_estimators": 4, "min_child_weight": 0.1, "random_state": 0, "n_jobs": 1}


def frames(letters, kinds=None, seed=0):
    """One frame per instance: x, a number, and kind, a category."""
    random = np.random.default_rng(seed)
    dtype = pandas.CategoricalDtype(list(kinds or letters))
    drawn = [random.choice(list(letters), len(y)) for y in Y]
    return [
        pandas.DataFrame({"x": random.normal(size=len(row)), "kind": row}).astype({"kind": dtype})
        for row in drawn
    ]


def labels(parts):
    return [["yes" if kind == "b" else "no" for kind in part["kind"]] for part in parts]


ABC = frames("abc")


@pytest.fixture(scope="module")
def crf():
    return GBCRF(**FEW).fit(ABC, labels(ABC))


def test_categories_are_learned(crf):
    assert crf.score(ABC, labels(ABC)) == 1.0
    assert crf.feature_names_in_.tolist() == ["x", "kind"]
    assert crf.n_features_in_ == 2
    assert crf.feature_importance()["kind"] > 0


def test_categories_may_be_in_any_order(crf, tmp_path):
    crf.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    assert again.columns_ == crf.columns_
    other = frames("abc", "cab")
    assert other[0].kind.cat.categories.tolist() == ["c", "a", "b"]
    expected = np.concatenate(crf.predict_marginals(ABC))
    for model in (crf, again):
        np.testing.assert_array_equal(np.concatenate(model.predict_marginals(other)), expected)


def test_a_category_not_seen_in_training_is_missing(crf):
    """Plain XGBoost would take it for one of its neighbours."""
    unseen = [part.assign(kind="bzz").astype({"kind": "category"}) for part in ABC]
    missing = [part.assign(kind=part.kind.where(part.kind == "none")) for part in ABC]
    for mine, theirs in zip(
        crf.predict_marginals(unseen), crf.predict_marginals(missing), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    watched = GBCRF(**FEW).fit(ABC, labels(ABC), eval_set=(unseen, labels(unseen)))
    loss = -watched.log_likelihood(missing, labels(unseen)).sum() / sum(map(len, Y))
    np.testing.assert_allclose(watched.history_["eval_metric"][-1], loss, rtol=1e-5)


def test_a_warm_start_keeps_the_categories(crf):
    whole = GBCRF(**{**FEW, "n_estimators": 6}).fit(ABC, labels(ABC))
    more = GBCRF(**{**FEW, "n_estimators": 2})
    more.fit(frames("abc", "cab"), labels(ABC), init_model=crf)
    np.testing.assert_array_equal(more.predict_marginals(ABC)[3], whole.predict_marginals(ABC)[3])
    with pytest.raises(ValueError, match="'kind' of X has the category 'd'"):
        more.fit(frames("abd"), Y, init_model=crf)


def test_predict_rejects_numbers_in_categorical_columns(crf):
    with pytest.raises(ValueError, match=r"holds numbers, .* with categories"):
        crf.predict([part.assign(kind=part.kind.cat.codes) for part in ABC])


def test_categorical_column_without_categories_is_missing(tmp_path):
    without = [part.assign(kind=pandas.Categorical([None] * len(part))) for part in ABC]
    crf = GBCRF(**FEW, edges="trees").fit(without, labels(ABC))
    missing = [part.assign(kind=np.nan) for part in without]
    numbers = GBCRF(**FEW, edges="trees").fit(missing, labels(ABC))
    crf.save(tmp_path / "m.crfx")
    for model in (crf, load(tmp_path / "m.crfx")):
        marginals = np.concatenate(model.predict_marginals(without))
        np.testing.assert_array_equal(marginals, np.concatenate(numbers.predict_marginals(missing)))
        # Whatever category comes later is one that training has not seen.
        np.testing.assert_array_equal(np.concatenate(model.predict_marginals(ABC)), marginals)
    with pytest.raises(ValueError, match="encode categorical columns"):
        GBCRF(**FEW, edges="linear").fit(without, labels(ABC))


ODD = {"x": "x<y", "kind": "kind[1]"}


@pytest.mark.parametrize("edges", ["table", "trees"])
def test_columns_may_have_any_name(tmp_path, edges):
    """XGBoost itself refuses brackets and "<"."""
    plain = GBCRF(**FEW, edges=edges).fit(ABC, labels(ABC))
    odd = [part.rename(columns=ODD) for part in ABC]
    crf = GBCRF(**FEW, edges=edges).fit(odd, labels(ABC), eval_set=(odd, labels(ABC)))
    crf.save(tmp_path / "m.crfx")
    for model in (crf, load(tmp_path / "m.crfx")):
        assert model.feature_names_in_.tolist() == list(ODD.values())
        wanted = {ODD[name]: gain for name, gain in plain.feature_importance().items()}
        assert model.feature_importance() == wanted
        assert set(model.importance().node) == set(wanted)
        assert set(model.explain(odd[0]).positions[0].features) <= set(ODD.values())
        np.testing.assert_array_equal(
            model.predict_contributions(odd)[2], plain.predict_contributions(ABC)[2]
        )
        np.testing.assert_array_equal(
            model.predict_marginals(odd)[2], plain.predict_marginals(ABC)[2]
        )


def test_ranker_columns_may_have_any_name():
    odd = [part[["x"]].assign(**{"]": 1.0}).rename(columns=ODD) for part in ABC]
    crf = RankingCRF(scorer="trees", n_estimators=2, n_jobs=1)
    crf.fit(odd, [(part["x<y"] > 0).astype(float) for part in odd])
    assert list(crf.feature_importance()) == ["x<y"] == list(crf.importance().node)


def test_model_of_frames_explains_arrays():
    numbers = [part[["x"]] for part in ABC]
    crf = GBCRF(**FEW).fit(numbers, Y, eval_set=([part.to_numpy() for part in numbers], Y))
    contributions = crf.predict_contributions([part.to_numpy() for part in numbers])
    np.testing.assert_array_equal(contributions[0], crf.predict_contributions(numbers)[0])
