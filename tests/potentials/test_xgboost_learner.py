"""The door to XGBoost: equal seeds give equal trees, and the ways to predict agree."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from crfx.features.quantile_cuts import quantile_points
from crfx.potentials import tree_format
from crfx.potentials.xgboost_learner import TreeEnsemble, XGBoostLearner
from tests.potentials.grown_trees import N_FEATURES, N_ROWS, dense

ADDITIVE = {"rtol": 1e-4, "atol": 1e-5}
"""Contributions are sums over paths, in float32."""

PARAMS = {"max_depth": 4}
SAMPLED = {"max_depth": 4, "colsample_bynode": 0.5}


def derivatives(n_outputs, seed=1):
    random = np.random.default_rng(seed)
    gradient = random.normal(size=(N_ROWS, n_outputs)).astype(np.float32)
    return gradient, random.uniform(0.1, 1, size=gradient.shape).astype(np.float32)


def grow(learner, X, n_outputs, number=0):
    matrix = learner.training_matrix(X)
    return matrix, learner.grow(matrix, *derivatives(n_outputs), number)


@pytest.mark.parametrize(("n_outputs", "params"), [(1, SAMPLED), (2, PARAMS), (5, SAMPLED)])
def test_threads_give_the_same_trees(n_outputs, params):
    X = dense()
    matrix = XGBoostLearner().matrix(X)
    one, two = (
        grow(XGBoostLearner(params, seed=7, n_jobs=n_jobs), X, n_outputs)[1].scores(matrix)
        for n_jobs in (1, 2)
    )
    assert one.tobytes() == two.tobytes()


def test_seed_depends_on_learner_and_round():
    """Same pair, same trees; another seed or another round samples other columns."""
    X = dense()
    matrix = XGBoostLearner().matrix(X)

    def scores(seed, number, params=SAMPLED):
        return grow(XGBoostLearner(params, seed=seed), X, 3, number)[1].scores(matrix).tobytes()

    assert scores(0, 0) == scores(0, 0)
    assert len({scores(seed, number) for seed in (0, 1) for number in (0, 1, 2)}) == 6
    # Where nothing is drawn, the round's number makes no difference.
    assert scores(0, 0, PARAMS) == scores(1, 5, PARAMS)


@pytest.mark.parametrize(("kind", "n_outputs"), [("dense", 1), ("sparse", 3), ("frame", 3)])
def test_training_scores_are_the_scores_of_the_same_rows(kind, n_outputs):
    """Cached margins of quantised rows, against a walk of the raw ones."""
    X = dense()
    if kind == "sparse":
        X = sparse.csr_matrix(np.where(np.isnan(X), 0, X))
    elif kind == "frame":
        X = pd.DataFrame(X).rename(columns=str)
        X["letter"] = pd.Categorical(np.random.default_rng(3).choice(list("abcdefg"), N_ROWS))
    learner = XGBoostLearner(PARAMS, max_bin=16)
    matrix, trees = grow(learner, X, n_outputs)
    scores = trees.training_scores(matrix)
    assert scores.shape == (N_ROWS, n_outputs)
    assert scores.dtype == np.float32
    assert scores.tobytes() == trees.scores(learner.matrix(X)).tobytes()
    assert scores.tobytes() == TreeEnsemble.of(trees.raw(), n_outputs).scores(matrix).tobytes()
    assert np.ptp(scores, axis=0).min() > 0
    other = trees.scores(learner.matrix(X[:: -1 if kind != "frame" else 1]))
    assert (kind == "frame") == np.array_equal(other, scores)  # the companion


def test_absent_entries_are_missing_and_zeros_are_values():
    """CSR leaves out what dense arrays call NaN: both go the default way of a split."""
    X = dense()
    learner = XGBoostLearner(PARAMS)
    _, trees = grow(learner, X, 2)
    seen = ~np.isnan(X)
    absent = sparse.csr_matrix((X[seen], np.nonzero(seen)), shape=X.shape)
    expected = trees.scores(learner.matrix(X))
    assert trees.scores(learner.matrix(absent)).tobytes() == expected.tobytes()
    zeros = trees.scores(learner.matrix(np.nan_to_num(X)))
    assert not np.array_equal(zeros, expected)
    X[:, 2] = 0
    _, trees = grow(learner, X, 3)
    importance = TreeEnsemble.of(trees.raw(), 3).importance("total_gain")
    assert set(importance) == {0, 1, 3, 4, 5}
    assert all(type(value) is float and value > 0 for value in importance.values())


def test_grow_takes_its_objective_and_rejects_bad_parameters():
    """Gradients come from us; only the number of outputs is the objective's."""
    X = dense()
    odd = {"objective": "count:poisson", "base_score": 0.7, "seed": 99}
    plain, odd = (grow(XGBoostLearner(PARAMS | more), X, 2)[1].raw() for more in ({}, odd))
    assert plain == odd
    # Leaves of several outputs would keep their size whatever step was taken.
    for name, value in (("booster", "dart"), ("multi_strategy", "multi_output_tree")):
        with pytest.raises(ValueError, match=f"{name} is '{value}'"):
            grow(XGBoostLearner({name: value}), X, 2)
    # Found by fuzzing: what XGBoost says of a parameter goes on in a second line.
    with pytest.raises(ValueError, match=r"^XGBoost: .*max_leaves.*$") as caught:
        grow(XGBoostLearner({"max_leaves": -1}), X, 2)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_contributions_add_up_to_the_scores(n_outputs):
    learner = XGBoostLearner(PARAMS)
    _, trees = grow(learner, dense(), n_outputs)
    ensemble = TreeEnsemble.of(trees.raw(), n_outputs)
    matrix = learner.matrix(dense(50, seed=2))
    values = ensemble.contributions(matrix)
    assert values.shape == (50, n_outputs, N_FEATURES + 1)
    np.testing.assert_allclose(values.sum(axis=2), ensemble.scores(matrix), **ADDITIVE)
    without_one = values.sum(axis=2) - values[:, :, 0]
    assert not np.allclose(without_one, ensemble.scores(matrix), **ADDITIVE)
    nothing = learner.matrix(dense()[:0])
    assert trees.scores(nothing).shape == ensemble.scores(nothing).shape == (0, n_outputs)
    assert ensemble.contributions(nothing).shape == (0, n_outputs, N_FEATURES + 1)


def test_no_rounds_score_zero():
    """XGBoost takes the range of rounds (0, 0) as all rounds."""
    matrix, trees = grow(XGBoostLearner(PARAMS), dense(), 3)
    ensemble = TreeEnsemble.of(trees.raw(), 3)
    assert ensemble.scores(matrix).any()
    for scores in (ensemble.scores(matrix, 0), ensemble.contributions(matrix, 0)):
        assert scores.shape[:2] == (N_ROWS, 3)
        assert not scores.any()
    assert ensemble.scores(matrix, 1).tobytes() == ensemble.scores(matrix).tobytes()


def test_grow_with_one_leaf_or_on_no_rows():
    """One leaf takes the step -sum g / sum h, whatever XGBoost's own step would be.

    An edge type may occur nowhere; its rounds are counted like those of the others.
    """
    learner = XGBoostLearner({"gamma": 1e9, "reg_lambda": 0.0, "eta": 0.1})
    gradient, curvature = derivatives(3)
    matrix = learner.training_matrix(dense())
    scores = learner.grow(matrix, gradient, curvature, 0).training_scores(matrix)
    expected = -gradient.sum(0, dtype=np.float64) / curvature.sum(0, dtype=np.float64)
    np.testing.assert_allclose(scores, np.broadcast_to(expected, scores.shape), rtol=1e-5, atol=0)
    learner, empty = XGBoostLearner(PARAMS), np.zeros((0, 3), dtype=np.float32)
    matrix = learner.training_matrix(dense()[:0])
    trees = learner.grow(matrix, empty, empty, 0)
    assert trees.training_scores(matrix).shape == (0, 3)
    tree_format.check(trees.raw(), n_features=N_FEATURES, n_outputs=3)
    assert tree_format.n_rounds(trees.raw()) == 1
    np.testing.assert_array_equal(trees.scores(learner.matrix(dense())), 0)


def test_bins_begin_where_the_quantiles_are():
    X = dense()
    X[:, 3] = np.round(X[:, 3])
    for max_bin in (2, 7, 256):
        starts, cuts = XGBoostLearner(max_bin=max_bin).training_matrix(X).get_quantile_cut()
        points = quantile_points(X, max_bin).tocsc()
        for column in range(N_FEATURES):
            edges = cuts[int(starts[column]) : int(starts[column + 1])]  # and below, above all
            expected = points.data[points.indptr[column] : points.indptr[column + 1]]
            assert len(edges) - 1 == len(expected) <= max_bin
            np.testing.assert_array_equal(edges[1:-1], expected[1:])
