"""Trees walked by our own core: the bits of XGBoost, and of a walk in plain Python."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

from crfx import _core
from crfx.potentials import tree_format, ubjson
from crfx.potentials.trees import BoostedTrees, TreeScorer, _arrays
from crfx.potentials.xgboost_learner import TreeEnsemble
from tests.potentials.grown_trees import (
    KINDS,
    N_FEATURES,
    N_ROWS,
    STEPS,
    grown,
    joined,
    n_outputs,
    trees_of,
)

COUNTS = (1, 7, 8, 9, 20, 127, 128, 129, N_ROWS)
"""Of rows: around the lanes of a group, and around the rows that are taken at a time."""


def some(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def walked(kind):
    """(rows, outputs) by a loop over rows, trees and nodes; sums in float32, tree by tree."""
    X, part = grown(kind)[0], trees_of(joined(kind))
    numbers = X
    if hasattr(X, "iloc"):
        columns = [X[name].cat.codes if hasattr(X[name], "cat") else X[name] for name in X]
        numbers = np.column_stack([column.astype(float) for column in columns])
        numbers[X.isna()] = np.nan
    numbers = numbers.astype(np.float32)
    scores = np.zeros((len(numbers), n_outputs(kind)), np.float32)
    for tree, output in zip(part["trees"], part["tree_info"], strict=True):
        ends = np.cumsum(tree["categories_sizes"])
        groups = np.split(tree["categories"], ends)[:-1]
        sets = dict(zip(tree["categories_nodes"], map(set, groups), strict=True))
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
def test_scores_are_bitwise_equal_to_xgboost(kind):
    (X, learner, _), raw = grown(kind), joined(kind)
    expected = TreeEnsemble.of(raw, n_outputs(kind)).scores(learner.matrix(X))
    scorer = TreeScorer(raw, n_outputs(kind))
    for n_jobs in (1, 2, 3):
        assert scorer.scores(X, n_jobs).tobytes() == expected.tobytes()
        for count in COUNTS:
            rows = np.random.default_rng(count).permutation(N_ROWS)[:count]
            scores = scorer.scores(some(X, rows), n_jobs)
            assert scores.tobytes() == expected[rows].tobytes(), (n_jobs, count)


@pytest.mark.parametrize("kind", ["on thresholds", "categories", "deep sets of categories"])
def test_scores_are_bitwise_equal_to_plain_walk(kind):
    X, raw = grown(kind)[0], joined(kind)
    assert TreeScorer(raw, n_outputs(kind)).scores(X, 1).tobytes() == walked(kind).tobytes()


@pytest.mark.parametrize("kind", ["numbers", "one output", "categories"])
def test_scores_of_the_first_rounds(kind):
    (X, learner, _), raw = grown(kind), joined(kind)
    scorer, ensemble = (make(raw, n_outputs(kind)) for make in (TreeScorer, TreeEnsemble.of))
    for n_rounds in range(1, len(STEPS) + 1):
        expected = ensemble.scores(learner.matrix(X), n_rounds)
        assert scorer.scores(X, 1, n_rounds).tobytes() == expected.tobytes()
    assert not scorer.scores(X, 1, 0).any()


def test_dense_and_sparse_rows_in_turn():
    """Values that one call leaves in its lanes must not become features of the next call."""
    X, raw = grown("many outputs")[0], joined("many outputs")
    seen = ~np.isnan(X)
    absent = sparse.csr_matrix((X[seen], np.nonzero(seen)), shape=X.shape)
    scorer = TreeScorer(raw, 9)
    expected = TreeScorer(raw, 9).scores(X, 1)
    for count in (300, 9, 150, 1, 40):
        for rows in (X, absent, X[::-1], absent[::-1]):
            scorer.scores(rows[:count], 1)
            assert scorer.scores(absent[:count], 1).tobytes() == expected[:count].tobytes()
            assert scorer.scores(X[:count], 1).tobytes() == expected[:count].tobytes()


def changed(raw, change):
    model = ubjson.decode(raw)
    change(model["learner"]["gradient_booster"]["model"]["trees"])
    return ubjson.encode(model)


def test_near_zero_numbers_are_not_zero():
    """Other parts of the core do so, for speed; XGBoost does not."""
    (X, learner, _), raw = grown("many outputs"), joined("many outputs")
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
    learner, raw = grown("many outputs")[1], joined("many outputs")
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


def test_no_rows_no_rounds_and_other_features():
    X, raw = grown("many outputs")[0], joined("many outputs")
    assert TreeScorer(raw, 9).scores(X[:0], 2).shape == (0, 9)
    assert not TreeScorer(tree_format.first_rounds(raw, 0), 9).scores(X, 2).any()
    for wrong in (X[:, :-1], sparse.csr_matrix((3, N_FEATURES + 1))):
        with pytest.raises(ValueError, match=r"the rows have \d features, the trees were grown on"):
            TreeScorer(raw, 9).scores(wrong, 1)


BREAK = {
    "children that are not below": lambda arrays: arrays["left"].__setitem__(0, 0),
    "not below it": lambda arrays: arrays["right"].__setitem__(0, 10**6),
    "a feature that does not exist": lambda arrays: arrays["features"].__setitem__(0, N_FEATURES),
    "belongs to no output": lambda arrays: arrays["outputs"].__setitem__(0, 9),
    "a set that does not exist": lambda arrays: arrays["sets"].__setitem__(0, 0),
    "no nodes": lambda arrays: arrays["starts"].__setitem__(1, 0),
    "unequal lengths": lambda arrays: arrays["starts"].__setitem__(1, -1),
}


def test_core_rejects_trees_with_bad_children():
    arrays = _arrays(trees_of(joined("many outputs")))
    _core.BoostedTrees(**arrays, n_features=N_FEATURES, n_outputs=9)
    for message, change in BREAK.items():
        broken = {name: np.copy(array) for name, array in arrays.items()}
        change(broken)
        with pytest.raises(_core.InputError, match=message):
            _core.BoostedTrees(**broken, n_features=N_FEATURES, n_outputs=9)
    arrays = _arrays(trees_of(joined("categories")))
    for category in (-1, 2**24):
        arrays["categories"][0] = category
        with pytest.raises(_core.InputError, match="a category that cannot exist"):
            _core.BoostedTrees(**arrays, n_features=N_FEATURES, n_outputs=3)


def test_copies_of_used_trees_give_the_same_scores():
    (X, learner, _), raw = grown("many outputs"), joined("many outputs")
    trees = BoostedTrees(learner, 9, raw)
    expected = trees.scores(X, N_ROWS)
    for copied in (copy.deepcopy(trees), pickle.loads(pickle.dumps(trees))):
        assert copied.scores(X, N_ROWS).tobytes() == expected.tobytes()
