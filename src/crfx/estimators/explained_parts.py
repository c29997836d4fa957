"""The scores of a model's parts as sums over features, those of a base model included."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.batch import Batch
from crfx.features.matrix import take_rows
from crfx.model.model import Model
from crfx.potentials.context_trees import ContextTrees
from crfx.potentials.linear_terms import WEIGHT_TIMES_VALUE, weighted_terms
from crfx.potentials.newton import linear_features
from crfx.scores import FloatArray, IntArray
from crfx.structures import Chain, Forest
from crfx.terms import Names, Terms


class ExplainedParts:
    """What a model says about the ``rows`` of a batch, given the labels ``codes`` (all rows,) of
    ``classes``.
    """

    def __init__(
        self,
        model: Model,
        batch: Batch,
        rows: IntArray,
        codes: IntArray,
        classes: npt.NDArray[Any],
    ) -> None:
        self.model, self.batch, self.rows, self.codes = model, batch, rows, codes
        self.labels = classes.tolist()
        self.structure: Chain | Forest = model.structure(batch)
        self._before = np.full((batch.n_rows, self.structure.n_label_axes - 1), -1)
        edge_rows = self.structure.edge_rows(batch)
        self._before[edge_rows] = codes[self.structure.contexts(batch)]

    @property
    def method(self) -> str:
        """How scores are shared out among features."""
        found = []
        for model in self.model.layers:
            found.append(model.node.method)
            if model.edge_family == "linear":
                found.append(WEIGHT_TIMES_VALUE)
        return ", ".join(dict.fromkeys(found))

    def before(self, row: int) -> IntArray:
        """The codes of the labels before a row, oldest first; empty where no edge ends there."""
        found: IntArray = self._before[row]
        return found if (found >= 0).all() else found[:0]

    def given_before(self) -> FloatArray:
        """(all rows, K): what trees that see the labels before (TreeCRF's) say after these.

        Told as scores of the position; 0 where there are no such trees, or no labels before.
        """
        found: FloatArray = np.zeros((self.batch.n_rows, self.model.n_labels), np.float32)
        for model in self.model.layers:
            if isinstance(model.node, ContextTrees):
                found = found + model.node.given(self.batch, self.structure, self._before)
        return found

    def alone_given(self, row: int) -> list[Any]:
        """The labels before a row, where scores of the position take them as given."""
        takes = any(isinstance(model.node, ContextTrees) for model in self.model.layers)
        return [self.labels[code] for code in self.before(row)] if takes else []

    def nodes(self, names: Names) -> list[Terms]:
        """Of every row, by label, `given_before` included."""
        parts = [self._nodes_of(model, names) for model in self.model.layers]
        return [_sum(own) for own in zip(*parts, strict=True)]

    def _nodes_of(self, model: Model, names: Names) -> Iterable[Terms]:
        if isinstance(model.node, ContextTrees):
            return model.node.explained(self.batch, self.rows, self._before, names, self.labels)
        return model.node.explained(take_rows(self.batch.X, self.rows), names)

    def edges(self, names: Names) -> list[Terms | None]:
        """Of every row at which an edge ends whose score depends on features: the score of every
        label after the labels before.
        """
        found: dict[int, Terms] = {}
        for model in self.model.layers:
            if model.edge_family not in ("linear", "trees"):
                continue
            for row, terms in self._edges_of(model, names):
                found[row] = terms if row not in found else found[row].plus(terms)
        return [found.get(int(row)) for row in self.rows]

    def _edges_of(self, model: Model, names: Names) -> Iterable[tuple[int, Terms]]:
        rows = np.array([row for row in self.rows if len(self.before(row))], dtype=np.int64)
        types = self.batch.edge_types
        for kind in range(model.n_types or 1):
            own = rows if types is None or model.n_types is None else rows[types[rows] == kind]
            explained = _explained_edges(model, kind, take_rows(self.batch.X, own), names)
            for row, terms in zip(own.tolist(), explained, strict=True):
                yield row, terms.take(self._outputs(row))

    def _outputs(self, row: int) -> npt.NDArray[np.int64]:
        """The entries of a flat table for the labels before and every label."""
        n_labels, first = self.model.n_labels, 0
        for code in self.before(row):
            first = first * n_labels + int(code)
        return first * n_labels + np.arange(n_labels)


def _sum(parts: Iterable[Terms]) -> Terms:
    first, *others = parts
    for other in others:
        first = first.plus(other)
    return first


def _explained_edges(model: Model, kind: int, X: Any, names: Names) -> Iterable[Terms]:
    """Of edges of one type, by entry of a flat table; of linear ones a constant is the base."""
    if model.edge_family == "trees":
        assert model.edge_functions is not None
        return model.edge_functions[kind].explained(X, names)
    if model.edge_functions is not None:
        function: Any = model.edge_functions[kind]
        weights = sparse.csr_matrix(function.pattern.matrix(function.weights))
        constant = weights[-1].toarray()[0]
    else:
        assert model.edge is not None
        weights = model.edge.tables["weights"][kind]
        constant = weights[-1]
    return weighted_terms(linear_features(X)[:, :-1], weights[:-1], constant, names)
