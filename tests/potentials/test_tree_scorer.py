"""Trees walked by our own core: the bits of XGBoost, and of a walk in plain Python."""

import copy
import functools
import pickle

import numpy as np
import pytest
from scipy import sparse

from crfx import _core
from crfx.potentials import tree_format, ubjson
from crfx.potentials.trees import BoostedTrees, TreeScorer, _arrays
from crfx.potentials.xgboost_learner import TreeEnsemble, XGBoostLearner

N_ROWS, N_FEATURES, N_ROUNDS = 300, 6, 7
STEPS = (1.0, 0.3, 0.0, 0.05, 0.7, 1e-3, 0.15)
COUNTS = (1, 7, 8, 9, 20, 127, 128, 129, N_ROWS)
"""Of rows: around the lanes of a group, and around the rows that are taken at a time."""


def dense():
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
    X[random.random(X.shape) < 0.2] = np.nan
    return X


def rounded():
    """Few values, so that many lie on a threshold; float64, so that they are converted."""
    return np.round(dense().astype(np.float64) * 3) / 10


def csr():
    """Absent entries; zeros and NaN that are there; many columns of which few are asked for."""
    random = np.random.default_rng(0)
    wide = sparse.random(N_ROWS, 500, density=0.05, random_state=1, format="csr", dtype=np.float32)
    wide.data[random.random(wide.nnz) < 0.1] = 0
    wide.data[random.random(wide.nnz) < 0.1] = np.nan
    return wide


def doubled():
    """Entries that are there twice, in bytes: their sum is not one."""
    random = np.random.default_rng(0)
    rows, columns = random.integers(N_ROWS, size=3000), random.integers(N_FEATURES, size=3000)
    data = random.integers(60, 127, size=3000).astype(np.int8)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=N_ROWS))])
    return sparse.csr_matrix((data, columns[np.argsort(rows)], starts), shape=(N_ROWS, N_FEATURES))


def frame():
    """Categories, few (one against the rest) and many (sets), some missing; whole numbers."""
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    letters = random.choice(list("uvw"), N_ROWS).astype(object)
    letters[random.random(N_ROWS) < 0.2] = None
    return pandas.DataFrame(
        {
            "number": dense()[:, 0],
            "letter": pandas.Categorical(letters),
            "digit": pandas.Categorical(random.integers(0, 150, N_ROWS)),
            "whole": random.integers(0, 5, N_ROWS),
            "nothing": pandas.Categorical([None] * N_ROWS),
            "flag": pandas.array(random.choice([True, False, None], N_ROWS), dtype="boolean"),
        }
    )


DEEP = {"max_leaves": 60, "grow_policy": "lossguide", "max_depth": 0, "min_child_weight": 0}
KINDS = {
    "numbers": (dense, 9, {"max_depth": 5}),
    "one output": (dense, 1, {"max_depth": 5}),
    "on thresholds": (rounded, 3, {"max_depth": 6, "min_child_weight": 0}),
    "deep": (dense, 2, DEEP),
    "leaves only": (dense, 2, {"gamma": 1e9}),
    "columns sampled": (dense, 2, {"colsample_bynode": 0.3}),
    "rows sampled": (dense, 3, {"subsample": 0.5}),
    "sparse": (csr, 3, {"max_depth": 6, "min_child_weight": 0}),
    "entries twice": (doubled, 3, {"max_depth": 4}),
    "categories": (frame, 3, {"max_depth": 6, "min_child_weight": 0}),
    "deep categories": (frame, 2, DEEP),
}


@functools.cache
def grown(kind):
    """(X, raw, learner): rounds with a step each, on gradients of any size."""
    make, n_outputs, params = KINDS[kind]
    X, random = make(), np.random.default_rng(1)
    learner = XGBoostLearner(params, seed=3)
    matrix = learner.training_matrix(X)
    rounds = []
    for number in range(N_ROUNDS):
        gradient = random.normal(size=(N_ROWS, n_outputs)).astype(np.float32)
        curvature = random.uniform(0.1, 1, size=gradient.shape).astype(np.float32)
        rounds.append(learner.grow(matrix, gradient, curvature, number).raw())
    return X, tree_format.join(rounds, STEPS), learner


def n_outputs(kind):
    return KINDS[kind][1]


def some(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def walked(kind, n_rounds=N_ROUNDS):
    """(rows, outputs) by a loop over rows, trees and nodes; sums in float32, tree by tree."""
    X, raw, _ = grown(kind)
    part = ubjson.decode(raw)["learner"]["gradient_booster"]["model"]
    numbers = np.column_stack(
        [X[name].cat.codes if hasattr(X[name], "cat") else X[name].astype(float) for name in X]
        if hasattr(X, "iloc")
        else [X]
    ).astype(np.float32)
    if hasattr(X, "iloc"):
        for place, name in enumerate(X):
            numbers[X[name].isna(), place] = np.nan
    scores = np.zeros((len(numbers), n_outputs(kind)), np.float32)
    for tree, output in zip(part["trees"], part["tree_info"], strict=True):
        if tree["id"] >= n_rounds * n_outputs(kind):
            break
        sets = {
            node: set(tree["categories"][begin : begin + size].tolist())
            for node, begin, size in zip(
                tree["categories_nodes"],
                tree["categories_segments"],
                tree["categories_sizes"],
                strict=True,
            )
        }
        for row, x in enumerate(numbers):
            node = 0
            while tree["left_children"][node] >= 0:
                value = x[tree["split_indices"][node]]
                if np.isnan(value):
                    left = tree["default_left"][node]
                elif node in sets:
                    left = int(value) not in sets[node]
                else:
                    left = value < tree["split_conditions"][node]
                node = tree["left_children" if left else "right_children"][node]
            scores[row, output] += tree["split_conditions"][node]
    return scores


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_the_bits_are_those_of_xgboost(kind, n_jobs):
    X, raw, learner = grown(kind)
    expected = TreeEnsemble.of(raw, n_outputs(kind)).scores(learner.matrix(X))
    scorer = TreeScorer(raw, n_outputs(kind))
    assert scorer.scores(X, n_jobs).tobytes() == expected.tobytes()
    for count in COUNTS:
        rows = np.random.default_rng(count).permutation(N_ROWS)[:count]
        found = scorer.scores(some(X, rows), n_jobs)
        assert found.tobytes() == expected[rows].tobytes(), count


@pytest.mark.parametrize("kind", ["numbers", "on thresholds", "categories", "deep categories"])
def test_the_bits_are_those_of_a_plain_walk(kind):
    X, raw, _ = grown(kind)
    assert TreeScorer(raw, n_outputs(kind)).scores(X, 1).tobytes() == walked(kind).tobytes()


@pytest.mark.parametrize("kind", ["numbers", "one output", "categories"])
def test_the_first_rounds_alone(kind):
    X, raw, learner = grown(kind)
    scorer, ensemble = (make(raw, n_outputs(kind)) for make in (TreeScorer, TreeEnsemble.of))
    for n_rounds in range(1, N_ROUNDS + 1):
        expected = ensemble.scores(learner.matrix(X), n_rounds)
        assert scorer.scores(X, 1, n_rounds).tobytes() == expected.tobytes()
    assert not scorer.scores(X, 1, 0).any()


def test_dense_and_sparse_rows_in_turn():
    """What one call leaves behind, in the lanes that it used, is no feature of the next."""
    X, raw, _ = grown("numbers")
    seen = ~np.isnan(X)
    absent = sparse.csr_matrix((X[seen], np.nonzero(seen)), shape=X.shape)
    scorer = TreeScorer(raw, n_outputs("numbers"))
    expected = TreeScorer(raw, n_outputs("numbers")).scores(X, 1)
    for count in (300, 9, 150, 1, 40):
        for rows in (X, absent, X[::-1], absent[::-1]):
            scorer.scores(rows[:count], 1)
            assert scorer.scores(absent[:count], 1).tobytes() == expected[:count].tobytes()
            assert scorer.scores(X[:count], 1).tobytes() == expected[:count].tobytes()


def changed(raw, change):
    model = ubjson.decode(raw)
    change(model["learner"]["gradient_booster"]["model"]["trees"])
    return ubjson.encode(model)


def test_numbers_next_to_0_are_not_taken_for_0():
    """Other parts of the core do so, for speed; XGBoost does not."""
    X, raw, learner = grown("numbers")
    tiny = np.float32(1e-40)

    def lower(trees):
        for tree in trees:
            inner = np.asarray(tree["left_children"]) >= 0
            tree["split_conditions"] = np.where(inner, tiny, tiny * tree["split_conditions"])

    raw = changed(raw, lower)
    X = np.where(X > 0, tiny, X * 0)
    expected = TreeEnsemble.of(raw, 9).scores(learner.matrix(X))
    assert 0 < np.abs(expected).max() < np.finfo(np.float32).tiny
    assert TreeScorer(raw, 9).scores(X, 2).tobytes() == expected.tobytes()


@pytest.mark.parametrize("leaf", [1.0, -0.0, np.nan, np.inf])
def test_odd_numbers_in_trees_and_rows(leaf):
    """Two zeros that are equal, thresholds that nothing is below, leaves that are no score."""
    _, raw, learner = grown("numbers")
    random = np.random.default_rng(0)
    odd = np.array([0.0, -0.0, 1e38, -1e38, np.nan], np.float32)

    def change(trees):
        for tree in trees:
            inner = np.asarray(tree["left_children"]) >= 0
            drawn = random.choice([*odd, np.inf, -np.inf], len(inner)).astype(np.float32)
            leaves = np.where(random.random(len(inner)) < 0.1, leaf, tree["split_conditions"])
            tree["split_conditions"] = np.where(inner, drawn, leaves).astype(np.float32)

    raw = changed(raw, change)
    X = random.choice(odd, (N_ROWS, N_FEATURES))
    expected = TreeEnsemble.of(raw, 9).scores(learner.matrix(X))
    np.testing.assert_array_equal(TreeScorer(raw, 9).scores(X, 1), expected)


def test_no_rows_and_no_rounds():
    X, raw, _ = grown("numbers")
    assert TreeScorer(raw, 9).scores(X[:0], 2).shape == (0, 9)
    assert not TreeScorer(tree_format.first_rounds(raw, 0), 9).scores(X, 2).any()


def test_other_features_are_refused():
    X, raw, _ = grown("numbers")
    for wrong in (X[:, :-1], sparse.csr_matrix((3, N_FEATURES + 1))):
        with pytest.raises(ValueError, match=r"the rows have \d features, the trees were grown on"):
            TreeScorer(raw, 9).scores(wrong, 1)


BREAK = {
    "children that are not below": lambda arrays: arrays["left"].__setitem__(0, 0),
    "not below it": lambda arrays: arrays["right"].__setitem__(0, 10**6),
    "a feature that there is not": lambda arrays: arrays["features"].__setitem__(0, N_FEATURES),
    "belongs to no output": lambda arrays: arrays["outputs"].__setitem__(0, 9),
    "a set that there is not": lambda arrays: arrays["sets"].__setitem__(0, 0),
    "no nodes": lambda arrays: arrays["starts"].__setitem__(1, 0),
    "unequal lengths": lambda arrays: arrays["starts"].__setitem__(1, -1),
}


@pytest.mark.parametrize("message", BREAK)
def test_the_core_refuses_trees_that_lead_outside(message):
    arrays = _arrays(ubjson.decode(grown("numbers")[1])["learner"]["gradient_booster"]["model"])
    _core.BoostedTrees(**arrays, n_features=N_FEATURES, n_outputs=9)
    BREAK[message](arrays)
    with pytest.raises(_core.InputError, match=message):
        _core.BoostedTrees(**arrays, n_features=N_FEATURES, n_outputs=9)


def test_a_category_that_cannot_exist_is_refused():
    arrays = _arrays(ubjson.decode(grown("categories")[1])["learner"]["gradient_booster"]["model"])
    for category in (-1, 2**24):
        arrays["categories"][0] = category
        with pytest.raises(_core.InputError, match="a category that cannot exist"):
            _core.BoostedTrees(**arrays, n_features=N_FEATURES, n_outputs=3)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda own: pickle.loads(pickle.dumps(own))])
def test_a_potential_that_has_scored_can_be_copied(copied):
    X, raw, learner = grown("numbers")
    trees = BoostedTrees(learner, 9, raw)
    expected = trees.scores(X, N_ROWS)
    assert copied(trees).scores(X, N_ROWS).tobytes() == expected.tobytes()
