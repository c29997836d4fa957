"""Estimators with the tools of scikit-learn: searches, folds, pipelines, metadata, transformers."""

import pickle
import warnings

import numpy as np
import pandas
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SelectKBest
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object

from crfx import GBCRF, FeatureInduction, HiddenUnitCRF, LinearCRF, RankingCRF, TreeCRF, scorers
from crfx.features import PerPosition, windows
from crfx.objectives import KL
from crfx.testing import make_task
from crfx.threads import thread_count

X, Y = make_task(n_instances=18)
STACKED, FLAT, LENGTHS = np.concatenate(X), np.concatenate(Y), [len(x) for x in X]
PARENTS = [np.array([-1, *((np.arange(1, len(x)) - 1) // 2)]) for x in X]
WEIGHTS = np.arange(1.0, len(X) + 1)
CRF = LinearCRF(max_iter=5, n_jobs=1)
L2 = {"l2": [0.1, 1.0, 10.0]}
LABELLERS = [LinearCRF, GBCRF, HiddenUnitCRF, TreeCRF]


DICTS = [[{"a": float(row[0]), "b": str(int(row[1]))} for row in x] for x in X]
KINDS = [
    (LinearCRF(max_iter=20), {"l2": [0.1, 10.0]}),
    (GBCRF(3, max_depth=2, random_state=0, n_jobs=1), {"max_depth": [1, 3]}),
    (HiddenUnitCRF(5, sweeps=10, step=0.1, random_state=0, n_jobs=1), {"n_hidden": [2, 5]}),
    (TreeCRF(3, max_leaves=4, random_state=0, n_jobs=1), {"max_leaves": [2, 6]}),
]


@pytest.mark.parametrize(("estimator", "grid"), KINDS, ids=str)
def test_estimators_work_in_search_pickle_and_pipeline(estimator, grid):
    for data in (X, DICTS):
        search = GridSearchCV(clone(estimator), grid, cv=3).fit(data, Y)
        assert 0 < search.best_score_ <= 1
        assert search.predict(data)[0].shape == (len(Y[0]),)
        again = pickle.loads(pickle.dumps(search.best_estimator_))
        for one, other in zip(
            search.best_estimator_.predict_marginals(data),
            again.predict_marginals(data),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)
    wider = FunctionTransformer(windows, kw_args={"left": 1, "right": 1, "outside": 0.0})
    pipeline = make_pipeline(wider, clone(estimator)).fit(X, Y)
    assert pipeline.score(X, Y) > 0.5
    assert pipeline[-1].n_features_in_ == 12


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def test_searches_over_iterations():
    search = HalvingGridSearchCV(
        CRF, L2, cv=2, resource="max_iter", min_resources=2, max_resources=8, random_state=0
    ).fit(X, Y)
    assert search.best_params_["l2"] in L2["l2"]
    assert 0.3 < search.best_score_ <= 1


def seen_threads(crf, X, y):
    return float(thread_count(None))


def test_grid_search_processes_share_cores():
    search = GridSearchCV(CRF, L2, cv=2, n_jobs=2, scoring=seen_threads).fit(X, Y)
    n_threads = thread_count(None)
    assert search.cv_results_["mean_test_score"].max() <= max(n_threads // 2, 1)
    again = GridSearchCV(CRF, L2, cv=2, scoring=scorers.f1_macro).fit(X, Y)
    beside = GridSearchCV(CRF, L2, cv=2, n_jobs=2, scoring=scorers.f1_macro).fit(X, Y)
    assert again.best_score_ == beside.best_score_


def test_settings_of_an_objective_are_searched():
    crf = LinearCRF(max_iter=5, objective=KL())
    grid = {"objective__temperature": [0.1, 0.5], "l2": [0.1, 1.0]}
    search = GridSearchCV(crf, grid, cv=2).fit(X, Y)
    wanted = search.best_params_["objective__temperature"]
    assert search.best_estimator_.objective.temperature == wanted
    assert crf.objective == KL()


def test_set_params_changes_settings_in_a_copy():
    shared = KL()
    crf = LinearCRF(objective=shared)
    assert crf.get_params()["objective__temperature"] == shared.temperature
    assert "objective__temperature" not in crf.get_params(deep=False)
    crf.set_params(objective__temperature=0.7, objective__seed=3, l2=2.0)
    assert (crf.objective, crf.l2, shared) == (KL(0.7, seed=3), 2.0, KL())
    crf.set_params(objective__temperature=0.9, objective=KL(seed=1))
    assert crf.objective == KL(0.9, seed=1)
    trees = GBCRF(base_learner=DecisionTreeRegressor()).set_params(base_learner__max_depth=2)
    assert trees.get_params()["base_learner__max_depth"] == 2


def test_set_params_rejects_unknown_settings():
    cases = [
        ("kl", {"objective__temperature": 1.0}, "objective is 'kl', which has no settings: pass"),
        (KL(), {"objective__heat": 1.0}, "has no setting 'heat'"),
        (KL(), {"objective__temperature": -1.0}, "temperature is -1.0: it must be above 0"),
        (KL(), {"object__temperature": 1.0}, "Invalid parameter 'object' for estimator"),
        (KL(), {"temperature": 1.0}, "Invalid parameter 'temperature' for estimator"),
    ]
    for objective, settings, message in cases:
        crf = LinearCRF(objective=objective)
        with pytest.raises(ValueError, match=message):
            crf.set_params(**settings)
        assert crf.objective == objective


def test_learning_curves_and_folds_of_documents():
    sizes, _, scores = learning_curve(CRF, X, Y, cv=2, train_sizes=[0.5, 1.0])
    assert (sizes == [4, 9]).all()
    assert scores.shape == (2, 2)
    documents = np.arange(len(X)) // 3
    assert cross_val_score(CRF, X, Y, groups=documents, cv=GroupKFold(3)).shape == (3,)


def test_permutation_importance_takes_one_matrix():
    crf = clone(CRF).fit(X, Y)
    importance = permutation_importance(
        crf,
        STACKED,
        FLAT,
        scoring=lambda crf, X, y: crf.score(X, y, lengths=LENGTHS),
        n_repeats=2,
        random_state=0,
    )
    assert importance.importances_mean.shape == (STACKED.shape[1],)
    assert importance.importances_mean.max() > 0


@pytest.mark.filterwarnings("ignore:Estimator fit failed|Scoring failed:UserWarning")
def test_cross_validation_rejects_lengths():
    with pytest.raises(ValueError, match="leaves lengths whole: pass it a list with one matrix"):
        cross_validate(CRF, STACKED, FLAT, cv=2, params={"lengths": LENGTHS})


@pytest.mark.usefixtures("routing")
def test_structure_is_routed_by_default():
    scores = cross_validate(CRF, X, Y, cv=3, params={"parents": PARENTS})["test_score"]
    plain = cross_validate(CRF, X, Y, cv=3)["test_score"]
    assert (scores != plain).any()
    crf = clone(CRF).fit(X[6:], Y[6:], parents=PARENTS[6:])
    assert scores[0] == crf.score(X[:6], Y[:6], parents=PARENTS[:6])


@pytest.mark.usefixtures("routing")
def test_structure_is_routed_through_pipelines():
    pipeline = make_pipeline(PerPosition(StandardScaler()), CRF)
    types = [np.arange(len(x)) % 2 for x in X]
    arguments = {"parents": PARENTS, "edge_types": types}
    pipeline.fit(X, Y, **arguments)
    assert pipeline[-1].model_.is_forest
    assert pipeline.score(X, Y, **arguments) > 0.5
    assert len(pipeline.predict(X, **arguments)) == len(X)
    scores = cross_validate(pipeline, X, Y, cv=2, params=arguments, scoring=scorers.log_likelihood)
    assert np.isfinite(scores["test_score"]).all()


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("kind", [LinearCRF, TreeCRF])
def test_sample_weight_is_routed_on_request(kind):
    crf = kind(n_jobs=1, **({"n_estimators": 2} if kind is TreeCRF else {"max_iter": 3}))
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(crf, X, Y, cv=2, params={"sample_weight": WEIGHTS})
    asks = clone(crf).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    scores = cross_validate(asks, X, Y, cv=2, params={"sample_weight": WEIGHTS})["test_score"]
    half = clone(crf).fit(X[9:], Y[9:], sample_weight=WEIGHTS[9:])
    assert scores[0] == half.score(X[:9], Y[:9], sample_weight=WEIGHTS[:9])


@pytest.mark.usefixtures("routing")
def test_stacked_queries_are_routed():
    group, relevance = np.array(LENGTHS), np.arange(len(STACKED)) % 3.0
    crf = RankingCRF(sweeps=2, random_state=0).set_fit_request(group=True)
    pipeline = make_pipeline(StandardScaler(), crf.set_score_request(group=True))
    pipeline.fit(STACKED, relevance, group=group)
    assert 0 < pipeline.score(STACKED, relevance, group=group) <= 1


def queries():
    random = np.random.default_rng(0)
    X = [random.normal(size=(n, 3)) for n in random.integers(2, 7, 12)]
    return X, [np.digitize(2 * x[:, 0] - x[:, 1], [0.5, 2.0]).astype(float) for x in X]


def test_rankers_are_cross_validated_on_lists_of_queries():
    X, relevance = queries()
    crf = RankingCRF(sweeps=3, random_state=0)
    search = GridSearchCV(crf, {"temperature": [0.01, 1.0]}, cv=3).fit(X, relevance)
    assert 0.5 < search.best_score_ <= 1
    groups = np.arange(len(X)) // 2
    assert cross_val_score(crf, X, relevance, groups=groups, cv=GroupKFold(3)).shape == (3,)
    weights = np.arange(1.0, len(X) + 1)
    with config_context(enable_metadata_routing=True):
        crf.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        cross_validate(crf, X, relevance, cv=3, params={"sample_weight": weights})


@pytest.mark.parametrize("scorer", ["linear", "trees"])
def test_a_list_of_queries_is_one_stacked_matrix(scorer):
    X, relevance = queries()
    stacked, flat, group = np.concatenate(X), np.concatenate(relevance), [len(x) for x in X]
    small = {"sweeps": 3} if scorer == "linear" else {"n_estimators": 3, "min_child_weight": 0.5}
    crf = RankingCRF(scorer, random_state=0, n_jobs=1, **small)
    one = clone(crf).fit(X, relevance, eval_set=(X, relevance))
    other = clone(crf).fit(stacked, flat, group=group, eval_set=(stacked, flat, group))
    assert one.history_["eval_metric"] == other.history_["eval_metric"]
    assert [len(labels) for labels in one.predict(X)] == group
    np.testing.assert_array_equal(np.concatenate(one.predict(X)), other.predict(stacked))
    for a, b in zip(one.rank(X), other.rank(stacked, group), strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.score(X, relevance, cut=2) == other.score(stacked, flat, group, cut=2)
    weights = np.arange(len(X)) % 3
    twice = [i for i, count in enumerate(weights) for _ in range(count)]
    assert one.score(X, relevance, sample_weight=weights) == pytest.approx(
        one.score([X[i] for i in twice], [relevance[i] for i in twice]), abs=1e-12
    )


@pytest.mark.parametrize("kind", [*LABELLERS, RankingCRF])
def test_tags_and_requests(kind):
    tags, asked = get_tags(kind()), get_routing_for_object(kind())
    assert not is_classifier(kind())  # labels lie in lists: folds cannot be stratified by them
    assert not is_regressor(kind())
    assert tags.target_tags.required
    assert tags.input_tags.sparse
    assert tags.input_tags.allow_nan
    assert tags.input_tags.two_d_array == (kind is RankingCRF)
    assert tags.input_tags.dict == (kind is not RankingCRF)
    if kind is RankingCRF:
        assert set(asked.score.requests) == {"group", "cut", "sample_weight"}
        assert "relevance" not in asked.fit.requests
        return
    structure = {"lengths": True, "parents": True, "edge_types": True}
    for method in ("fit", "predict", "score"):
        requests = getattr(asked, method).requests
        assert {name: requests[name] for name in requests if requests[name]} == structure


def test_transformers_work_on_lists():
    scale = PerPosition(StandardScaler())
    transformed = scale.fit_transform(X)
    assert [len(x) for x in transformed] == LENGTHS
    np.testing.assert_array_equal(
        np.concatenate(transformed), StandardScaler().fit_transform(STACKED)
    )
    np.testing.assert_array_equal(scale.transform(X[:1])[0], transformed[0])
    union = FeatureUnion([("scaled", StandardScaler()), ("unit", MinMaxScaler())])
    assert PerPosition(union).fit(X).transform(X)[0].shape == (LENGTHS[0], 2 * X[0].shape[1])
    columns = ColumnTransformer([("scaled", StandardScaler(), [0, 1])], remainder="drop")
    pipeline = make_pipeline(PerPosition(columns), CRF).fit(X, Y)
    assert pipeline[-1].n_features_in_ == 2
    best = PerPosition(SelectKBest(k=2)).fit(X, Y).transform(X)  # looks at labels
    wanted = SelectKBest(k=2).fit_transform(STACKED, FLAT)
    np.testing.assert_array_equal(np.concatenate(best), wanted)


def test_transformers_of_frames():
    frames = [pandas.DataFrame(x, columns=list("abcd")) for x in X]
    scale = PerPosition(StandardScaler().set_output(transform="pandas"))
    transformed = scale.fit_transform(frames)
    assert list(transformed[3].columns) == list("abcd") == list(scale.get_feature_names_out())
    crf = make_pipeline(scale, CRF).fit(frames, Y)[-1]
    assert crf.feature_names_in_.tolist() == list("abcd")


class Halves(StandardScaler):
    def transform(self, X):
        return super().transform(X)[::2]


def test_per_position_rejects_invalid_transformers(not_refused):
    cases = {
        "one matrix": ((StandardScaler(), STACKED), "the transformer itself takes it"),
        "nothing": ((StandardScaler(), []), "X has no instances"),
        "unequal": ((StandardScaler(), [X[0], X[1][:, :2]]), "instance 1: X has 2 features"),
        "dicts": ((StandardScaler(), [[{"w": 1.0}]]), "X holds dicts or texts, which are not num"),
        "rows lost": ((Halves(), X), "it must keep positions"),
    }
    assert not_refused(lambda case: PerPosition(case[0]).fit_transform(case[1]), cases) == {}


def test_per_position_must_be_fitted():
    for ask in (
        lambda transformer: transformer.transform(X),
        lambda transformer: transformer.get_feature_names_out(),
    ):
        with pytest.raises(NotFittedError, match="this PerPosition is not fitted: call fit first"):
            ask(PerPosition(StandardScaler()))


class OutOfFold(StandardScaler):
    def fit_transform(self, X, y=None):
        return -self.fit(X, y).transform(X)


def test_per_position_does_not_leak_targets():
    """Those that encode targets give what they are fitted on values of its own."""
    transformer = PerPosition(OutOfFold())
    at_once, later = transformer.fit_transform(X, Y), transformer.transform(X)
    np.testing.assert_array_equal(np.concatenate(at_once), -np.concatenate(later))


def test_per_position_rejects_unknown_labels_for_target_encoders():
    partly = [list(labels) for labels in Y]
    partly[2][1] = None
    np.testing.assert_array_equal(
        np.concatenate(PerPosition(StandardScaler()).fit_transform(X, partly)),
        StandardScaler().fit_transform(STACKED),
    )
    for method in ("fit", "fit_transform"):
        with pytest.raises(ValueError, match=r"instance 2, position 1: y is None, .*TargetEncoder"):
            getattr(PerPosition(TargetEncoder()), method)(X, partly)


def test_feature_induction_does_not_warn_of_short_rounds():
    induction = FeatureInduction(rounds=2, per_round=4, iterations=2, min_count=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearCRF(feature_induction=induction).fit(DICTS, Y)
