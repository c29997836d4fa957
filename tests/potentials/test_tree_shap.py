"""SHAP values of our own trees against Shapley's sum over all sets of features."""

from itertools import chain, combinations
from math import factorial

import numpy as np
import pytest

from crfx.features.tree_rows import WindowView
from crfx.potentials.tree_arrays import DTYPES, LEAF, TreeArrays, join
from crfx.potentials.tree_shap import _described, shap_values, split_features, split_nodes

EXACT = {"rtol": 1e-9, "atol": 1e-12}


def random_trees(seed, n_trees, n_features, n_leaves):
    """Trees that ask for features, some of them twice on a path; weights add up."""
    random = np.random.default_rng(seed)
    arrays = {name: [] for name in DTYPES}
    arrays["starts"] = [0]
    for _ in range(n_trees):
        nodes = [{"weights": float(random.integers(8, 40))}]
        leaves = [0]
        for _ in range(n_leaves - 1):
            at = leaves.pop(random.integers(len(leaves)))
            share = random.uniform(0.1, 0.9)
            nodes[at] |= {
                "features": int(random.integers(n_features)),
                "thresholds": random.normal(),
                "left": len(nodes),
                "right": len(nodes) + 1,
                "missing_left": int(random.integers(2)),
            }
            whole = nodes[at]["weights"]
            nodes += [{"weights": whole * share}, {"weights": whole * (1 - share)}]
            leaves += [len(nodes) - 2, len(nodes) - 1]
        for leaf in leaves:
            nodes[leaf]["values"] = random.normal()
        usual = {"features": LEAF, "sets": -1, "thresholds": np.nan}
        for node in nodes:
            for name in DTYPES:
                if name not in ("starts", "words"):
                    arrays[name].append(node.get(name, usual.get(name, 0)))
        arrays["starts"].append(len(arrays["features"]))
    return TreeArrays(**{name: np.array(arrays[name], DTYPES[name]) for name in DTYPES})


def expected_score(trees, tree, node, goes_left, known):
    """Return the expected score of a walk that takes both ways at features not in ``known``."""
    first = int(trees.starts[tree])
    feature = trees.features[first + node]
    if feature == LEAF:
        return float(trees.values[first + node])
    left, right = int(trees.left[first + node]), int(trees.right[first + node])
    if feature in known:
        chosen = left if goes_left[first + node] else right
        return expected_score(trees, tree, chosen, goes_left, known)
    weights = [float(trees.weights[first + child]) for child in (left, right)]
    both = [expected_score(trees, tree, child, goes_left, known) for child in (left, right)]
    return float(np.dot(weights, both) / sum(weights))


def shapley(trees, tree, goes_left, features):
    """(features,) by the definition."""
    values, n = np.zeros(len(features)), len(features)
    for place, feature in enumerate(features):
        others = [f for f in features if f != feature]
        for known in chain.from_iterable(combinations(others, k) for k in range(n)):
            weight = factorial(len(known)) * factorial(n - 1 - len(known)) / factorial(n)
            gain = expected_score(trees, tree, 0, goes_left, {*known, feature})
            gain -= expected_score(trees, tree, 0, goes_left, set(known))
            values[place] += weight * gain
    return values


@pytest.mark.parametrize("seed", range(4))
def test_values_are_shapley_values(seed):
    n_labels, n_rows = 2, 5
    trees = random_trees(seed, 2 * n_labels, n_features=4, n_leaves=7)
    sides = np.random.default_rng(seed).random((len(trees.features), n_rows)) < 0.5
    splits, used = split_nodes(trees), split_features(trees)
    base, contributions = shap_values(trees, n_labels, n_rows, lambda rows: sides[splits][:, rows])
    for label in range(n_labels):
        own_trees = [tree for tree in range(trees.n_trees) if tree % n_labels == label]
        means = [expected_score(trees, tree, 0, sides[:, 0], set()) for tree in own_trees]
        np.testing.assert_allclose(base[label], sum(means), **EXACT)
        for row in range(n_rows):
            expected = sum(shapley(trees, tree, sides[:, row], used) for tree in own_trees)
            np.testing.assert_allclose(contributions[row, label], expected, rtol=1e-6, atol=1e-7)


def test_rows_are_explained_alike_in_parts(monkeypatch):
    trees = random_trees(0, 2, n_features=3, n_leaves=6)
    sides = np.random.default_rng(0).random((len(trees.features), 9)) < 0.5

    def values():
        return shap_values(trees, 2, 9, lambda rows: sides[split_nodes(trees)][:, rows])[1]

    whole = values()
    monkeypatch.setattr("crfx.potentials.tree_shap.MOST_CELLS", 1)
    np.testing.assert_allclose(values(), whole, **EXACT)


def test_trees_without_splits_and_nodes_without_rows():
    for trees, expected in ((join([]), [0, 0]), (random_trees(0, 2, 1, 1), None)):
        base, contributions = shap_values(trees, 2, 3, lambda rows: np.zeros((0, 3), bool))
        assert contributions.shape == (3, 2, 0)
        np.testing.assert_allclose(base, trees.values if expected is None else expected, **EXACT)
    trees = random_trees(1, 1, n_features=1, n_leaves=2)
    trees.weights[:] = 0  # no row reached a node: both sides count half
    base, _ = shap_values(trees, 1, 1, lambda rows: np.ones((1, 1), bool))
    np.testing.assert_allclose(base[0], trees.values[trees.features == LEAF].mean(), **EXACT)


def test_features_are_named_by_where_they_are():
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    view = WindowView(X, np.array([3]), 1, 1)
    described = [_described(column, view, 2, "ab".__getitem__) for column in (0, 3, 5, -2, -3)]
    assert [name for name, _ in described] == ["a[-1]", "b", "b[+1]", "label[-2]", "label[-1]"]
    assert [column for _, column in described] == [-1, 1, -1, -1, -1]
