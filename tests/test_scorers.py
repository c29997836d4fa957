"""Scorers in scikit-learn's hands: the figures are those of the metrics, whatever stands around."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crfx import LinearCRF, RankingCRF, metrics, scorers
from crfx.features import PerPosition
from crfx.testing import make_task

X, Y = make_task(n_instances=12)
SPANS = {"L0": "O", "L1": "B-PER", "L2": "I-PER"}
TAGS = [[SPANS[str(label)] for label in labels] for labels in Y]
CRF = LinearCRF(max_iter=5).fit(X, TAGS)
FOUND = CRF.predict(X)
QUERIES = [x[:, :2] for x in X if len(x) > 1]
RELEVANCE = [np.digitize(q[:, 0], [0.3, 1.0]).astype(float) for q in QUERIES]
TIGHT = 1e-12

OF_LABELS = {
    "token_accuracy": metrics.token_accuracy(TAGS, FOUND),
    "sequence_accuracy": metrics.sequence_accuracy(TAGS, FOUND),
    "span_f1": metrics.span_f1(TAGS, FOUND),
    "f1_macro": f1_score(np.concatenate(TAGS), np.concatenate(FOUND), average="macro"),
    "f1_weighted": f1_score(np.concatenate(TAGS), np.concatenate(FOUND), average="weighted"),
    "log_likelihood": CRF.log_likelihood(X, TAGS).mean(),
}


def test_figures_are_those_of_the_metrics():
    assert set(scorers.__all__) == {*OF_LABELS, "make_scorer", "ndcg", "ndcg_at"}
    for name, figure in OF_LABELS.items():
        assert getattr(scorers, name)(CRF, X, TAGS) == pytest.approx(figure, abs=TIGHT)
        assert figure not in (0, 1)
    for name in (*OF_LABELS, "ndcg"):
        again = pickle.loads(pickle.dumps(getattr(scorers, name)))
        assert repr(again) == f"crfx.scorers.{name}"


@pytest.mark.parametrize("name", ["token_accuracy", "span_f1", "log_likelihood"])
def test_scorers_see_through_pipelines_and_searches(name):
    scorer = getattr(scorers, name)
    pipeline = make_pipeline(PerPosition(StandardScaler()), LinearCRF(max_iter=5)).fit(X, TAGS)
    direct = scorer(pipeline[-1], pipeline[0].transform(X), TAGS)
    assert scorer(pipeline, X, TAGS) == direct
    search = GridSearchCV(LinearCRF(max_iter=5), {"l2": [0.1, 1.0]}, scoring=scorer, cv=2)
    search.fit(X, TAGS)
    assert search.score(X, TAGS) == scorer(search.best_estimator_, X, TAGS)


def test_cross_validation_takes_several_scorers_and_routes_parents():
    wanted = {name: getattr(scorers, name) for name in OF_LABELS}
    scores = cross_validate(LinearCRF(max_iter=5), X, TAGS, cv=3, scoring=wanted)
    assert {f"test_{name}" for name in wanted} <= set(scores)
    assert (scores["test_token_accuracy"] >= scores["test_sequence_accuracy"]).all()
    parents = [np.array([-1, *((np.arange(1, len(x)) - 1) // 2)]) for x in X]
    arguments = {"cv": 3, "params": {"parents": parents}}
    scoring = {"labels": scorers.token_accuracy, "likely": scorers.log_likelihood}
    with config_context(enable_metadata_routing=True):
        scores = cross_validate(LinearCRF(max_iter=5), X, Y, scoring=scoring, **arguments)
        by_score = cross_val_score(LinearCRF(max_iter=5), X, Y, **arguments)
    np.testing.assert_array_equal(scores["test_labels"], by_score)
    assert np.isfinite(scores["test_likely"]).all()


def test_scorers_read_labels_in_the_scheme_of_the_constraints():
    iob1 = [["I-PER", "I-PER", "O"], ["O", "I-PER"]]
    words = [[{"w": "Ada"}, {"w": "Bo"}, {"w": "is"}], [{"w": "is"}, {"w": "Bo"}]]
    crf = LinearCRF(l2=1e-3, constraints="bio").fit(words, iob1)
    for scorer in (scorers.token_accuracy, scorers.sequence_accuracy, scorers.f1_macro):
        assert scorer(crf, words, iob1) == 1
    persons = scorers.make_scorer(metrics.label_f1, labels=["B-PER", "I-PER"])
    assert persons(CRF, X, TAGS) == metrics.label_f1(TAGS, FOUND, labels=["B-PER", "I-PER"])
    assert persons(CRF, X, TAGS) != scorers.f1_macro(CRF, X, TAGS)


def test_scorers_judge_rankers_on_lists_of_queries():
    crf = RankingCRF(sweeps=2, random_state=0)
    scoring = {"all": scorers.ndcg, "first": scorers.ndcg_at(1)}
    scores = cross_validate(crf, QUERIES, RELEVANCE, cv=3, scoring=scoring)
    np.testing.assert_array_equal(
        scores["test_all"], cross_val_score(crf, QUERIES, RELEVANCE, cv=3)
    )
    assert (scores["test_first"] != scores["test_all"]).any()
    crf.fit(QUERIES, RELEVANCE)
    assert scorers.ndcg_at(1)(crf, QUERIES, RELEVANCE) == crf.score(QUERIES, RELEVANCE, cut=1)
    weights = np.arange(len(QUERIES), dtype=float)
    scores = scorers.ndcg(crf, QUERIES, RELEVANCE, sample_weight=weights)
    assert scores == crf.score(QUERIES, RELEVANCE, sample_weight=weights)
    with pytest.raises(ValueError, match="weights of all queries are 0"):
        crf.score(QUERIES, RELEVANCE, sample_weight=0 * weights)


def test_scorers_reject_other_estimators():
    with pytest.raises(ValueError, match=r"scorer span_f1 is for a crfx estimator .*not for Logis"):
        scorers.span_f1(LogisticRegression(), X, Y)
    with pytest.raises(ValueError, match=r"scorer ndcg is for a crfx .*not for LinearCRF"):
        scorers.ndcg(CRF, X, Y)


def test_metrics_weigh_instances():
    true, predicted = [["a", "b"], ["a"]], [["a", "b"], ["b"]]
    assert metrics.token_accuracy(true, predicted, [1.0, 0.0]) == 1
    with pytest.raises(ValueError, match="sample_weight has 1 entries, y_true has 2 instances"):
        metrics.token_accuracy(true, predicted, [1.0])
    for metric in (metrics.token_accuracy, metrics.sequence_accuracy):
        with pytest.raises(ValueError, match="the weights of all that has known labels are 0"):
            metric(true, predicted, [0.0, 0.0])


WEIGHTS = np.arange(len(X), dtype=float)
TWICE = [i for i, count in enumerate(WEIGHTS) for _ in range(int(count))]


def test_scorers_weigh_instances():
    repeated_X, repeated_y = [X[i] for i in TWICE], [TAGS[i] for i in TWICE]
    weighted = CRF.score(X, TAGS, sample_weight=WEIGHTS)
    assert weighted == pytest.approx(CRF.score(repeated_X, repeated_y), abs=TIGHT)
    for scorer in (scorers.token_accuracy, scorers.sequence_accuracy, scorers.log_likelihood):
        repeated = scorer(CRF, repeated_X, repeated_y)
        assert scorer(CRF, X, TAGS, sample_weight=WEIGHTS) == pytest.approx(repeated)
        with pytest.raises(ValueError, match="sample_weight has shape"):
            scorer(CRF, X, TAGS, sample_weight=WEIGHTS[1:])
        with pytest.raises(ValueError, match=r"weights of all .* are 0"):
            scorer(CRF, X, TAGS, sample_weight=0 * WEIGHTS)


def test_routed_weights_count_where_they_are_asked_for():
    plain = scorers.token_accuracy
    with config_context(enable_metadata_routing=True):
        crf = LinearCRF(max_iter=5).set_fit_request(sample_weight=False)
        weighted = plain.set_score_request(sample_weight=True)
        folds = [(np.arange(6), np.arange(6, 12))]
        scores = cross_validate(
            crf, X, TAGS, cv=folds, params={"sample_weight": WEIGHTS}, scoring={"own": weighted}
        )
        model = LinearCRF(max_iter=5).fit(X[:6], TAGS[:6])
        wanted = weighted(model, X[6:], TAGS[6:], sample_weight=WEIGHTS[6:])
        assert scores["test_own"] == [wanted]
        assert wanted != plain(model, X[6:], TAGS[6:])
        assert "sample_weight" not in plain.get_metadata_routing().score.requests


def test_scorers_name_arguments_that_they_do_not_take():
    for arguments in ({"sample_weight": WEIGHTS}, {"weights": WEIGHTS}):
        message = f"the scorer span_f1 takes no {next(iter(arguments))!r}, but lengths, parents"
        with pytest.raises(TypeError, match=message):
            scorers.span_f1(CRF, X, TAGS, **arguments)
        with pytest.raises(TypeError, match=message):
            scorers.span_f1.set_score_request(**dict.fromkeys(arguments, True))
