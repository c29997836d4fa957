"""GBCRF as its users see it: equivalences, continuing, files, inputs, refusals."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.tree import DecisionTreeRegressor

import crfx
from crfx import GBCRF, LinearCRF, load
from crfx.testing import enumerate_instances, make_task
from crfx.trainers.callbacks import Checkpoint

ROUNDING = 1e-6
MARGIN = 1e-5
"""To which our scores equal XGBoost's, round by round (float32 sums in another order)."""


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
    return rows, [(own @ weights).argmax(1) for own in rows]


@pytest.mark.parametrize(("X", "y"), [(X, Y), coarse_task()], ids=["numbers", "ties"])
def test_without_edges_it_is_xgboosts_softmax(X, y):
    import xgboost

    crf = GBCRF(20, 0.3, max_depth=4, edges=None, random_state=0, n_jobs=1).fit(X, y)
    codes = flat([np.searchsorted(crf.classes_, own) for own in y])
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


def test_a_list_gives_lists_and_a_stack_gives_arrays():
    crf = GBCRF(5, random_state=0).fit(X, Y)
    lengths = [len(own) for own in X]
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


@pytest.mark.parametrize("edges", ["table", "linear", "trees", None])
def test_a_saved_model_answers_the_same(tmp_path, edges):
    crf = GBCRF(4, edges=edges, random_state=0).fit(X, Y, eval_set=(X_DEV, Y_DEV))
    crf.save(tmp_path / "model.crfx")
    again = load(tmp_path / "model.crfx")
    assert same(crf.predict_marginals(X_DEV), again.predict_marginals(X_DEV))
    assert same(
        crf.predict_marginals(X_DEV, n_rounds=2), again.predict_marginals(X_DEV, n_rounds=2)
    )
    assert again.get_params() == crf.get_params()
    assert again.history_ == crf.history_
    assert [path.name for path in tmp_path.iterdir()] == ["model.crfx"]


def test_an_interrupted_run_resumes_exactly(tmp_path):
    settings = {"random_state": 0, "subsample": 0.7, "colsample_bynode": 0.5}
    path = tmp_path / "checkpoint.crfx"

    def interrupt(progress):
        if progress.n_rounds == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GBCRF(9, **settings).fit(X, Y, callbacks=[Checkpoint(path, every=2), interrupt])
    checkpoint = load(path)
    assert checkpoint.n_rounds_ == 4
    resumed = GBCRF(9 - 4, **settings).fit(X, Y, init_model=checkpoint)
    whole = GBCRF(9, **settings).fit(X, Y)
    assert same(resumed.predict_marginals(X), whole.predict_marginals(X))


def test_an_interrupted_model_can_be_used_and_continued():
    crf = GBCRF(9, random_state=0)

    def interrupt(progress):
        if progress.n_rounds == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, Y, callbacks=[interrupt])
    assert crf.n_rounds_ == 5
    five, nine = (GBCRF(n, random_state=0).fit(X, Y) for n in (5, 9))
    assert same(crf.predict_marginals(X), five.predict_marginals(X))
    resumed = GBCRF(4, random_state=0).fit(X, Y, init_model=crf)
    assert same(resumed.predict_marginals(X), nine.predict_marginals(X))


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


def test_rounds_can_be_left_out_in_prediction():
    long, short = (GBCRF(n, random_state=0).fit(X, Y) for n in (6, 2))
    assert same(long.predict_marginals(X, n_rounds=2), short.predict_marginals(X))
    with pytest.raises(ValueError, match="the model has 6 rounds"):
        long.predict(X, n_rounds=7)


def as_spans(y):
    """L0, L1, L2 as O, B-X, I-X."""
    names = {"L0": "O", "L1": "B-X", "L2": "I-X"}
    return [[names[label] for label in own] for own in y]


@pytest.mark.parametrize("metric", ["loss", "token_accuracy", "span_f1", lambda a, b: 0.5])
def test_early_stopping_restores_the_best_round(metric):
    crf = GBCRF(60, 0.5, max_depth=3, eval_metric=metric, early_stopping_rounds=3, random_state=0)
    crf.fit(X, as_spans(Y), eval_set={"X": X_DEV, "y": as_spans(Y_DEV)})
    values = np.array(crf.history_["eval_metric"])
    best = values.argmin() if metric == "loss" else values.argmax()
    assert crf.best_iteration_ == best
    assert crf.n_rounds_ == best + 1 == len(values) - 3 or len(values) == 60
    if metric in ("loss", "span_f1"):
        assert len(set(values)) > 2
    fresh = GBCRF(best + 1, 0.5, max_depth=3, random_state=0).fit(X, as_spans(Y))
    assert same(crf.predict_marginals(X), fresh.predict_marginals(X))


def test_the_eval_metric_is_that_of_the_model():
    crf = GBCRF(4, random_state=0).fit(X, Y, eval_set=(X_DEV, Y_DEV))
    rows = sum(map(len, Y_DEV))
    loss = -crf.log_likelihood(X_DEV, Y_DEV).sum() / rows
    np.testing.assert_allclose(crf.history_["eval_metric"][-1], loss, rtol=1e-5)
    scored = GBCRF(4, random_state=0, eval_metric="token_accuracy")
    scored.fit(X, Y, eval_set=(X_DEV, Y_DEV))
    assert scored.history_["eval_metric"][-1] == scored.score(X_DEV, Y_DEV)


@pytest.mark.parametrize("edges", ["table", None])
@pytest.mark.parametrize("step", [0.3, 1.0])
def test_the_objective_falls_without_any_regularisation(edges, step):
    """Where rows become all but certain, marginals must not exceed 1, nor steps explode."""
    random = np.random.default_rng(0)
    noisy = [[label if random.random() < 0.9 else "L1" for label in y] for y in Y]
    settings = {"min_child_weight": 0, "reg_lambda": 0, "edge_l2": 0.0, "max_depth": 2}
    crf = GBCRF(60, step, edges=edges, random_state=0, n_jobs=1, **settings).fit(X, noisy)
    objective = crf.history_["objective"]
    assert (np.diff(objective) <= 0).all()
    own = -crf.log_likelihood(X, noisy).sum()
    np.testing.assert_allclose(objective[-1], own, rtol=1e-4, atol=1e-5)
    assert objective[-1] < 0.2 * objective[0]


def test_the_objective_is_the_likelihood_and_the_penalties():
    crf = GBCRF(4, edge_l2=2.0, random_state=0).fit(X, Y)
    tables = [crf.transitions_, *crf.model_.ends.tables.values()]
    penalty = sum(float((table.astype(float) ** 2).sum()) for table in tables)
    expected = -crf.log_likelihood(X, Y).sum() + penalty
    np.testing.assert_allclose(crf.history_["objective"][-1], expected, rtol=1e-5)


def test_unknown_labels_are_summed_over():
    random = np.random.default_rng(0)
    hidden = [[None if random.random() < 0.5 else label for label in own] for own in Y]
    crf = GBCRF(15, random_state=0).fit(X, hidden)
    assert crf.score(X, Y) > 0.8
    known = GBCRF(15, random_state=0).fit(X, Y)
    assert known.log_likelihood(X, Y).sum() > crf.log_likelihood(X, Y).sum()
    assert (crf.log_likelihood(X, hidden) >= crf.log_likelihood(X, Y) - 1e-6).all()


def test_weights_of_instances():
    heavy = np.where(np.arange(len(X)) < 5, 2.0, 1.0)
    weighted = GBCRF(3, random_state=0).fit(X, Y, sample_weight=heavy)
    repeated = GBCRF(3, random_state=0).fit(X + X[:5], Y + Y[:5])
    np.testing.assert_allclose(
        weighted.history_["objective"], repeated.history_["objective"], rtol=1e-4
    )
    without = GBCRF(3, random_state=0).fit(X, Y, sample_weight=np.where(heavy == 2, 0.0, 1.0))
    less = GBCRF(3, random_state=0).fit(X[5:], Y[5:])
    np.testing.assert_allclose(without.history_["objective"], less.history_["objective"], rtol=1e-4)


def test_a_base_model_of_another_kind_stays_underneath():
    base = GBCRF(3, edges=None, random_state=0).fit(X, Y)
    crf = GBCRF(3, random_state=0).fit(X, Y, init_model=base)
    zero = GBCRF(0, random_state=0).fit(X, Y, init_model=base)
    np.testing.assert_allclose(
        flat(zero.predict_marginals(X)), flat(base.predict_marginals(X)), atol=ROUNDING
    )
    assert crf.log_likelihood(X, Y).sum() > base.log_likelihood(X, Y).sum()
    assert crf.history_["objective"][0] < base.history_["objective"][-1]


def test_a_saved_base_comes_along(tmp_path):
    base = GBCRF(3, edges="linear", random_state=0).fit(X, Y)
    crf = GBCRF(2, edges="table", random_state=0).fit(X, Y, init_model=base)
    crf.save(tmp_path / "m.crfx")
    assert same(load(tmp_path / "m.crfx").predict_marginals(X), crf.predict_marginals(X))


def test_sparse_and_missing_features():
    random = np.random.default_rng(0)
    holes = [np.where(random.random(own.shape) < 0.3, np.nan, own) for own in X]
    dense = GBCRF(5, random_state=0).fit(holes, Y)
    # Absent entries are missing for trees: the same as NaN.
    csr = []
    for own in holes:
        rows, columns = np.nonzero(~np.isnan(own))
        csr.append(sparse.csr_matrix((own[rows, columns], (rows, columns)), shape=own.shape))
    thin = GBCRF(5, random_state=0).fit(csr, Y)
    np.testing.assert_allclose(
        flat(thin.predict_marginals(csr)), flat(dense.predict_marginals(holes)), atol=1e-6
    )
    nothing = [np.column_stack([own, np.full(len(own), np.nan)]) for own in X]
    GBCRF(2, random_state=0).fit(nothing, Y)


def test_xgboosts_complaints_come_without_a_stack_trace():
    with pytest.raises(ValueError, match=r"^XGBoost: [^\n]*sometimes[^\n]*$"):
        GBCRF(1, tree_params={"max_delta_step": "sometimes"}).fit(X, Y)


def test_contributions_add_up_to_the_scores():
    crf = GBCRF(5, random_state=0).fit(X, Y)
    values = flat(crf.predict_contributions(X))
    scores = crf.model_.node.scores(flat(X), len(flat(X)))
    np.testing.assert_allclose(values.sum(axis=2), scores, atol=1e-4)


def test_any_regressor_can_take_the_place_of_trees(tmp_path):
    crf = GBCRF(8, base_learner=DecisionTreeRegressor(max_depth=3), random_state=0).fit(X, Y)
    assert crf.score(X, Y) > 0.8
    assert (np.diff(crf.history_["objective"]) <= 0).all()
    with pytest.raises(ValueError, match="cannot be saved"):
        crf.save(tmp_path / "m.crfx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_same_seed_gives_the_same_model(n_jobs):
    settings = {"subsample": 0.7, "colsample_bynode": 0.5}
    one = GBCRF(5, random_state=3, n_jobs=1, **settings).fit(X, Y)
    two = GBCRF(5, random_state=3, n_jobs=n_jobs, **settings).fit(X, Y)
    np.testing.assert_allclose(
        flat(one.predict_marginals(X)), flat(two.predict_marginals(X)), atol=1e-5
    )
    other = GBCRF(5, random_state=4, n_jobs=1, **settings).fit(X, Y)
    assert not same(one.predict_marginals(X), other.predict_marginals(X))


def test_it_is_an_estimator_of_scikit_learn():
    crf = GBCRF(3, max_depth=2, tree_params={"gamma": 0.1})
    assert clone(crf).get_params() == crf.get_params()
    search = GridSearchCV(GBCRF(2, random_state=0), {"max_depth": [1, 3]}, cv=KFold(2))
    search.fit(X, Y)
    assert search.best_score_ > 0.6
    with pytest.raises(NotFittedError, match="call fit first"):
        GBCRF().predict(X)


def test_short_and_empty_instances_and_one_class():
    short = [*X, np.zeros((0, 4), np.float32), X[0][:1]]
    labels = [*Y, [], Y[0][:1]]
    crf = GBCRF(3, order=2, random_state=0).fit(short, labels)
    assert [len(own) for own in crf.predict(short)] == [len(own) for own in short]
    lone = GBCRF(2, random_state=0).fit(X, [["A"] * len(own) for own in X])
    assert set(flat(lone.predict(X))) == {"A"}
    np.testing.assert_allclose(flat(lone.predict_marginals(X)), 1.0)


def test_marginal_decoding_takes_the_best_label_of_each_position():
    crf = GBCRF(3, decode="marginal", random_state=0).fit(X, Y)
    best = crf.classes_[flat(crf.predict_marginals(X)).argmax(axis=1)]
    np.testing.assert_array_equal(flat(crf.predict(X)), best)


REFUSED = {
    "unequal": ({"y": Y[:-1]}, "y has 29 instances but X has 30"),
    "short labels": ({"y": [Y[0][:-1], *Y[1:]]}, "instance 0: y has"),
    "features": ({"X": [X[0][:, :3], *X[1:]]}, "instance 1: X has 4 features, instance 0 has 3"),
    "infinite": ({"X": [np.full_like(X[0], np.inf), *X[1:]]}, "instance 0, position 0: feature 0"),
    "text": ({"X": [X[0].astype(str), *X[1:]]}, "instance 0: X has dtype"),
    "one axis": ({"X": [X[0][:, 0], *X[1:]]}, "instance 0: X has shape"),
    "no lengths": ({"X": flat(X), "y": flat(Y)}, "pass lengths="),
    "lengths of a list": ({"lengths": [1]}, "X is a list"),
    "nothing": ({"X": [], "y": []}, "X has no instances"),
    "all unknown": ({"y": [[None] * len(own) for own in Y]}, "no known label"),
    "mixed labels": ({"y": [[1] * len(Y[0]), *Y[1:]]}, "cannot be compared"),
    "weights": ({"sample_weight": [1.0]}, "one weight per instance"),
    "negative weight": ({"sample_weight": [-1.0] * 30}, "instance 0: its weight"),
    "new label": (
        {"eval_set": ([X[0]], [["??"] * len(Y[0])])},
        "eval_set has no label that the model",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused(name):
    changes, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        GBCRF(1).fit(**{"X": X, "y": Y, **changes})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": 1.5}, "learning_rate"),
        ({"subsample": 0.0}, "subsample"),
        ({"edges": "tables"}, "edges is 'tables'"),
        ({"curvature": "newton"}, "curvature is 'newton'"),
        ({"decode": "best"}, "decode is 'best'"),
        ({"order": 0}, "order is 0: it must be a whole number of 1 or more; edges=None"),
        ({"order": np.nan}, "order is nan: it must be a whole number"),
        ({"order": 2.0}, "order is 2.0: it must be a whole number"),
        ({"eval_metric": "f1"}, "eval_metric is 'f1'"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds"),
        ({"tree_params": {"eta": 0.1}}, "tree_params holds eta"),
        ({"tree_params": {"lambda": 0.1}}, "tree_params holds lambda"),
        ({"tree_params": {"max_depth": 3}}, "tree_params holds max_depth"),
        ({"tree_params": {"alpha": 3}, "base_learner": DecisionTreeRegressor()}, "for XGBoost"),
        ({"n_estimators": 2.5}, "n_estimators is 2.5"),
        ({"n_estimators": "a"}, "n_estimators is 'a'"),
        ({"max_bin": 1}, "max_bin is 1"),
        ({"edge_l2": -1.0}, "edge_l2 is -1.0"),
        ({"reg_lambda": -1.0}, "reg_lambda is -1.0"),
        ({"reg_lambda": np.nan}, "reg_lambda is nan"),
        ({"min_child_weight": np.nan}, "min_child_weight is nan"),
        ({"min_child_weight": -0.5}, "min_child_weight is -0.5"),
        ({"start_end": "no"}, "start_end is 'no': it must be True or False"),
        ({"tree_params": [("gamma", 1)]}, "tree_params is a list: pass a dict"),
        ({"order": 20}, r"3\^21 = 1.05e\+10 entries"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        GBCRF(**{"n_estimators": 1, **arguments}).fit(X, Y, eval_set=(X_DEV, Y_DEV))


@pytest.mark.parametrize("edges", ["table", "linear", "trees"])
def test_types_of_edges_that_would_fill_the_memory(edges):
    types = [np.full(len(own), 10**9) for own in X]
    with pytest.raises(ValueError, match=r"1000000001 edge types.*from 0, without gaps"):
        GBCRF(1, edges=edges).fit(X, Y, edge_types=types)
    if edges == "table":
        with pytest.raises(ValueError, match=r"1000000001 edge types"):
            LinearCRF(edges=edges).fit(X, Y, edge_types=types)


def test_weights_must_leave_something_to_learn_from():
    with pytest.raises(ValueError, match="sample_weight is zero for every instance"):
        GBCRF(1).fit(X, Y, sample_weight=np.zeros(len(X)))
    filled = [own[:0] if i == 0 else own for i, own in enumerate(X)]
    labels = [own[:0] if i == 0 else own for i, own in enumerate(Y)]
    with pytest.raises(ValueError, match="sample_weight is zero for every instance"):
        GBCRF(1).fit(filled, labels, sample_weight=np.arange(len(X)) == 0)


def test_ends_are_there_or_not():
    with pytest.raises(ValueError, match="start_end is 1: it must be True or False"):
        LinearCRF(start_end=1).fit(X, Y)


def test_checkpoints_come_after_whole_rounds(tmp_path):
    for every in (0, 1.5, True, np.nan):
        with pytest.raises(ValueError, match=f"every is {every}: it must be a whole number"):
            Checkpoint(tmp_path / "m.crfx", every=every)


def test_rounds_are_whole():
    crf = GBCRF(3).fit(X, Y)
    for ask in (crf.predict, crf.predict_contributions):
        for n_rounds in (1.5, True, "1", 4, -1):
            with pytest.raises(ValueError, match="whole number from 0 to 3"):
                ask(X, n_rounds=n_rounds)
        ask(X, n_rounds=np.int64(2))


def test_an_order_of_numpy_is_saved(tmp_path):
    for crf in (GBCRF(1, order=np.int64(2)), LinearCRF(order=np.int64(2))):
        crf.fit(X, Y).save(tmp_path / "m.crfx")
        assert same(load(tmp_path / "m.crfx").predict(X), crf.predict(X))


def test_what_does_not_go_together_is_refused():
    parents = [np.arange(len(own)) - 1 for own in X]
    with pytest.raises(ValueError, match="order=2"):
        GBCRF(1, order=2).fit(X, Y, parents=parents)
    with pytest.raises(ValueError, match="needs an eval_set"):
        GBCRF(1, early_stopping_rounds=2).fit(X, Y)
    crf = GBCRF(1).fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features"):
        crf.predict([own[:, :3] for own in X])
    with pytest.raises(ValueError, match="edge_types"):
        crf.predict(X, edge_types=[np.zeros(len(own), int) for own in X])


def rewritten(path, change):
    """The same file with another manifest, or without some of its members."""
    import json
    import zipfile

    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["model.json"])
    change(manifest, members)
    members["model.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


INCONSISTENT = {
    "order": (lambda m, z: m["model"].update(order=300_000_000), "its order is 300000000"),
    "table": (lambda m, z: m["model"].update(order=90), "tables that are too large"),
    "types": (lambda m, z: m["model"].update(n_types=3_000_000), "its n_types is 3000000"),
    "no types": (lambda m, z: m["model"].update(n_types=0), "its n_types is 0"),
    "trees gone": (lambda m, z: z.pop("node.ubj"), "the trees node are not those of 3 rounds"),
    "edges gone": (lambda m, z: z.pop("edge0.ubj"), "the trees edge0 are not those of 3 rounds"),
    "labels": (lambda m, z: m.update(labels=["L0", "L1", "L1"]), "a label is there twice"),
    "names": (lambda m, z: m.update(feature_names=["a"]), "features are told in different ways"),
    "categories": (lambda m, z: m.update(categories={"a": ["b"]}), "a feature that it has not"),
    "no tables": (lambda m, z: m["model"]["tables"]["ends"].update(names=[]), "without names"),
    "rounds": (
        lambda m, z: m["model"]["tables"]["ends"].update(by_round=False),
        "the table start has shape",
    ),
}


@pytest.mark.parametrize("name", INCONSISTENT)
def test_a_file_at_odds_with_itself_is_refused_at_once(tmp_path, name):
    change, message = INCONSISTENT[name]
    GBCRF(3, edges="trees", max_depth=2, random_state=0).fit(X, Y).save(tmp_path / "m.crfx")
    assert load(rewritten(tmp_path / "m.crfx", lambda m, z: None)).n_rounds_ == 3
    with pytest.raises(ValueError, match=message):
        load(rewritten(tmp_path / "m.crfx", change))


@pytest.mark.parametrize("forest", [False, True])
def test_a_file_that_does_not_say_whether_it_is_of_forests(tmp_path, forest):
    parents = {"parents": [np.arange(len(x)) - 1 for x in X]} if forest else {}
    crf = GBCRF(2, random_state=0).fit(X, Y, **parents)
    crf.save(tmp_path / "m.crfx")
    path = rewritten(tmp_path / "m.crfx", lambda m, z: m["model"].pop("is_forest"))
    assert load(path).model_.is_forest == forest
    assert same(load(path).predict_marginals(X, **parents), crf.predict_marginals(X, **parents))


def test_what_a_file_keeps_of_the_arguments(tmp_path):
    own = {"random_state": np.int64(3), "tree_params": {"gamma": np.float32(0.5)}}
    GBCRF(1, **own).fit(X, Y).save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx").get_params()
    assert (again["random_state"], again["tree_params"]) == (3, {"gamma": 0.5})

    class Mine(GBCRF):
        pass

    with pytest.raises(ValueError, match="a Mine cannot be saved"):
        Mine(1).fit(X, Y).save(tmp_path / "mine.crfx")


def test_a_file_that_is_no_model_is_refused(tmp_path):
    path = tmp_path / "m.crfx"
    path.write_bytes(b"not a model")
    with pytest.raises(ValueError, match=r"m\.crfx is not a model file"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.crfx")


def test_without_edges_chains_may_watch_a_training_on_forests():
    """The loss of the evaluation set has its own structure."""
    parents = [np.arange(-1, len(x) - 1) for x in X]
    settings = {"edges": None, "objective": "pseudo_likelihood", "random_state": 0, "n_jobs": 1}
    forests = GBCRF(2, **settings).fit(X, Y, parents=parents, eval_set=(X, Y))
    chains = GBCRF(2, **settings).fit(X, Y, eval_set=(X, Y))
    assert forests.history_["eval_metric"] == chains.history_["eval_metric"]
