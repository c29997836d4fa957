"""Importance: how much features and transitions matter to a model over all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfx.features.columns import Columns
from crfx.model.model import Model
from crfx.potentials.linear import SPREAD, spread
from crfx.potentials.tree_shap import SHARE_OF_GAIN
from crfx.scores import FloatArray
from crfx.terms import Names

NO_EDGES = "no edges"
SIZE = "size of the transition's score"
CONSTANT = "(constant)"
"""Of linear edges: what the transition scores whatever the features."""
IMPORTANCE_KINDS = ("total_gain", "gain", "weight", "cover", "total_cover")


@dataclass(frozen=True)
class Importance:
    """``node``: features; ``edge``: features where edges depend on them, else transitions.

    Greatest first; what does not matter at all is left out.  ``node_by`` and ``edge_by`` name the
    measures: numbers of different ones do not compare.
    """

    node: dict[str, float]
    node_by: str
    edge: dict[str, float]
    edge_by: str

    @classmethod
    def of(
        cls,
        node: dict[str, float],
        node_by: str,
        edge: dict[str, float] | None = None,
        edge_by: str = NO_EDGES,
    ) -> Importance:
        """Return the importance of nodes and edges, given in any order."""
        return cls(_ordered(node), node_by, _ordered(edge or {}), edge_by)


def _ordered(values: dict[str, float]) -> dict[str, float]:
    kept = ((name, float(value)) for name, value in values.items() if value)
    return dict(sorted(kept, key=lambda pair: -pair[1]))


def shares(values: dict[str, float]) -> dict[str, float]:
    """Return the same values as shares that add up to 1."""
    total = sum(values.values()) or 1.0
    return {name: value / total for name, value in values.items()}


def tree_importance(ensemble: Any, columns: Columns, kind: str) -> dict[str, float]:
    """Return XGBoost's importance of every feature that trees use, by its name."""
    if kind not in IMPORTANCE_KINDS:
        choices = ", ".join(map(repr, IMPORTANCE_KINDS))
        raise ValueError(f"kind is {kind!r}: choose one of {choices}")
    name_of = columns.name_of()
    return {name_of(column): value for column, value in ensemble.importance(kind).items()}


def function_importance(function: Any, names: Names) -> Importance:
    """Return the importance of one function of the features."""
    strengths = _named(function.strengths(), function.named(names))
    measure = function.measure
    return Importance.of(shares(strengths) if measure == SHARE_OF_GAIN else strengths, measure)


def labelling_importance(model: Model, names: Names, labels: Sequence[Any]) -> Importance:
    """Return the importance of nodes and of edges, without a base model's."""
    node = function_importance(model.node, names)
    edge, measure = _edges(model, names, labels)
    return Importance.of(node.node, node.node_by, edge, measure)


def _edges(model: Model, names: Names, labels: Sequence[Any]) -> tuple[dict[str, float], str]:
    if model.edge_family is None:
        return {}, NO_EDGES
    if model.edge_family == "table":
        return _transitions(model, labels), SIZE
    if model.edge_family == "trees":
        assert model.edge_functions is not None
        gains = np.sum([function.strengths() for function in model.edge_functions], axis=0)
        return shares(_named(gains, names)), model.edge_functions[0].measure
    weights = list(_edge_weights(model))
    apart = np.max([spread(weight) for weight in weights], axis=0)  # of all types
    n_features = len(apart) - 1
    return _named(apart, lambda k: CONSTANT if k == n_features else names(k)), SPREAD


def _edge_weights(model: Model) -> Iterable[Any]:
    """Return (features + 1, entries) for every type; the last row is the constant's."""
    if model.edge_functions is None:
        assert model.edge is not None
        return model.edge.tables["weights"]
    functions: Any = model.edge_functions
    return (function.pattern.matrix(function.weights) for function in functions)


def _transitions(model: Model, labels: Sequence[Any]) -> dict[str, float]:
    """Return the sizes by labels, oldest first, and by type if edges have types."""
    assert model.edge is not None
    table = model.edge.tables["edge"]
    n_before = table.ndim - model.order - 1
    sizes = {}
    for place in zip(*np.nonzero(table), strict=True):
        path = " -> ".join(str(labels[code]) for code in place[n_before:])
        kind = f" (type {place[0]})" if n_before else ""
        sizes[path + kind] = abs(float(table[place]))
    return sizes


def _named(strengths: FloatArray, names: Names) -> dict[str, float]:
    return {names(int(column)): float(strengths[column]) for column in np.flatnonzero(strengths)}
