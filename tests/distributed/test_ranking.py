"""RankingCRF by several workers: the orders that one alone learns."""

import numpy as np
import pandas
import pytest
from scipy import sparse

from crfx import RankingCRF
from crfx.batch import Batch
from crfx.distributed import cluster
from crfx.distributed.collective import together
from crfx.estimators.base import drawn_seed
from crfx.objectives.ranking import RankingObjective
from crfx.potentials.base import Addition
from crfx.trainers.ranking_boosting import RankingBoosting
from crfx.trainers.ranking_task import Before, RankingTask
from crfx.trainers.subsets import Subsets
from crfx.workers import ALONE, current

SAME_SCORES = {"rtol": 1e-5, "atol": 1e-5}
"""Of trees: sums of gradients and of the objective are taken in another order."""
SAME_NDCG = 0.01
"""Of sweeps, which workers make on their own and average."""
TREES = {"n_estimators": 8, "learning_rate": 0.3, "min_child_weight": 0.5}


def make(scorer="trees", **options):
    usual = TREES if scorer == "trees" else {"sweeps": 8}
    return RankingCRF(scorer, **{**usual, "random_state": 0, "n_jobs": 1, **options})


def make_queries(seed=0, n_queries=40):
    """A list of (X, relevance) of queries; every seventh cannot be learned from."""
    random = np.random.default_rng(seed)
    result = []
    for number in range(n_queries):
        X = random.normal(size=(random.integers(2, 14), 4)).astype(np.float32).round(1)
        worth = 2 * X[:, 0] - X[:, 1] + 0.5 * random.normal(size=len(X))
        relevance = np.digitize(worth, [0.5, 2.0]) if number % 7 else np.ones(len(X))
        result.append((X, relevance.astype(float)))
    return [X for X, _ in result], [relevance for _, relevance in result]


def part(workers, values, cuts=None):
    """Return a worker's part of a list that is cut at these places (None: into equal parts)."""
    if values is None:
        return None
    borders = np.linspace(0, len(values), workers.size + 1) if cuts is None else [0, *cuts, None]
    end = borders[workers.rank + 1]
    return values[int(borders[workers.rank]) : None if end is None else int(end)]


def fit_together(n_workers, crf, X, relevance, weights=None, watched=None, cuts=None, **arguments):
    def work(workers):
        parts = [part(workers, values, cuts) for values in (X, relevance, weights)]
        eval_set = None if watched is None else tuple(part(workers, values) for values in watched)
        return RankingCRF(**crf.get_params()).fit(
            *parts[:2], sample_weight=parts[2], eval_set=eval_set, **arguments
        )

    return together(n_workers, work)


def fit_alone(crf, X, relevance, weights=None, watched=None, **arguments):
    model = RankingCRF(**crf.get_params())
    return model.fit(X, relevance, sample_weight=weights, eval_set=watched, **arguments)


def assert_same(models, alone, X):
    stacked = X if not isinstance(X, list) else np.concatenate(X)
    for model in models:
        np.testing.assert_allclose(model.predict(stacked), alone.predict(stacked), **SAME_SCORES)
        assert model.n_rounds_ == alone.n_rounds_
        assert model.n_skipped_ == alone.n_skipped_
        assert set(model.history_) == set(alone.history_)
        for name in set(alone.history_) - {"seconds"}:
            np.testing.assert_allclose(
                model.history_[name], alone.history_[name], **SAME_SCORES, err_msg=name
            )


OPTIONS = {
    "usual": {},
    "a share of the queries": {"subsample": 0.4},
    "few subsets": {"subset_size": 3, "n_subsets": 1},
    "usual weight of leaves": {"min_child_weight": None},
    "orders that are sampled": {"objective": "loss_scaled", "subset_size": 9, "n_samples": 20},
}


@pytest.mark.parametrize(
    ("n_workers", "name"), [(1, "usual"), *zip([2, 3, 2, 3, 2], OPTIONS, strict=True)]
)
def test_trees_of_all_workers_are_those_of_one(n_workers, name):
    X, relevance = make_queries()
    crf = make(**OPTIONS[name])
    assert_same(fit_together(n_workers, crf, X, relevance), fit_alone(crf, X, relevance), X)


def test_workers_take_sparse_weighted_queries_and_init_model():
    X, relevance = make_queries()
    X = [sparse.csr_matrix(x * (x > -1)) for x in X]
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    for arguments in ({}, {"init_model": make().fit(X, relevance)}):
        crf = make(subsample=0.5)
        models = fit_together(3, crf, X, relevance, weights, **arguments)
        alone = fit_alone(crf, X, relevance, weights, **arguments)
        assert_same(models, alone, sparse.vstack(X, format="csr"))
        assert models[0].n_rounds_ == 8 * (1 + len(arguments))


@pytest.mark.parametrize("metric", ["ndcg@3", lambda relevance, scores, group: len(group)])
def test_early_stopping_uses_queries_of_all_workers(metric):
    X, relevance = make_queries()
    watched = make_queries(1, n_queries=10)
    crf = make(n_estimators=60, early_stopping_rounds=3, eval_metric=metric)
    alone = fit_alone(crf, X, relevance, watched=watched)
    models = fit_together(3, crf, X, relevance, watched=watched)
    assert alone.n_rounds_ < 60
    assert_same(models, alone, X)
    assert all(model.history_["eval_metric"] == alone.history_["eval_metric"] for model in models)


@pytest.mark.parametrize(
    ("scorer", "cuts"),
    [("trees", (0, 15)), ("trees", (1, 1)), ("trees", (20, 40)), ("linear", (1, 1))],
)
def test_worker_may_have_no_learnable_queries(scorer, cuts):
    """A worker may have no query, or only one of a single level, and no part of the eval_set."""
    X, relevance = make_queries()
    watched = make_queries(1, n_queries=2)
    crf = make(scorer, early_stopping_rounds=2)
    alone = fit_alone(crf, X, relevance, watched=watched)
    models = fit_together(3, crf, X, relevance, watched=watched, cuts=cuts)
    if scorer == "trees":
        assert_same(models, alone, X)
    else:
        assert models[0].score(X, relevance) == pytest.approx(
            alone.score(X, relevance), abs=SAME_NDCG
        )


def with_categories(workers, cuts):
    """Data frames of a worker, or of all: what it has seen of a column of categories."""
    X, relevance = make_queries()
    if workers is not ALONE:
        X, relevance = (part(workers, values, cuts) for values in (X, relevance))
    numbers, target = np.concatenate(X), np.concatenate(relevance)
    kinds = np.where(numbers[:, 2] > 2.3, "rare", np.where(target > 1, "best", "plain"))
    frame = pandas.DataFrame({"a": numbers[:, 0], "kind": pandas.Categorical(kinds)})
    return frame, target, [len(x) for x in X]


def test_categories_are_merged_over_workers():
    def fit(workers):
        frame, target, group = with_categories(workers, (3, 20))
        crf = make().fit(frame, target, group=group, eval_set=(frame, target, group))
        return crf, len(frame["kind"].cat.categories)

    models = together(3, fit)
    assert {number for _, number in models} == {2, 3}
    frame, target, group = with_categories(ALONE, None)
    alone = make().fit(frame, target, group=group, eval_set=(frame, target, group))
    assert_same([model for model, _ in models], alone, frame)
    assert all(model.columns_ == alone.columns_ for model, _ in models)


@pytest.mark.parametrize(("cuts", "watched_by"), [((1, 20), 3), ((3, 20), 2)])
def test_categories_need_rows_everywhere(cuts, watched_by):
    def fit(workers):
        frame, target, group = with_categories(workers, cuts)
        eval_set = (frame, target, group) if workers.rank < watched_by else ([], [])
        with pytest.raises(ValueError, match="one has none: use fewer workers"):
            make().fit(frame, target, group=group, eval_set=eval_set)
        return True

    assert together(3, fit) == [True] * 3


def wrong(number, change):
    X, relevance = make_queries()
    X[number], relevance[number] = change(X[number].copy(), relevance[number].copy())
    return X, relevance


WRONG = {
    "query 30, document 1: relevance is -1": lambda X, y: (
        X,
        np.where(np.arange(len(y)) == 1, -1, y),
    ),
    "query 30, document 0: feature 2 is infinite": lambda X, y: (X * [1, 1, np.inf, 1], y),
    "query 30: it has 12 relevance levels": lambda X, y: (
        np.ones((12, 4), np.float32),
        np.arange(12.0),
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_errors_number_queries_over_all_workers(message):
    X, relevance = wrong(30, WRONG[message])

    def work(workers):
        with pytest.raises(ValueError, match=message):
            make().fit(part(workers, X), part(workers, relevance))
        return True

    assert together(3, work) == [True] * 3


def test_workers_with_other_columns():
    X, relevance = make_queries(n_queries=6)
    for others, message in (
        ([features[:, :3] for features in X[3:]], "X has 4 features at worker 0 and 3 at worker 1"),
        (
            [sparse.csr_matrix(features) for features in X[3:]],
            "X holds dense arrays at worker 0 and sparse",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            fit_together(2, make(), X[:3] + others, relevance)


def test_workers_share_the_seed_of_the_first():
    assert len(set(together(3, lambda workers: drawn_seed(None)))) == 1


def test_workers_halve_steps_together():
    """The objective of two of the three workers alone would fall."""
    batch = Batch.from_lengths([2, 2, 2])
    gains, change = np.tile([0.0, 1.0], 3), np.array([0, 8, 0, 8, 12, 0], np.float32)

    class Fixed:
        def __init__(self, change):
            self.change, self.steps = change[:, None], []

        def propose(self, gradient, curvature, number):
            return Addition(self.change, [], self.steps.append)

    def boosted(rows):
        batch = Batch.from_lengths(np.full(len(rows) // 2, 2))
        task = RankingTask(
            RankingObjective("likelihood"),
            Subsets(batch, gains[rows], 2),
            gains[rows],
            np.ones(batch.n_instances),
            1,
            1,
            Before.of(current(), batch),
        )
        function = Fixed(change[rows])
        scores = np.zeros(len(rows), np.float32)
        (record,) = RankingBoosting(task, function, scores, 1.0, seed=0, n_rounds=1).rounds()
        return function.steps, record["halvings"], record["objective"]

    alone = boosted(np.arange(6))
    assert 0 < alone[0][0] < 1
    for steps, halvings, objective in together(
        3, lambda workers: boosted(np.arange(6)[batch.slice_of(workers.rank)])
    ):
        assert (steps, halvings) == alone[:2]
        np.testing.assert_allclose(objective, alone[2], **SAME_SCORES)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_epochs_of_several_workers_are_as_good(n_workers):
    X, relevance = make_queries(n_queries=90)
    X_new, relevance_new = make_queries(1, n_queries=60)
    crf = make("linear", sweeps=4, l2=0.01)
    alone = fit_alone(crf, X, relevance)
    models = fit_together(n_workers, crf, X, relevance)
    for model in models:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        assert (
            model.training_.standing.stands.numbers == models[0].training_.standing.stands.numbers
        )
        assert model.score(X_new, relevance_new) == pytest.approx(
            alone.score(X_new, relevance_new), abs=SAME_NDCG
        )
    if n_workers == 1:
        np.testing.assert_array_equal(models[0].coef_, alone.coef_)


@pytest.mark.xdist_group("cluster")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_on_a_cluster(client):
    """One of the three processes gets no part of the eval_set."""
    X, relevance = make_queries()
    watched = make_queries(1, n_queries=2)
    crf = make(early_stopping_rounds=2)
    with cluster(client):
        trained = RankingCRF(**crf.get_params()).fit(X, relevance, eval_set=watched)
    assert_same([trained], fit_alone(crf, X, relevance, watched=watched), X)
