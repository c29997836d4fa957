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
from dataclasses import dataclass
from functools import cached_property
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


@dataclass(frozen=True, eq=False)
class Steps:
    """Every step on the way to every leaf, ordered by leaf and feature; all arrays (steps,)."""

    leaf: Ints
    node: Ints
    is_left: Bools
    share: Array64


class TreeShap:
    """SHAP values of trees, of which there is one per label in every round."""

    def __init__(self, trees: TreeArrays, n_labels: int) -> None:
        self.trees, self.n_labels = trees, n_labels
        self.inner = np.flatnonzero(trees.features != LEAF)
        self.used: Ints = np.unique(trees.features[self.inner]).astype(np.int64)
        """The features that trees ask for: columns, or -2 - place for a label before."""

    def values(self, n_rows: int, goes_left: Callable[[slice], Bools]) -> tuple[Array64, Array64]:
        """(labels,) the expected scores, and (rows, labels, used) what each feature adds.

        ``goes_left`` tells, of some rows, (nodes, rows) where every inner node sends them.
        O(rows * leaves * depth^4) at worst, where every node of a path asks for another feature.
        """
        found = np.zeros((n_rows, self.n_labels, len(self.used)))
        if not len(self.inner):  # leaves alone, or no tree at all
            return self._expected, found
        at_once = max(1, MOST_CELLS // max(1, len(self._pair_leaf)))
        for begin in range(0, n_rows, at_once):
            rows = slice(begin, min(begin + at_once, n_rows))
            taken = self._taken(goes_left(rows))
            shared = np.zeros(taken.shape)
            for group in self._groups:
                shared[group] = _shapley(
                    self._leaf_values[group[:, 0]], self._z[group], taken[group]
                )
            found[rows] = (self._collects @ shared).T.reshape(-1, self.n_labels, len(self.used))
        return self._expected, found

    @cached_property
    def _steps(self) -> Steps:
        """By climbing from all leaves at once."""
        trees = self.trees
        firsts = np.repeat(trees.starts[:-1], np.diff(trees.starts))
        parent = np.full(len(trees.features), -1)
        is_left = np.zeros(len(parent), bool)
        for side in (trees.left, trees.right):
            parent[(firsts + side)[self.inner]] = self.inner
        is_left[(firsts + trees.left)[self.inner]] = True
        parts, leaf = [], np.flatnonzero(trees.features == LEAF)
        at = leaf.copy()
        while len(at):
            kept = parent[at] >= 0
            leaf, at = leaf[kept], at[kept]
            parts.append((leaf, parent[at], is_left[at], self._share(at, parent)))
            at = parent[at]
        leaf, node, left, share = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((trees.features[node], leaf))
        return Steps(leaf[order], node[order], left[order], share[order])

    def _share(self, nodes: Ints, parent: Ints) -> Array64:
        """Of the weight of the parent; halves where that is 0, as no row decided."""
        weights = np.maximum(self.trees.weights.astype(np.float64), 0.0)
        firsts = np.repeat(self.trees.starts[:-1], np.diff(self.trees.starts))
        above = parent[nodes]
        sides = [weights[(firsts + side)[above]] for side in (self.trees.left, self.trees.right)]
        total = sides[0] + sides[1]
        return np.where(total > 0, weights[nodes] / np.where(total > 0, total, 1.0), 0.5)

    @cached_property
    def _firsts(self) -> Ints:
        """Where the steps of each pair (leaf, feature) begin."""
        steps = self._steps
        feature = self.trees.features[steps.node]
        is_new = np.ones(len(feature), bool)
        is_new[1:] = (np.diff(steps.leaf) != 0) | (np.diff(feature) != 0)
        return np.flatnonzero(is_new)

    @cached_property
    def _pair_leaf(self) -> Ints:
        return self._steps.leaf[self._firsts]

    @cached_property
    def _z(self) -> Array64:
        """(pairs,) the share of the weight that goes to the leaf where the feature is asked for."""
        return np.asarray(np.multiply.reduceat(self._steps.share, self._firsts))

    @cached_property
    def _leaf_values(self) -> Array64:
        """(pairs,) the value of the leaf."""
        return self.trees.values[self._pair_leaf].astype(np.float64)

    @cached_property
    def _groups(self) -> list[Ints]:
        """(leaves, features) pairs of the leaves with equally many features."""
        begins = np.flatnonzero(np.diff(self._pair_leaf, prepend=-1))
        sizes = np.diff(np.append(begins, len(self._pair_leaf)))
        return [
            begins[sizes == size][:, None] + np.arange(size) for size in np.unique(sizes).tolist()
        ]

    def _label_of(self, nodes: Ints) -> Ints:
        tree = np.searchsorted(self.trees.starts, nodes, side="right") - 1
        return np.asarray(tree % self.n_labels)

    @cached_property
    def _collects(self) -> sparse.csr_matrix:
        """(labels * used, pairs): adds pairs up."""
        feature = self.trees.features[self._steps.node[self._firsts]]
        place = self._label_of(self._pair_leaf) * len(self.used)
        place = place + np.searchsorted(self.used, feature)
        n_pairs = len(place)
        shape = self.n_labels * len(self.used), n_pairs
        return sparse.csr_matrix((np.ones(n_pairs), (place, np.arange(n_pairs))), shape=shape)

    @cached_property
    def _expected(self) -> Array64:
        leaves = np.flatnonzero(self.trees.features == LEAF)
        reach = np.ones(len(self.trees.features))
        if len(self.inner):
            np.multiply.at(reach, self._steps.leaf, self._steps.share)
        expected = reach[leaves] * self.trees.values[leaves]
        return np.bincount(self._label_of(leaves), expected, self.n_labels).astype(np.float64)

    def _taken(self, goes_left: Bools) -> Bools:
        """(pairs, rows) whether a row takes the path's side at all nodes that ask for a feature."""
        steps = self._steps
        place = np.searchsorted(self.inner, steps.node)
        agrees = goes_left[place] == steps.is_left[:, None]
        return np.asarray(np.logical_and.reduceat(agrees, self._firsts, axis=0))


def _shapley(values: Array64, z: Array64, taken: Bools) -> Array64:
    """(leaves, features, rows) of ``values`` (leaves,), ``z`` (leaves, features) and ``taken``."""
    n_leaves, size, n_rows = taken.shape
    one = taken.astype(np.float64)
    found = np.empty(taken.shape)
    for own in range(size):
        # Entry s: the sum over sets of s other features of what the game's product then is.
        counts = np.zeros((size, n_leaves, n_rows))
        counts[0] = 1.0
        for n_before, other in enumerate(k for k in range(size) if k != own):
            for s in range(n_before + 1, 0, -1):
                counts[s] = counts[s] * z[:, other, None] + counts[s - 1] * one[:, other]
            counts[0] *= z[:, other, None]
        weights = [factorial(s) * factorial(size - 1 - s) / factorial(size) for s in range(size)]
        mean = np.tensordot(np.array(weights), counts, axes=1)
        found[:, own] = values[:, None] * (one[:, own] - z[:, own, None]) * mean
    return found


@dataclass(frozen=True, eq=False)
class ContextTerms:
    """Trees, the features they see, and the labels before: ``before`` (all rows, order) codes,
    oldest first, -1 where there are none; ``labels`` their names.
    """

    trees: TreeArrays
    view: WindowView
    before: IntArray
    labels: Sequence[Any]

    def of(self, rows: IntArray, names: Names) -> list[Terms]:
        """The scores of every label at some rows; labels before are ``label[-1]``, ``label[-2]``.

        See `tree_shap` for what it costs.
        """
        shap = TreeShap(self.trees, len(self.labels))
        values = self._values(rows, shap.used)
        place = np.searchsorted(shap.used, self.trees.features[shap.inner])
        base, found = shap.values(
            len(rows), lambda part: self._goes_left(shap.inner, values[:, part][place])
        )
        told = [self._name(column, names) for column in shap.used.tolist()]
        columns = [self._column(column) for column in shap.used.tolist()]
        return [
            Terms.of(base, columns, told, self._inputs(shap.used, values[:, row]), own.T)
            for row, own in enumerate(found)
        ]

    def _values(self, rows: IntArray, used: Ints) -> npt.NDArray[np.float32]:
        """(used, rows) features as trees see them; of labels before the code, the number of labels
        where there is none.
        """
        found = np.empty((len(used), len(rows)), np.float32)
        is_label = used < LEAF
        found[~is_label] = self.view.values(rows, used[~is_label])
        codes = np.where(self.before < 0, len(self.labels), self.before)
        found[is_label] = codes[rows].T[-2 - used[is_label]]
        return found

    def _goes_left(self, nodes: Ints, values: npt.NDArray[np.float32]) -> Bools:
        """(nodes, rows) where the values at nodes, (nodes, rows), are sent."""
        trees = self.trees
        missing = np.isnan(values)
        by_set = trees.sets[nodes] >= 0
        found = values < trees.thresholds[nodes][:, None]
        if by_set.any():
            own = nodes[by_set]
            entries = np.where(missing[by_set], -1, values[by_set]).astype(np.int64)
            word = entries // WORD
            there = (entries >= 0) & (word < trees.set_sizes[own][:, None])
            at = np.where(there, trees.sets[own][:, None] + word, 0)
            bits = trees.words[at] >> (np.maximum(entries, 0) % WORD).astype(np.uint64)
            found[by_set] = there & ((bits & np.uint64(1)) == 1)
        return np.where(missing, trees.missing_left[nodes][:, None] != 0, found)

    def _name(self, column: int, names: Names) -> str:
        order = self.before.shape[1]
        return f"label[-{order + 2 + column}]" if column < LEAF else self.view.name(column, names)

    def _column(self, column: int) -> int:
        """The number in X, -1 where it is none or a neighbour's."""
        base, shift = (None, 0) if column < LEAF else self.view.origin(column)
        return -1 if base is None or shift else base

    def _inputs(self, used: Ints, values: npt.NDArray[np.float32]) -> list[Any]:
        names = [*self.labels, None]  # the last: there is no label before
        return [
            names[int(value)] if column < LEAF else self.view.shown(column, float(value))
            for column, value in zip(used.tolist(), values, strict=True)
        ]
