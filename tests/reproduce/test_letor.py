"""The experiment on rankings: chosen on validation, tested once, kept by query."""

import numpy as np
import pytest

from crfx.datasets import MillionQuery
from crfx.io.letor import Rankings
from crfx.ndcg import ndcg
from reproduce.experiments import Task, letor, loss_gradients
from reproduce.rankers import RANKERS, Fitted, Given, Judge


@pytest.fixture
def small(monkeypatch):
    """Five parts of twelve queries, in place of the data set; the last has one without a level."""
    random = np.random.default_rng(0)

    def part(number):
        group = random.integers(3, 13, size=12)
        X = random.uniform(size=(group.sum(), 3)).astype(np.float32)
        relevance = np.digitize(X[:, 0] + 0.3 * random.normal(size=len(X)), [0.6, 0.9])
        relevance[: group[0]] = 0
        return Rankings(X, relevance.astype(np.float64), group, np.arange(12) + 100 * number)

    data = MillionQuery(tuple(part(number) for number in range(1, 6)), "small")
    monkeypatch.setattr(letor, "load", lambda name: data)
    return data


def task(unit="1", data=None, **settings):
    return Task("t", "r", unit, {"estimator": "Regression", **settings}, data or {})


def test_figures_are_those_of_the_test_part(small):
    outcome = letor.run(task())
    fold = small.fold(1)
    fitted = RANKERS["Regression"](Given(fold.train, fold.validation))
    scores, test = fitted.scores(fold.test.X), fold.test
    for cut in (1, 5, 10):
        ranking = (test.relevance, scores, test.group)
        for name, options in {
            "letor": {"definition": "letor", "gain": "linear"},
            "tool": {"definition": "letor", "gain": "exponential"},
            "usual": {},
        }.items():
            expected = 100 * ndcg(*ranking, cut=cut, **options)
            assert outcome.figures[f"{name}_{cut}"] == pytest.approx(expected)
    validated = 100 * Judge()(fold.validation, fitted.scores(fold.validation.X))
    assert outcome.figures["validation"] == pytest.approx(validated)
    assert outcome.curves["validation"] == [pytest.approx(validated)]
    assert outcome.figures["rounds"] == 1
    for name in ("letor_5", "usual_5", "usual_10"):
        kept = outcome.curves[name]
        # The usual definition leaves out the query that has nothing relevant.
        assert len(kept) == (12 if name.startswith("letor") else 11)
        assert 100 * np.mean(kept) == pytest.approx(outcome.figures[name], abs=1e-3)


@pytest.fixture
def planted(monkeypatch):
    """A ranker that notes what it is given, and is as good on each part as its settings say."""
    seen = []

    def fit(settings, good, extra=0, random_state=0):
        train, validation = settings.train, settings.validation
        seen.append((train, validation, good))
        truth = {len(part.X): part.relevance for part in (validation, train)}

        def scores(X):
            return truth.get(len(X), X[:, 0]) * (1 if good else -1)

        return Fitted(scores, rounds=good + extra + random_state)

    monkeypatch.setitem(RANKERS, "Planted", fit)
    return seen


def test_the_point_that_validates_best_is_tested(small, planted):
    grid = {"good": [0, 2, 1], "extra": [10]}
    outcome = letor.run(task(estimator="Planted", data={"grid": grid}))
    assert [good for *_, good in planted] == [0, 2, 1]
    assert outcome.curves["chosen_good"] == [2]  # of equals the first
    assert outcome.curves["chosen_extra"] == [10]
    assert outcome.figures["rounds"] == 12
    worst, best, same = outcome.curves["validation"]
    assert worst < best == same
    test = small.fold(1).test
    expected = ndcg(test.relevance, test.X[:, 0], test.group, cut=5)
    assert outcome.figures["usual_5"] == pytest.approx(100 * expected)


def test_the_test_part_is_neither_trained_nor_validated_on(small, planted):
    letor.run(task("3", {"grid": {"good": [1]}}, estimator="Planted"))
    ((train, validation, _),) = planted
    assert set(train.query_ids // 100) == {3, 4, 5}
    assert set(validation.query_ids // 100) == {1}


def test_figures_are_means_over_seeds(small, planted):
    data = {"grid": {"good": [0, 1]}, "seeds": 3}
    outcome = letor.run(task(data=data, estimator="Planted", random_state=5))
    assert len(planted) == 6
    assert outcome.figures["rounds"] == 1 + 6  # of 5, 6 and 7
    assert outcome.curves["chosen_good"] == [1, 1, 1]
    assert len(outcome.curves["validation"]) == 2
    once = letor.run(task(data={"grid": {"good": [1]}}, estimator="Planted"))
    assert outcome.curves["usual_5"] == once.curves["usual_5"]


def test_ours_is_trained_like_the_others(small):
    settings = {"estimator": "RankingCRF", "sweeps": 5, "random_state": 0}
    outcome = letor.run(task(data={"grid": {"temperature": [0.05, 0.5]}, "seeds": 2}, **settings))
    assert outcome.figures["usual_5"] > 70
    assert outcome.figures["rounds"] == 5
    assert set(outcome.curves["chosen_temperature"]) <= {0.05, 0.5}


def test_quick_takes_the_first_queries(small, planted):
    letor.run(task(data={"queries": 4, "grid": {"good": [1]}}, estimator="Planted"))
    ((train, validation, _),) = planted
    assert len(train.group) == len(validation.group) == 4
    assert train.group.sum() == len(train.X) == len(train.relevance)
    np.testing.assert_array_equal(train.X, small.fold(1).train.X[: len(train.X)])


def test_a_bad_task_is_refused(small, monkeypatch):
    for asked, message in (
        (task("0"), "units are LETOR's folds 1 to 5"),
        (task("test"), "units are LETOR's folds 1 to 5"),
        (task(estimator="PageRank"), "there is no ranker 'PageRank': choose one of"),
        (task(data={"folds": 5}), "unknown data option folds"),
        (task(data={"grid": {"l2": 1.0}}), "grid.l2 is 1.0: it must list the values to try"),
        (task(data={"grid": {"l2": []}}), "it must list the values to try"),
    ):
        with pytest.raises(ValueError, match=message):
            letor.run(asked)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="data is 'mq2009': choose one of mq2008, mq2007"):
        letor.run(task(data={"data": "mq2009"}))


def test_the_figure_of_the_paper_has_slopes_of_length_1():
    def run(objective, unit="figure"):
        return loss_gradients.run(Task("t", "r", unit, {}, {"objective": objective}))

    for objective in ("likelihood", "loss_augmented", "loss_scaled", "expected_loss", "kl"):
        figures = run(objective).figures
        slopes = [figures[f"at_{number}"] for number in range(1, 6)]
        assert np.linalg.norm(slopes) == pytest.approx(1)
        assert slopes[2] < 0 < slopes[0]  # the truth is lowered, the worst violator is raised
    with pytest.raises(ValueError, match="objective is 'hinge': choose one of likelihood"):
        run("hinge")
    with pytest.raises(ValueError, match="the only unit is 'figure'"):
        run("kl", unit="0")
