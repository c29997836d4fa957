"""GBCRF as its users see it: equivalences, resuming, files, arguments."""

import shutil

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

import crfx
from crfx import GBCRF, LinearCRF, TreeCRF, load
from crfx.testing import enumerate_instances, make_task
from crfx.trainers.callbacks import Checkpoint

ROUNDING = 1e-6
MARGIN = 1e-5
"""To which our scores equal XGBoost's, round by round (float32 sums in another order)."""
SETTINGS = {"learning_rate": 0.5, "random_state": 0, "n_jobs": 1}


X, Y = make_task()
X_DEV, Y_DEV = make_task(1, 10)


def flat(parts):
    return np.concatenate(parts)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def coarse_task():
    """Binary features: many splits are equally good, and a rounding decides between them."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 9, 300)
    rows = [(rng.random((n, 40)) < 0.4).astype(np.float32) for n in lengths]
    weights = rng.normal(size=(40, 19))
    return rows, [(x @ weights).argmax(1) for x in rows]


@pytest.mark.parametrize(("X", "y"), [(X, Y), coarse_task()], ids=["numbers", "ties"])
def test_gbcrf_without_edges_equals_xgboost_softmax(X, y):
    import xgboost

    crf = GBCRF(20, 0.3, max_depth=4, edges=None, random_state=0, n_jobs=1).fit(X, y)
    codes = flat([np.searchsorted(crf.classes_, labels) for labels in y])
    data = xgboost.QuantileDMatrix(flat(X), codes, max_bin=256)
    params = {
        "objective": "multi:softprob",
        "num_class": len(crf.classes_),
        "eta": 0.3,
        "max_depth": 4,
        "base_score": 0.0,
        "max_bin": 256,
        "nthread": 1,
    }
    booster = xgboost.train(params, data, 20)
    for rounds in (1, 5, 20):
        theirs = booster.predict(
            xgboost.DMatrix(flat(X)), output_margin=True, iteration_range=(0, rounds)
        )
        mine = crf.model_.node.scores(flat(X), len(flat(X)), rounds)
        np.testing.assert_allclose(mine, theirs, atol=MARGIN)
    ours = crf.model_.problem(crfx.batch.Batch.from_lengths(list(map(len, X)), X=flat(X)))
    assert ours.scores.edge is None
    assert ours.scores.start is None


def test_probabilities_are_those_of_the_scores():
    crf = GBCRF(5, random_state=0).fit(X, Y)
    batch = crfx.batch.Batch.from_lengths([len(X[0])], X=X[0])
    scores = crf.model_.problem(batch).scores
    (listed,) = enumerate_instances(
        scores.node, scores.edge, [0, len(X[0])], start=scores.start, end=scores.end
    )
    marginals = crf.predict_marginals([X[0]])[0]
    np.testing.assert_allclose(
        marginals.ravel(), listed.marginals(listed.node_events).ravel(), atol=1e-5
    )
    best = crf.predict_kbest([X[0]], 3)[0]
    order = np.argsort(-listed.probabilities)[:3]
    np.testing.assert_allclose([p for _, p in best], listed.probabilities[order], atol=1e-5)
    for (labels, _), expected in zip(best, listed.labels[order], strict=True):
        assert labels.tolist() == crf.classes_[expected].tolist()
    codes = np.searchsorted(crf.classes_, Y[0])
    at = (listed.labels == codes).all(axis=1)
    expected = np.log(listed.probabilities[at])
    np.testing.assert_allclose(crf.log_likelihood([X[0]], [Y[0]]), expected, atol=1e-5)


def test_predict_returns_lists_for_lists_and_arrays_for_stacks():
    crf = GBCRF(5, random_state=0).fit(X, Y)
    lengths = [len(x) for x in X]
    other = GBCRF(5, random_state=0).fit(flat(X), flat(Y), lengths=lengths)
    assert same(
        crf.predict(X), np.split(other.predict(flat(X), lengths=lengths), np.cumsum(lengths)[:-1])
    )
    assert crf.predict_edge_marginals(X)[0].shape == (len(X[0]), 3, 3)
    assert crf.sample(X, 4)[0].shape == (4, len(X[0]))
    assert other.sample(flat(X), 4, lengths=lengths).shape == (4, sum(lengths))
    assert crf.score(X, Y) == other.score(flat(X), flat(Y), lengths=lengths) > 0.8


@pytest.mark.parametrize("edges", ["table", "linear", "trees", None])
def test_continued_training_equals_one_longer_run(edges):
    settings = {"edges": edges, "random_state": 0, "subsample": 0.8, "colsample_bynode": 0.5}
    whole = GBCRF(6, **settings).fit(X, Y)
    first = GBCRF(2, **settings).fit(X, Y)
    before = first.predict_marginals(X)
    second = GBCRF(4, **settings).fit(X, Y, init_model=first)
    # Linear scores are summed over rounds in training, weights in a model: equal to rounding.
    rounding = 1e-5 if edges == "linear" else 0.0
    np.testing.assert_allclose(
        flat(whole.predict_marginals(X)), flat(second.predict_marginals(X)), rtol=0, atol=rounding
    )
    assert same(before, first.predict_marginals(X))  # the old model is left as it was
    np.testing.assert_allclose(
        second.history_["objective"], whole.history_["objective"], rtol=rounding
    )
    assert second.n_rounds_ == 6


def test_an_interrupted_run_resumes_exactly(tmp_path):
    """The run resumes from the checkpoint and from the interrupted estimator."""
    settings = {"random_state": 0, "subsample": 0.7, "colsample_bynode": 0.5}
    path = tmp_path / "checkpoint.crfx"

    def interrupt(progress):
        if progress.n_rounds == 5:
            raise KeyboardInterrupt

    crf = GBCRF(9, **settings)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, Y, callbacks=[Checkpoint(path, every=2), interrupt])
    whole = GBCRF(9, **settings).fit(X, Y)
    assert same(crf.predict_marginals(X), whole.predict_marginals(X, n_rounds=5))
    checkpoint = load(path)
    assert (checkpoint.n_rounds_, crf.n_rounds_) == (4, 5)
    for old in (checkpoint, crf):
        resumed = GBCRF(9 - old.n_rounds_, **settings).fit(X, Y, init_model=old)
        assert same(resumed.predict_marginals(X), whole.predict_marginals(X))


def test_a_round_may_grow_a_forest(tmp_path):
    """Several trees per label and round, averaged: rounds, not trees, are counted and cut."""
    settings = {
        "tree_params": {"num_parallel_tree": 3},
        "colsample_bynode": 0.5,
        "random_state": 0,
    }
    long, short = (GBCRF(n, **settings).fit(X, Y) for n in (5, 2))
    assert long.n_rounds_ == 5
    assert same(long.predict_marginals(X, n_rounds=2), short.predict_marginals(X))
    continued = GBCRF(3, **settings).fit(X, Y, init_model=short)
    # In training the trees of a round are summed, then shrunk; in a model the other way round.
    np.testing.assert_allclose(
        flat(continued.predict_marginals(X)), flat(long.predict_marginals(X)), rtol=0, atol=MARGIN
    )
    long.save(tmp_path / "forest.crfx")
    again = load(tmp_path / "forest.crfx")
    assert again.n_rounds_ == 5
    assert same(again.predict_marginals(X), long.predict_marginals(X))
    one = GBCRF(5, colsample_bynode=0.5, random_state=0).fit(X, Y)
    assert not same(one.predict_marginals(X), long.predict_marginals(X))


def as_spans(y):
    """L0, L1, L2 as O, B-X, I-X."""
    names = {"L0": "O", "L1": "B-X", "L2": "I-X"}
    return [[names[label] for label in labels] for labels in y]


@pytest.mark.parametrize(
    ("kind", "metric"),
    [(GBCRF, "loss"), (GBCRF, "span_f1"), (GBCRF, lambda a, b: 0.5), (TreeCRF, "loss")],
)
def test_early_stopping_restores_the_best_round(kind, metric):
    size = {"max_depth": 3} if kind is GBCRF else {"max_leaves": 6}
    crf = kind(60, eval_metric=metric, early_stopping_rounds=3, **SETTINGS, **size)
    crf.fit(X, as_spans(Y), eval_set={"X": X_DEV, "y": as_spans(Y_DEV)})
    values = np.array(crf.history_["eval_metric"])
    best = values.argmin() if metric == "loss" else values.argmax()
    assert crf.best_iteration_ == best
    assert crf.n_rounds_ == best + 1 == len(values) - 3 < 57
    assert len(set(values)) > 2 or callable(metric)
    fresh = kind(best + 1, **SETTINGS, **size).fit(X, as_spans(Y))
    assert same(crf.predict_marginals(X), fresh.predict_marginals(X))


@pytest.mark.parametrize("kind", [GBCRF, TreeCRF])
def test_eval_metric_agrees_with_final_model(kind):
    crf = kind(4, random_state=0).fit(X, Y, eval_set=(X_DEV, Y_DEV))
    loss = -crf.log_likelihood(X_DEV, Y_DEV).sum() / sum(map(len, Y_DEV))
    np.testing.assert_allclose(crf.history_["eval_metric"][-1], loss, rtol=1e-5)
    crf = kind(4, random_state=0, eval_metric="token_accuracy")
    crf.fit(X, Y, eval_set=(X_DEV, Y_DEV))
    assert crf.history_["eval_metric"][-1] == crf.score(X_DEV, Y_DEV)
    first = flat(crf.predict(X_DEV, n_rounds=1)) == flat(Y_DEV)
    assert crf.history_["eval_metric"][0] == first.mean()


@pytest.mark.parametrize(("edges", "step"), [("table", 1.0), (None, 0.3)])
def test_objective_falls_without_regularisation(edges, step):
    """When rows become almost certain, marginals must not exceed 1 and steps must not explode."""
    random = np.random.default_rng(0)
    noisy = [[label if random.random() < 0.9 else "L1" for label in y] for y in Y]
    settings = {"min_child_weight": 0, "reg_lambda": 0, "edge_l2": 0.0, "max_depth": 2}
    crf = GBCRF(60, step, edges=edges, random_state=0, n_jobs=1, **settings).fit(X, noisy)
    objective = crf.history_["objective"]
    assert (np.diff(objective) <= 0).all()
    loss = -crf.log_likelihood(X, noisy).sum()
    np.testing.assert_allclose(objective[-1], loss, rtol=1e-4, atol=1e-5)
    assert objective[-1] < 0.2 * objective[0]


def test_objective_is_likelihood_plus_penalties():
    crf = GBCRF(4, edge_l2=2.0, random_state=0).fit(X, Y)
    tables = [crf.transitions_, *crf.model_.ends.tables.values()]
    penalty = sum(float((table.astype(float) ** 2).sum()) for table in tables)
    expected = -crf.log_likelihood(X, Y).sum() + penalty
    np.testing.assert_allclose(crf.history_["objective"][-1], expected, rtol=1e-5)


def test_a_model_of_regressors_learns_and_is_not_saved(tmp_path):
    crf = GBCRF(8, base_learner=DecisionTreeRegressor(max_depth=3), random_state=0).fit(X, Y)
    assert crf.score(X, Y) > 0.8
    assert (np.diff(crf.history_["objective"]) <= 0).all()
    with pytest.raises(ValueError, match="cannot be saved"):
        crf.save(tmp_path / "m.crfx")
    assert not list(tmp_path.iterdir())


def test_the_same_seed_gives_the_same_model():
    settings = {"subsample": 0.7, "colsample_bynode": 0.5}
    one, again = (GBCRF(5, random_state=3, n_jobs=n, **settings).fit(X, Y) for n in (1, 2))
    np.testing.assert_allclose(
        flat(one.predict_marginals(X)), flat(again.predict_marginals(X)), atol=1e-5
    )
    other = GBCRF(5, random_state=4, n_jobs=1, **settings).fit(X, Y)
    assert not same(one.predict_marginals(X), other.predict_marginals(X))


def test_fit_rejects_arguments_at_their_bounds(not_refused):
    def fit(arguments):
        return GBCRF(**{"n_estimators": 1, **arguments}).fit(X, Y, eval_set=(X_DEV, Y_DEV))

    cases = [
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"subsample": 0.0}, "subsample"),
        ({"order": 0}, "order is 0: it must be a whole number of 1 or more; edges=None"),
        ({"order": 2.0}, "order is 2.0: it must be a whole number"),
        ({"order": 20}, r"3\^21 = 1.05e\+10 entries"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds"),
        ({"tree_params": {"lambda": 0.1}}, "tree_params holds lambda"),
        ({"max_bin": 1}, "max_bin is 1"),
    ]
    assert not_refused(fit, {str(case): (case, message) for case, message in cases}) == {}


def test_fit_rejects_edge_types_too_large_for_memory():
    types = [np.full(len(x), 10**9) for x in X]
    for edges in ("table", "linear", "trees"):
        with pytest.raises(ValueError, match=r"1000000001 edge types.*from 0, without gaps"):
            GBCRF(1, edges=edges).fit(X, Y, edge_types=types)


def test_checkpoint_rejects_fractional_intervals(tmp_path):
    for every in (True, np.nan):
        with pytest.raises(ValueError, match=f"every is {every}: it must be a whole number"):
            Checkpoint(tmp_path / "m.crfx", every=every)


@pytest.mark.parametrize("kind", [GBCRF, TreeCRF])
def test_n_rounds_predicts_as_shorter_training(kind):
    long, short = (kind(n, random_state=0).fit(X, Y) for n in (6, 2))
    assert same(long.predict_marginals(X, n_rounds=np.int64(2)), short.predict_marginals(X))
    if kind is GBCRF:
        contributions = long.predict_contributions(X, n_rounds=2)
        assert same(contributions, short.predict_contributions(X))
        with pytest.raises(ValueError, match="whole number from 0 to 6"):
            long.predict_contributions(X, n_rounds=7)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file of three rounds of trees for positions and edges."""
    path = tmp_path_factory.mktemp("saved") / "m.crfx"
    GBCRF(3, edges="trees", max_depth=2, random_state=0).fit(X, Y).save(path)
    return path


INCONSISTENT = {
    "order": (lambda m: m["model"].update(order=300_000_000), "its order is 300000000"),
    "table": (lambda m: m["model"].update(order=90), "tables that are too large"),
    "types": (lambda m: m["model"].update(n_types=3_000_000), "its n_types is 3000000"),
    "no types": (lambda m: m["model"].update(n_types=0), "its n_types is 0"),
    "labels": (lambda m: m.update(labels=["L0", "L1", "L1"]), "a label is there twice"),
    "names": (lambda m: m.update(feature_names=["a"]), "features are told in different ways"),
    "categories": (lambda m: m.update(categories={"a": ["b"]}), "a feature that it has not"),
    "no tables": (lambda m: m["model"]["tables"]["ends"].update(names=[]), "without names"),
    "rounds": (
        lambda m: m["model"]["tables"]["ends"].update(by_round=False),
        "the table start has shape",
    ),
    "trees gone": ("node.ubj", "the trees node are not those of 3 rounds"),
    "edges gone": ("edge0.ubj", "the trees edge0 are not those of 3 rounds"),
}
"""Changes of the manifest, or members to leave out, and what is then said."""


def test_load_rejects_inconsistent_files(saved, tmp_path, changed, not_refused):
    def read(change):
        path = shutil.copy(saved, tmp_path / "m.crfx")
        if isinstance(change, str):
            changed(path, without=[change])
        else:
            changed(path, change)
        return load(path).n_rounds_

    assert read(lambda manifest: None) == 3
    assert not_refused(read, INCONSISTENT) == {}


def test_load_detects_forests_in_early_files(tmp_path, changed):
    for parents in ({}, {"parents": [np.arange(len(x)) - 1 for x in X]}):
        crf = GBCRF(2, random_state=0).fit(X, Y, **parents)
        crf.save(tmp_path / "m.crfx")
        changed(tmp_path / "m.crfx", lambda manifest: manifest["model"].pop("is_forest"))
        again = load(tmp_path / "m.crfx")
        assert again.model_.is_forest == bool(parents)
        assert same(again.predict_marginals(X, **parents), crf.predict_marginals(X, **parents))


def test_save_keeps_numpy_arguments(tmp_path):
    arguments = {"order": np.int64(2), "random_state": np.int64(3)}
    for crf in (
        GBCRF(1, tree_params={"gamma": np.float32(0.5)}, **arguments),
        LinearCRF(**arguments),
    ):
        crf.fit(X, Y).save(tmp_path / "m.crfx")
        again = load(tmp_path / "m.crfx")
        assert again.get_params() == crf.get_params()
        assert same(again.predict(X), crf.predict(X))


def test_save_rejects_user_classes(tmp_path):
    class Mine(GBCRF):
        pass

    with pytest.raises(ValueError, match="a Mine cannot be saved"):
        Mine(1).fit(X, Y).save(tmp_path / "mine.crfx")


def test_eval_set_of_chains_for_forests_without_edges():
    """The loss of the evaluation set has its own structure."""
    parents = [np.arange(-1, len(x) - 1) for x in X]
    settings = {"edges": None, "objective": "pseudo_likelihood", "random_state": 0, "n_jobs": 1}
    forests = GBCRF(2, **settings).fit(X, Y, parents=parents, eval_set=(X, Y))
    chains = GBCRF(2, **settings).fit(X, Y, eval_set=(X, Y))
    assert forests.history_["eval_metric"] == chains.history_["eval_metric"]


def test_fit_takes_subclasses_with_attributes_of_other_estimators():
    class Mine(GBCRF):
        trainer = "somebody"

    X, y = [np.eye(2)] * 3, [["a", "b"]] * 3
    assert Mine(2).fit(X, y).n_rounds_ == 2
