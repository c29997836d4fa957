"""SHAP values of our own trees: what every feature adds to the score of a row, exactly.

Path-dependent, as XGBoost's: without a feature a walk goes both ways, in the proportion of the
weights that training sent there (Lundberg, Erion and Lee 2018, Algorithm 1).  A leaf of value v
whose path asks for the features 1 to d is then the game  v prod_{f in S} o_f prod_{f not in S} z_f,
o_f being 1 where the row takes the path's side at all nodes that ask for f and 0 elsewhere, z_f the
product of the proportions there; the Shapley values of such a game are sums over its subsets by
size, which a product of polynomials counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.features.tree_rows import WindowView
from crfx.potentials.tree_arrays import LEAF, WORD, TreeArrays
from crfx.scores import IntArray
from crfx.terms import Names, Terms

Array64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MOST_CELLS = 2**22
"""Cells (paths times rows) that are held at a time, unless one row has more."""
SHARE_OF_GAIN = "share of the gain of all splits"
SHAP = "SHAP values (path-dependent)"


def split_nodes(trees: TreeArrays) -> Ints:
    """Return the nodes that are no leaves."""
    return np.flatnonzero(trees.features != LEAF)


def split_features(trees: TreeArrays) -> Ints:
    """Return the features that trees split on, rising: columns, or -2 - place for labels before."""
    return np.unique(trees.features[split_nodes(trees)]).astype(np.int64)


def shap_values(
    trees: TreeArrays, n_labels: int, n_rows: int, goes_left: Callable[[slice], Bools]
) -> tuple[Array64, Array64]:
    """Return (labels,) expected scores and (rows, labels, features) what each feature adds.

    There is one tree per label in every round; features are those of `split_features`.
    ``goes_left`` returns, for some rows, (nodes, rows) whether each of the `split_nodes` sends them
    left.  O(rows * leaves * depth^4) at worst, where every node of a path asks for another feature.
    """
    splits, used = split_nodes(trees), split_features(trees)
    leaves, reach = np.flatnonzero(trees.features == LEAF), np.ones(len(trees.features))
    values = np.zeros((n_rows, n_labels, len(used)))

    def label_of(nodes: Ints) -> Ints:
        return (np.searchsorted(trees.starts, nodes, side="right") - 1) % n_labels

    if len(splits):
        leaf, node, is_left, share = _paths(trees)
        np.multiply.at(reach, leaf, share)
        # Steps of one path that ask for one feature are a pair (leaf, feature).
        feature, is_new = trees.features[node], np.ones(len(node), bool)
        is_new[1:] = (np.diff(leaf) != 0) | (np.diff(feature) != 0)
        firsts = np.flatnonzero(is_new)
        pair_leaf, n_pairs = leaf[firsts], len(firsts)
        z = np.asarray(np.multiply.reduceat(share, firsts))
        leaf_values = trees.values[pair_leaf].astype(np.float64)
        # Leaves with equally many features are computed together: (leaves, features) pairs.
        begins = np.flatnonzero(np.diff(pair_leaf, prepend=-1))
        sizes = np.diff(np.append(begins, n_pairs))
        groups = [begins[sizes == size][:, None] + np.arange(size) for size in np.unique(sizes)]
        entry = label_of(pair_leaf) * len(used) + np.searchsorted(used, feature[firsts])
        add_up = sparse.csr_matrix(
            (np.ones(n_pairs), (entry, np.arange(n_pairs))), shape=(n_labels * len(used), n_pairs)
        )
        step_split = np.searchsorted(splits, node)
        at_once = max(1, MOST_CELLS // n_pairs)
        for begin in range(0, n_rows, at_once):
            rows = slice(begin, min(begin + at_once, n_rows))
            agrees = goes_left(rows)[step_split] == is_left[:, None]
            taken = np.asarray(np.logical_and.reduceat(agrees, firsts, axis=0))
            shared = np.zeros(taken.shape)
            for group in groups:
                shared[group] = _shapley(leaf_values[group[:, 0]], z[group], taken[group])
            values[rows] = (add_up @ shared).T.reshape(-1, n_labels, len(used))
    leaf_means = reach[leaves] * trees.values[leaves]
    expected = np.bincount(label_of(leaves), leaf_means, n_labels).astype(np.float64)
    return expected, values


def _paths(trees: TreeArrays) -> tuple[Ints, Ints, Bools, Array64]:
    """Return every step on the way to every leaf, ordered by leaf and feature, four (steps,).

    They are the leaf, the node that the step leaves, whether it goes left, and the share of the
    node's weight that goes there: a half where that weight is 0, as no row decided.
    """
    splits = split_nodes(trees)
    roots = np.repeat(trees.starts[:-1], np.diff(trees.starts))[splits]
    left, right = roots + trees.left[splits], roots + trees.right[splits]
    weights = np.maximum(trees.weights.astype(np.float64), 0.0)
    total = weights[left] + weights[right]
    parent, goes_left = np.full(len(trees.features), -1), np.zeros(len(trees.features), bool)
    shares = np.full(len(trees.features), 0.5)
    goes_left[left] = True
    for child in (left, right):
        parent[child] = splits
        shares[child] = np.where(total > 0, weights[child] / np.where(total > 0, total, 1.0), 0.5)
    parts, leaf = [], np.flatnonzero(trees.features == LEAF)
    node = leaf
    while len(node):  # climb from all leaves at once
        is_inner = parent[node] >= 0
        leaf, node = leaf[is_inner], node[is_inner]
        parts.append((leaf, parent[node], goes_left[node], shares[node]))
        node = parent[node]
    leaf, node, is_left, share = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((trees.features[node], leaf))
    return leaf[order], node[order], is_left[order], share[order]


def _shapley(values: Array64, z: Array64, taken: Bools) -> Array64:
    """Return (leaves, features, rows); ``values`` (leaves,), ``z`` (leaves, features)."""
    n_leaves, size, n_rows = taken.shape
    one = taken.astype(np.float64)
    shares = np.empty(taken.shape)
    for feature in range(size):
        # Entry s: the sum over sets of s other features of what the game's product then is.
        counts = np.zeros((size, n_leaves, n_rows))
        counts[0] = 1.0
        for n_before, other in enumerate(k for k in range(size) if k != feature):
            for s in range(n_before + 1, 0, -1):
                counts[s] = counts[s] * z[:, other, None] + counts[s - 1] * one[:, other]
            counts[0] *= z[:, other, None]
        weights = [factorial(s) * factorial(size - 1 - s) / factorial(size) for s in range(size)]
        mean = np.tensordot(np.array(weights), counts, axes=1)
        shares[:, feature] = values[:, None] * (one[:, feature] - z[:, feature, None]) * mean
    return shares


def context_terms(
    trees: TreeArrays,
    view: WindowView,
    before: IntArray,
    labels: Sequence[Any],
    rows: IntArray,
    names: Names,
) -> list[Terms]:
    """Return the scores of every label at some rows as sums, see `shap_values`.

    ``before`` (all rows, order) are the codes of the labels before, oldest first, -1 where there
    are none; ``labels`` are their names.  They are the features ``label[-1]``, ``label[-2]``, ...
    """
    splits, used = split_nodes(trees), split_features(trees)
    n_context = int((used < LEAF).sum())  # features that are labels before; they come first
    codes = np.where(before < 0, len(labels), before)  # one more code stands for "none"
    values = np.concatenate(
        [codes[rows].T[-2 - used[:n_context]], view.values(rows, used[n_context:])]
    ).astype(np.float32)
    asked = np.searchsorted(used, trees.features[splits])
    base, shares = shap_values(
        trees,
        len(labels),
        len(rows),
        lambda part: _goes_left(trees, splits, values[:, part][asked]),
    )
    order, label_names = before.shape[1], [*labels, None]
    described = [_described(column, view, order, names) for column in used.tolist()]

    def shown(row: int) -> list[Any]:
        codes, numbers = values[:n_context, row], values[n_context:, row]
        columns = used[n_context:].tolist()
        return [label_names[int(code)] for code in codes] + [
            view.shown(column, float(number))
            for column, number in zip(columns, numbers, strict=True)
        ]

    features, columns = [name for name, _ in described], [column for _, column in described]
    return [
        Terms.of(base, columns, features, shown(row), share.T) for row, share in enumerate(shares)
    ]


def _described(column: int, view: WindowView, order: int, names: Names) -> tuple[str, int]:
    """Return the name of a feature and its column in X, -1 for a label or a neighbour's feature."""
    if column < LEAF:
        return f"label[-{order + 2 + column}]", -1
    base, shift = view.origin(column)
    return view.name(column, names), -1 if base is None or shift else base


def _goes_left(trees: TreeArrays, nodes: Ints, values: npt.NDArray[np.float32]) -> Bools:
    """Return (nodes, rows) whether nodes send ``values`` (nodes, rows) left."""
    missing = np.isnan(values)
    by_set = trees.sets[nodes] >= 0
    is_left = values < trees.thresholds[nodes][:, None]
    if by_set.any():
        set_nodes = nodes[by_set]
        entries = np.where(missing[by_set], -1, values[by_set]).astype(np.int64)
        word = entries // WORD
        is_stored = (entries >= 0) & (word < trees.set_sizes[set_nodes][:, None])
        at = np.where(is_stored, trees.sets[set_nodes][:, None] + word, 0)
        bits = trees.words[at] >> (np.maximum(entries, 0) % WORD).astype(np.uint64)
        is_left[by_set] = is_stored & ((bits & np.uint64(1)) == 1)
    return np.where(missing, trees.missing_left[nodes][:, None] != 0, is_left)
