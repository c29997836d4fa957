"""TreeCRF as its users see it: what it can learn that sums cannot, ends, orders, structures."""

import os

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from crfx import GBCRF, LinearCRF, TreeCRF, _core
from crfx.inputs.passed import Passed
from crfx.inputs.training_set import InputSettings, Start, read_training_set
from crfx.model.building import new_context_model
from crfx.potentials.context_trees import ContextTrees, parse_window
from crfx.prediction import predictor
from crfx.testing import enumerate_instances, make_task
from crfx.trainers.blocks import row_sampler
from crfx.trainers.boosting import WorkingScores
from crfx.trainers.context_block import context_blocks

X, Y = make_task()
X_DEV, Y_DEV = make_task(1, 12)
ONE = {"random_state": 0, "n_jobs": 1}
PROBABLE = {"rtol": 1e-5, "atol": 1e-6}
"""Scores are float32."""


def flat(parts):
    return np.concatenate(parts)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def random_parents(X, seed=0):
    random = np.random.default_rng(seed)
    return [
        np.array([random.integers(-1, t) if t else -1 for t in range(len(x))], dtype=np.int64)
        for x in X
    ]


# The gradient.


def slopes_at(crf, seed=0, **structure):
    """Return gradient and curvature at random scores, those scores, and the truth."""
    random = np.random.default_rng(seed)
    lengths = [4, 1, 3, 2]
    X = [random.normal(size=(n, 2)) for n in lengths]
    y = [list(random.integers(2, size=n)) for n in lengths]
    y[0][0], y[0][1] = 0, 1
    parents = random_parents(X) if structure.get("forest") else None
    training_set = read_training_set(
        Passed(X, y, parents=parents, sample_weight=structure.get("weights")),
        InputSettings(crf.order),
        Start(),
    )
    truth, objective = training_set.truth, crf._objective_settings
    model = new_context_model(crf._parts, parse_window(crf.window), crf._learner, truth)
    sample, first_order = row_sampler(1.0, int, 0), objective.is_first_order
    (block,) = context_blocks(model, truth, [], sample, first_order=first_order)
    scores = WorkingScores.of(model, truth.batch)
    for array in scores.arrays.values():
        array[:] = random.normal(size=array.shape)
    trees = getattr(block, "both", (block,))[0]
    curvature = objective.curvature_of_steps()
    at = objective.bind(truth).evaluate(scores.problem(), block.parts, curvature)
    return trees._slopes(at), scores.arrays, truth


@pytest.mark.parametrize(
    ("order", "forest", "weights"),
    [
        (1, False, None),
        (1, False, (1.0, 0.5, 2.0, 1.0)),
        (2, False, (1.0, 0.5, 2.0, 1.0)),
        (3, False, None),
        (1, True, (1.0, 0.5, 2.0, 1.0)),
    ],
    ids=str,
)
def test_gradient_agrees_with_enumeration(order, forest, weights):
    """(p - truth) of every label given the labels before; of none where none come before."""
    crf = TreeCRF(order=order, **ONE)
    slopes, scores, truth = slopes_at(crf, forest=forest, weights=weights)
    batch = truth.batch
    listed = enumerate_instances(
        scores["node"].astype(float),
        scores["edge"].astype(float),
        batch.offsets,
        parents=batch.parents,
        end=scores.get("end"),
        order=order,
    )
    node, edge = np.zeros_like(slopes.node), np.zeros_like(slopes.edge)
    for number, instance in enumerate(listed):
        weight = 1.0 if weights is None else weights[number]
        n, first = instance.labels.shape[1], instance.first_row
        true = (instance.labels == truth.labels[first : first + n]).all(axis=1).astype(float)
        excess = weight * (instance.probabilities - true)
        for t in range(n):
            np.add.at(node[first + t], instance.labels[:, t], excess)
        for part in instance.parts:
            cells = tuple(instance.labels[:, t] for t in part)
            np.add.at(edge[first + part[-1]], cells, excess)
    np.testing.assert_allclose(slopes.node, node, **PROBABLE)
    np.testing.assert_allclose(slopes.edge, edge, **PROBABLE)
    assert slopes.edge_curvature is None
    assert (slopes.weights is None) == (weights is None)


def test_curvature_is_requested():
    slopes, *_ = slopes_at(TreeCRF(curvature="mixing", **ONE))
    assert slopes.edge_curvature.shape == slopes.edge.shape
    assert slopes.node_curvature.shape == slopes.node.shape
    assert (slopes.node_curvature > 0).all()


# What a sum of what a position says and of what a transition says cannot do.

PAIRS = [[0, 0], [0, 1], [1, 0], [1, 1]]


def switched(bits):
    """x = 1 changes the label: y_t = y_{t-1} XOR x_t, from 0."""
    return np.cumsum(bits) % 2


def test_context_trees_beat_nodes_plus_table():
    """Let u(x) be what x says for label 1 and T the table, with start and end.  All four right:

    (1, 0) -> (1, 1) needs u(0) > T10 - T11, (1, 1) -> (1, 0) needs u(1) < T10 - T11, while
    (0, 0) -> (0, 0) needs u(0) < T00 - T01, (0, 1) -> (0, 1) needs u(1) > T00 - T01: no u does.
    """
    X = [np.array(bits, float)[:, None] for bits in PAIRS] * 5
    y = [switched(bits) for bits in PAIRS] * 5
    trees = TreeCRF(15, max_leaves=6, **ONE).fit(X, y)
    assert same(trees.predict(X), y)
    assert trees.log_likelihood(X, y).min() > np.log(0.9)
    for sums in (
        GBCRF(30, 0.5, **ONE),
        LinearCRF(l2=1e-3, max_iter=200),
        GBCRF(30, edges=None, **ONE),
    ):
        labels = sums.fit(X, y).predict(X)
        right = [
            np.array_equal(predicted, other) for predicted, other in zip(labels, y, strict=True)
        ]
        assert np.mean(right) <= 0.75, sums


def test_features_named_like_context_labels_are_distinct():
    random = np.random.default_rng(0)
    bits = [random.integers(2, size=n) for n in random.integers(3, 12, 40)]
    frames = [pd.DataFrame({"label": values.astype(float)}) for values in bits]
    y = [switched(np.roll(values, 1)) for values in bits]  # both the label and the bit before count
    crf = TreeCRF(8, window=3, **ONE).fit(frames, y)
    names = {"label[-1]", "label[-1] of X", "label", "label[+1]"}
    assert {"label[-1]", "label[-1] of X"} <= set(crf.feature_importance()) <= names
    assert set(crf.importance().edge) == {"label[-1]"}
    assert sum(crf.importance().node.values()) + crf.importance().edge["label[-1]"] == (
        pytest.approx(1)
    )
    explained = {
        name for position in crf.explain(frames[0]).positions for name in position.features
    }
    assert {"label[-1]", "label[-1] of X"} <= explained <= names


def test_duplicate_feature_names_share_importance():
    X, y = make_task(0, n_instances=20)
    plain = TreeCRF(20, window=3, **ONE).fit(X, y)
    names = ["f0", "f0[-1]", "f2", "f3"]
    crf = TreeCRF(20, window=3, **ONE).fit([pd.DataFrame(x, columns=names) for x in X], y)
    apart, importances = plain.feature_importance("weight"), crf.feature_importance("weight")
    assert importances["f0[-1]"] == apart["f1"] + apart["f0[-1]"]
    assert sum(importances.values()) == sum(apart.values())


def nothing_to_see(lengths):
    return [np.zeros((n, 1)) for n in lengths]


def test_context_labels_decide_without_informative_features():
    """A B C: the first is known by what comes before it, nothing, which is a label of its own.

    A A B B: the label two before decides, which order 1 does not see.
    """
    for pattern, order in (("ABC", 1), ("AABB", 2)):
        lengths = [1, 2, 3, 4, 5, 6, 7, 9]
        y = [[pattern[t % len(pattern)] for t in range(n)] for n in lengths]
        X = nothing_to_see(lengths)
        crf = TreeCRF(10, order=order, start_end=False, **ONE).fit(X, y)
        assert crf.score(X, y) == 1.0
        assert f"label[-{order}]" in crf.feature_importance()
        assert crf.predict(nothing_to_see([8]))[0].tolist() == list((pattern * 3)[:8])
    assert TreeCRF(10, start_end=False, **ONE).fit(X, y).score(X, y) < 1.0


def as_frame(x):
    codes = np.where(np.isnan(x[:, 0]), -1, 0)
    return pd.DataFrame({"a": pd.Categorical.from_codes(codes, categories=["x", "y"])})


def as_csr(x):
    rows = np.flatnonzero(~np.isnan(x[:, 0]))
    return sparse.csr_matrix((np.zeros(len(rows)), (rows, 0 * rows)), shape=x.shape)


@pytest.mark.parametrize("kind", [np.asarray, as_csr, as_frame], ids=["dense", "sparse", "frame"])
def test_window_ends_have_outside_value(kind):
    """Another than missing values, which there are too."""
    random, lengths = np.random.default_rng(0), [1, 2, 3, 5, 6, 4] * 2
    y = [["first", *["middle"] * (n - 2), "last"][-n:] for n in lengths]
    X = [kind(np.where(random.random((n, 1)) < 0.5, np.nan, 0.0)) for n in lengths]
    crf = TreeCRF(10, window=3, start_end=False, **ONE).fit(X, y)
    assert crf.score(X, y) == 1.0
    assert TreeCRF(10, window=(1, 0), start_end=False, **ONE).fit(X, y).score(X, y) < 1.0
    assert TreeCRF(10, window=(0, 1), start_end=False, **ONE).fit(X, y).score(X, y) == 1.0


def test_the_last_label_has_a_score():
    random = np.random.default_rng(0)
    lengths = random.integers(3, 9, 100)
    y = [[*random.integers(2, size=n - 1), 0] for n in lengths]
    X = nothing_to_see(lengths)
    for start_end, sure in ((True, True), (False, False)):
        crf = TreeCRF(20, start_end=start_end, **ONE).fit(X, y)
        last = np.array([marginals[-1, 0] for marginals in crf.predict_marginals(X)])
        assert (last > 0.95).all() == sure


def test_window_includes_neighbours():
    random = np.random.default_rng(0)
    X = [random.integers(2, size=(n, 1)).astype(float) for n in random.integers(2, 9, 60)]
    y = [np.append(x[2:, 0], [0, 0]) for x in X]
    crf = TreeCRF(10, window=(0, 2), **ONE).fit(X, y)
    assert crf.score(X, y) == 1.0
    assert "f0[+2]" in crf.feature_importance()
    assert TreeCRF(10, **ONE).fit(X, y).score(X, y) < 0.9


# Sizes, structures, inputs.


@pytest.mark.parametrize(
    "crf",
    [GBCRF(3, order=2, **ONE), TreeCRF(3, **ONE), TreeCRF(3, order=3, window=5, **ONE)],
    ids=str,
)
def test_short_and_empty_instances_and_one_label(crf):
    short = [*X, np.zeros((0, 4), np.float32), X[0][:1]]
    crf = clone(crf).fit(short, [*Y, [], Y[0][:1]])
    assert [len(labels) for labels in crf.predict(short)] == [len(x) for x in short]
    assert crf.predict([]) == []
    assert crf.score(X, Y) > 0.85
    ones, labels = [x[:1] for x in X], [y[:1] for y in Y]  # no edges to learn from
    assert clone(crf).set_params(n_estimators=10).fit(ones, labels).score(ones, labels) == 1.0
    lone = clone(crf).fit(X, [["A"] * len(x) for x in X])
    assert set(flat(lone.predict(X))) == {"A"}
    np.testing.assert_allclose(flat(lone.predict_marginals(X)), 1.0)


def test_forests():
    """Chains told as forests, in another order; and a target that depends on the parent."""
    parents = [np.arange(len(x)) - 1 for x in X]
    chain = TreeCRF(5, start_end=False, **ONE).fit(X, Y)
    tree = TreeCRF(5, start_end=False, **ONE).fit(X, Y, parents=parents)
    np.testing.assert_allclose(
        flat(tree.predict_marginals(X, parents=parents)),
        flat(chain.predict_marginals(X)),
        atol=1e-4,
    )
    random = np.random.default_rng(0)
    bits = [random.integers(2, size=n) for n in random.integers(3, 9, 60)]
    up = random_parents(bits)
    y = []
    for values, above in zip(bits, up, strict=True):
        labels = []
        for bit, parent in zip(values, above, strict=True):
            labels.append(int(bit ^ (labels[parent] if parent >= 0 else 0)))
        y.append(labels)
    features = [values[:, None].astype(float) for values in bits]
    crf = TreeCRF(15, max_leaves=6, **ONE).fit(features, y, parents=up)
    assert crf.score(features, y, parents=up) == 1.0


@pytest.mark.parametrize(("kind", "rounding"), [(TreeCRF, 1e-5), (GBCRF, 1e-6)])
def test_absent_sparse_entries_are_missing_values(kind, rounding):
    random = np.random.default_rng(0)
    holes = [np.where(random.random(instance.shape) < 0.3, np.nan, instance) for instance in X]
    csr = []
    for x in holes:
        rows, columns = np.nonzero(~np.isnan(x))
        csr.append(sparse.csr_matrix((x[rows, columns], (rows, columns)), shape=x.shape))
    dense, thin = (kind(5, **ONE).fit(features, Y) for features in (holes, csr))
    np.testing.assert_allclose(
        flat(thin.predict_marginals(csr)), flat(dense.predict_marginals(holes)), atol=rounding
    )


# Training.


@pytest.mark.parametrize(
    "arguments",
    [
        {"subsample": 0.6, "influence_trimming": 0.1},
        {"curvature": "mixing"},
        {"curvature": "auto", "order": 2, "reg_lambda": 0.1},
        {"curvature": "diagonal", "learning_rate": 0.3},
        {"curvature": 2.0, "learning_rate": 0.3},
        {"window": 3, "min_child_weight": 0.0, "colsample_bynode": 0.4},
        {"max_leaves": 2, "pseudo_likelihood_rounds": 0, "window": (np.int32(1), 0)},
    ],
    ids=str,
)
def test_the_objective_falls(arguments):
    crf = TreeCRF(15, **ONE, **arguments).fit(X, Y)
    n = arguments.get("pseudo_likelihood_rounds", 3)
    objective = np.array(crf.history_["objective"])
    assert (np.diff(objective[:n]) <= 0).all()
    assert (np.diff(objective[n:]) <= 0).all()
    loss = -crf.log_likelihood(X, Y).sum()
    np.testing.assert_allclose(objective[-1], loss, rtol=1e-4)
    assert loss < 0.5 * sum(map(len, Y)) * np.log(3)


def test_colsample_bynode_limits_columns():
    """With one column in five, the best one is not always sampled; labels count as columns."""
    settings = {"colsample_bynode": 0.2, "max_leaves": 2, "n_jobs": 1}
    crf, again, other = (TreeCRF(10, random_state=k, **settings).fit(X, Y) for k in (0, 0, 1))
    roots = crf.model_.node.trees.features[crf.model_.node.trees.starts[:-1]]
    assert set(roots.tolist()) == {-2, 0, 1, 2, 3}
    assert same(crf.predict_marginals(X), again.predict_marginals(X))
    assert not same(crf.predict_marginals(X), other.predict_marginals(X))


def test_reg_lambda_and_min_child_weight_depend_on_curvature():
    for curvature in (None, "mixing"):
        plain, shrunk, heavy = (
            TreeCRF(4, curvature=curvature, **arguments, **ONE).fit(X, Y)
            for arguments in ({"reg_lambda": 0.0}, {"reg_lambda": 50.0}, {"min_child_weight": 9.0})
        )
        objectives = [crf.history_["objective"][-1] for crf in (plain, shrunk)]
        if curvature is None:
            assert objectives[0] == objectives[1]
        else:
            assert objectives[0] < objectives[1]
        trees = heavy.model_.node.trees
        grown = np.repeat(np.diff(trees.starts) > 1, np.diff(trees.starts))
        assert trees.weights[grown].min() >= 9.0 > plain.model_.node.trees.weights.min()


def test_subsample_draws_new_positions_each_round():
    sample = row_sampler(0.3, lambda: 7, 1000)
    first, second = sample(0), sample(1)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, sample(0))
    assert 0.25 < first.mean() < 0.35
    assert row_sampler(1.0, lambda: 7, 1000)(0) is None


def test_first_rounds_use_pseudo_likelihood():
    crf = TreeCRF(2, pseudo_likelihood_rounds=5, **ONE).fit(X, Y)
    loss = -crf.log_likelihood(X, Y).sum()
    assert abs(crf.history_["objective"][-1] - loss) > 1e-3
    none = TreeCRF(2, pseudo_likelihood_rounds=0, **ONE).fit(X, Y)
    np.testing.assert_allclose(
        none.history_["objective"][-1], -none.log_likelihood(X, Y).sum(), rtol=1e-5
    )


def test_pseudo_likelihood_rounds_are_skipped_if_empty():
    every_second = [[label if t % 2 else None for t, label in enumerate(labels)] for labels in Y]
    crf = TreeCRF(4, **ONE).fit(X, every_second)
    plain = TreeCRF(4, pseudo_likelihood_rounds=0, **ONE).fit(X, every_second)
    assert same(crf.predict_marginals(X), plain.predict_marginals(X))
    assert min(crf.history_["objective"]) > 0


@pytest.mark.parametrize("crf", [GBCRF(10, **ONE), TreeCRF(10, max_leaves=4, **ONE)], ids=str)
def test_unknown_labels_are_summed_over(crf):
    random = np.random.default_rng(0)
    hidden = [[None if random.random() < 0.3 else label for label in labels] for labels in Y]
    crf = clone(crf).fit(X, hidden)
    assert crf.score(X, Y) > 0.8
    assert (crf.log_likelihood(X, hidden) >= crf.log_likelihood(X, Y) - 1e-6).all()
    assert (np.diff(crf.history_["objective"][3:]) <= 0).all()


def test_threads_and_seeds():
    settings = {"window": 3, "subsample": 0.7, "influence_trimming": 0.05}
    one, two = (TreeCRF(5, random_state=3, n_jobs=n, **settings).fit(X, Y) for n in (1, 2))
    assert same(one.predict_marginals(X), two.predict_marginals(X))
    assert one.history_["objective"] == two.history_["objective"]
    other = TreeCRF(5, random_state=4, n_jobs=1, **settings).fit(X, Y)
    assert not same(one.predict_marginals(X), other.predict_marginals(X))


@pytest.mark.parametrize("kind", [np.asarray, as_csr, as_frame], ids=["dense", "sparse", "frame"])
def test_prediction_takes_a_few_instances_at_a_time(kind, monkeypatch):
    inputs = [kind(x) for x in [*X[:7], X[0][:0], *X[7:12], X[0][:0]]]
    crf = TreeCRF(5, window=3, **ONE).fit([kind(x) for x in X], Y)
    whole = crf.predict(inputs), crf.predict_marginals(inputs), crf.score([kind(x) for x in X], Y)
    seen = []
    scored = ContextTrees.parts
    monkeypatch.setattr(ContextTrees, "parts", lambda *a: seen.append(a[1].n_rows) or scored(*a))
    monkeypatch.setattr(predictor, "MOST_SCORES", 9 * 20)  # twenty positions
    assert same(crf.predict(inputs), whole[0])
    assert len(seen) > 2
    assert sum(seen) == sum(x.shape[0] for x in inputs)
    assert max(seen) <= max(20, *map(len, X))
    assert same(crf.predict_marginals(inputs), whole[1])
    assert crf.score([kind(x) for x in X], Y) == whole[2]
    monkeypatch.setattr(predictor, "MOST_SCORES", 1)
    assert same(crf.predict(inputs), whole[0])


def test_viterbi_and_marginal_decoding():
    crf = TreeCRF(2, max_leaves=2, decode="marginal", **ONE).fit(X, Y)
    best = crf.classes_[flat(crf.predict_marginals(X)).argmax(axis=1)]
    np.testing.assert_array_equal(flat(crf.predict(X)), best)
    whole = crf.set_params(decode="viterbi").predict(X)
    for x, labels in zip(X, whole, strict=True):
        assert labels.tolist() == crf.predict_kbest([x], 1)[0][0][0].tolist()


def test_stopping_in_the_first_rounds():
    """A stop during the pseudo-likelihood rounds skips the likelihood."""
    crf = TreeCRF(30, pseudo_likelihood_rounds=20, **ONE)
    crf.fit(X, Y, callbacks=[lambda progress: progress.n_rounds == 4])
    assert crf.n_rounds_ == 4
    assert {len(entries) for entries in crf.history_.values()} == {4}
    last = TreeCRF(30, pseudo_likelihood_rounds=4, **ONE)
    last.fit(X, Y, callbacks=[lambda progress: progress.n_rounds == 4])
    assert last.n_rounds_ == 4


# What it says of itself.


def test_feature_importance_sums_gains_and_weights_by_name():
    frame = [pd.DataFrame(x, columns=list("abcd")) for x in X]
    crf = TreeCRF(4, order=2, window=(1, 1), max_leaves=9, **ONE).fit(frame, Y)
    trees = crf.model_.node.trees
    names = [f"{name}{mark}" for mark in ("[-1]", "", "[+1]") for name in "abcd"]
    by_name = {}
    for node, feature in enumerate(trees.features):
        if feature != -1:
            name = names[feature] if feature >= 0 else {-2: "label[-2]", -3: "label[-1]"}[feature]
            by_name.setdefault(name, []).append(node)
    assert set(by_name) > {"label[-1]"}
    for kind, values, total in (
        ("total_gain", trees.gains, np.sum),
        ("gain", trees.gains, np.mean),
        ("weight", trees.weights, len),
        ("cover", trees.weights, np.mean),
        ("total_cover", trees.weights, np.sum),
    ):
        importance = crf.feature_importance(kind)
        assert set(importance) == set(by_name)
        for name, nodes in by_name.items():
            expected = total(values[nodes].astype(float))
            np.testing.assert_allclose(importance[name], expected, rtol=1e-6, err_msg=kind)
    with pytest.raises(NotFittedError, match="call fit first"):
        TreeCRF().feature_importance()


def test_importance_of_sparse_windows():
    lengths = [2, 3, 4, 5] * 3
    y = [["a"] * (n - 1) + ["z"] for n in lengths]
    X = [sparse.csr_matrix(np.ones((n, 1))) for n in lengths]
    crf = TreeCRF(5, window=3, start_end=False, **ONE).fit(X, y)
    names = {f"{name}{mark}" for name in ("f0", "outside") for mark in ("[-1]", "", "[+1]")}
    assert {"outside[+1]", "f0[+1]"} & set(crf.feature_importance())
    assert set(crf.feature_importance()) <= names | {"label[-1]"}


def test_trees_grow_on_as_many_threads_as_n_jobs_asks_for(monkeypatch):
    grow, threads = _core.grow_context_trees, []

    def spy(*args, **kwargs):
        threads.append(kwargs["n_threads"])
        return grow(*args, **kwargs)

    monkeypatch.setattr(_core, "grow_context_trees", spy)
    TreeCRF(2, random_state=0, n_jobs=2).fit(X, Y)
    assert threads == [2, 2]


# Arguments and inputs beyond tests/bad_inputs.


def test_fit_rejects_arguments_at_their_bounds(not_refused):
    cases = [
        ({"window": 0}, "window is 0: it must be an odd number"),
        ({"window": 3.0}, "window is 3.0: it must be an odd number, or"),
        ({"window": "3"}, "window is '3'"),
        ({"window": (1, 1.0)}, r"window is \(1, 1.0\)"),
        ({"window": (True, 1)}, r"window is \(True, 1\)"),
        ({"max_leaves": 0}, "max_leaves is 0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"subsample": 0}, "subsample is 0"),
        ({"influence_trimming": 1}, "influence_trimming is 1: it must be 0 or more and below 1"),
        ({"curvature": 0.0}, "curvature is 0.0"),
        ({"order": 0}, "order is 0: it must be a whole number of 1 or more"),
        ({"order": 30}, "order=30 with 3 labels needs edge tables"),
    ]

    def fit(arguments):
        return TreeCRF(1, **arguments).fit(X, Y)

    assert not_refused(fit, {str(case): (case, message) for case, message in cases}) == {}


def test_columns_with_too_many_categories_are_rejected():
    def frames(n):
        names = [f"c{k}" for k in range(n)]
        return [pd.DataFrame({"a": pd.Categorical(names[: len(x)], categories=names)}) for x in X]

    with pytest.raises(ValueError, match="column 'a' has 255 categories: trees take up to 254"):
        TreeCRF(1).fit(frames(255), Y)
    assert TreeCRF(1, window=3).fit(frames(254), Y).n_rounds_ == 1


def test_fit_rejects_models_too_large_for_memory(monkeypatch):
    """3 arrays of 126 rows and 9 numbers of 4 bytes; two more with curvature."""
    sizes = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 3 * 126 * 9 * 4}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    one = TreeCRF(1, n_jobs=1).fit(X, Y)
    assert one.n_rounds_ == 1
    with pytest.raises(ValueError, match="this machine has"):
        TreeCRF(1, n_jobs=1).fit(X, Y, eval_set=(X, Y))
    with pytest.raises(ValueError, match="this machine has"):
        TreeCRF(1, curvature="mixing", n_jobs=1).fit(X, Y, init_model=one)
    with pytest.raises(ValueError, match=r"126 positions with 3\^2 scores each need"):
        TreeCRF(1, curvature="mixing", n_jobs=1).fit(X, Y)
    with pytest.raises(ValueError, match=r"126 positions with 3\^3 scores each need"):
        TreeCRF(1, order=2, n_jobs=1).fit(X, Y)


def test_a_model_of_dense_windows_rejects_sparse_features():
    crf = TreeCRF(1, window=3, random_state=0).fit(X, Y)
    csr = [sparse.csr_matrix(x) for x in X]
    with pytest.raises(ValueError, match="X is sparse, but the model was fitted on dense features"):
        crf.predict(csr)
    with pytest.raises(ValueError, match="X is sparse, but the model was"):
        TreeCRF(1, window=3).fit(X, Y, eval_set=(csr, Y))
    with pytest.raises(ValueError, match="use one kind"):
        TreeCRF(1, window=3, **ONE).fit(csr, Y, init_model=crf)
