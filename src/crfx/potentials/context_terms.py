"""F^k(labels before, window of x) as a sum over its features, the labels before among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.features.tree_rows import WindowView
from crfx.potentials.tree_arrays import LEAF, WORD, TreeArrays
from crfx.potentials.tree_shap import TreeShap
from crfx.scores import IntArray
from crfx.terms import Names, Terms

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


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
