"""From the arguments of LinearCRF to its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from crfx.estimators.model_parameters import edge_rows, new_model
from crfx.features.conjunctions import Conjunctions
from crfx.features.matrix import is_sparse
from crfx.model.model import Model
from crfx.objectives.truth import Truth
from crfx.potentials.linear import LinearFunction
from crfx.potentials.numbers import with_conjunctions
from crfx.potentials.weight_pattern import WeightPattern
from crfx.scores import table_index
from crfx.workers import current, sums

if TYPE_CHECKING:
    from crfx.estimators.linear import LinearCRF


def new_linear_model(
    crf: LinearCRF,
    truth: Truth,
    n_labels: int,
    least_types: int | None = None,
    conjunctions: Conjunctions | None = None,
) -> Model:
    """A model whose weights are all 0, with ``least_types`` edge types or more."""
    node = LinearFunction(
        _node_pattern(crf, truth, n_labels, conjunctions), conjunctions=conjunctions
    )
    model = new_model(crf, truth, node, least_types)
    if crf.edges == "linear":
        model.edge_functions = [
            LinearFunction(pattern) for pattern in _edge_patterns(crf, truth, model)
        ]
    return model


def is_observed(crf: LinearCRF, X: Any) -> bool:
    """Whether weights exist for what occurs in training only."""
    return crf.features == "observed" or (crf.features == "auto" and is_sparse(X))


def _node_pattern(
    crf: LinearCRF, truth: Truth, n_labels: int, conjunctions: Conjunctions | None
) -> WeightPattern:
    X: Any = truth.batch.X
    if not is_observed(crf, X):
        n_more = 0 if conjunctions is None else len(conjunctions)
        return WeightPattern.all(X.shape[1] + n_more, n_labels)
    X = with_conjunctions(X, conjunctions)
    return WeightPattern.observed(X, truth.taught_labels, n_labels, current().gather)


def _edge_patterns(crf: LinearCRF, truth: Truth, model: Model) -> list[WeightPattern]:
    batch, size = truth.batch, int(np.prod(model.table))
    rows = edge_rows(model, batch)
    if not is_observed(crf, batch.X):
        n_features = rows.features[0].shape[1]
        return [WeightPattern.all(n_features, size) for _ in rows.by_type]
    codes = np.full(batch.n_rows, -1)
    at, labels = _known_edges(truth)
    codes[at] = np.ravel_multi_index(tuple(labels.T), model.table)
    return [
        WeightPattern.observed(X, codes[own], size, current().gather)
        for X, own in zip(rows.features, rows.by_type, strict=True)
    ]


def _known_edges(truth: Truth) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Rows at which an edge ends, and the labels of all its positions, where all are known."""
    rows = truth.structure.edge_rows(truth.batch)
    own = truth.taught_labels
    before = own[truth.structure.contexts(truth.batch)]
    labels = np.column_stack([before, own[rows]])
    known = (labels >= 0).all(axis=1)
    return rows[known], labels[known]


def free_entries(model: Model, truth: Truth) -> dict[str, npt.NDArray[np.bool_]]:
    """The table entries that occur in training, with some worker, by name; those with a weight
    occurred before.
    """
    batch = truth.batch
    free = {}
    if model.edge is not None:
        rows, labels = _known_edges(truth)
        free["edge"] = model.edge.tables["edge"] != 0
        free["edge"][(*table_index(model.own_sharing, rows, batch.edge_types), *labels.T)] = True
    names: Any = {} if model.ends is None else model.ends.tables
    for name in names:
        codes = truth.taught_labels[truth.rows_with(name, batch)]
        free[name] = np.isin(np.arange(model.n_labels), codes) | (names[name] != 0)
    counts = sums(current(), {name: own.astype(np.int64) for name, own in free.items()})
    return {name: own > 0 for name, own in counts.items()}


def linear_functions(model: Model) -> list[LinearFunction]:
    """Of nodes, then of edges by type."""
    return cast("list[LinearFunction]", model.functions)
