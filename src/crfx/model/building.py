"""New models, without rounds and with weights of 0, from the parts that an estimator asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from crfx.batch import Batch
from crfx.model.model import EdgeFamily, Model
from crfx.objectives.truth import Truth
from crfx.potentials.base import AdditiveFunction, Potential
from crfx.potentials.context_trees import ContextLearner, ContextShape, ContextTrees
from crfx.potentials.regressors import BoostedRegressors
from crfx.potentials.transitions import Tables
from crfx.potentials.trees import BoostedTrees
from crfx.structures import Chain, Forest
from crfx.workers import agreed

MOST_ENTRIES = 2**27
"""Of an edge table; several of its size are needed in training."""


@dataclass(frozen=True)
class Parts:
    """The parts of a model beside its node scores; ``table_l2`` is the penalty on tables."""

    order: int
    edges: EdgeFamily
    start_end: bool
    table_l2: float = 0.0
    has_constraints: bool = False


@dataclass(frozen=True)
class FunctionMaker:
    """Makes the functions of a boosted model, of class ``kind``; each draws a seed of its own.

    ``learner`` grows trees, or is a regressor that is fitted in their place.
    """

    kind: type[BoostedTrees] | type[BoostedRegressors]
    learner: Any
    draw_seed: Callable[[], int]

    def new(self, n_outputs: int) -> AdditiveFunction:
        """Return a function without rounds."""
        return self.kind.without_rounds(self.learner, n_outputs, self.draw_seed())

    def continued(self, function: Any) -> AdditiveFunction:
        """Return the rounds of a function, to be followed by rounds of this learner."""
        copy: AdditiveFunction = function.copy(self.learner, self.draw_seed())
        return copy


def new_model(parts: Parts, truth: Truth, node: Potential, least_types: int | None = None) -> Model:
    """Return a model of a node function and of tables of 0, with ``least_types`` types or more."""
    n_labels = node.n_outputs
    n_types = None if parts.edges is None else count_types(truth.batch, truth.structure)
    if n_types is not None and least_types is not None:
        n_types = max(n_types, least_types)
    check_table_size(
        parts.order,
        n_labels,
        n_types,
        has_tables=parts.edges is not None or parts.has_constraints,
    )
    is_forest = truth.batch.parents is not None
    model = Model(parts.order, n_labels, node, parts.edges, n_types=n_types, is_forest=is_forest)
    if parts.edges == "table":
        front = () if n_types is None else (n_types,)
        model.edge = Tables({"edge": np.zeros((*front, *model.table))}, parts.table_l2)
    if parts.start_end and parts.edges is not None:
        names = ("start",) if is_forest else ("start", "end")
        model.ends = Tables({name: np.zeros(n_labels) for name in names}, parts.table_l2)
    return model


def new_boosted_model(
    parts: Parts, maker: FunctionMaker, truth: Truth, base: Model | None = None
) -> Model:
    """Return a model whose scores are sums over rounds, without any, on top of a base model."""
    assert truth.classes is not None
    model = new_model(parts, truth, maker.new(len(truth.classes)))
    n_types, size = model.n_types or 1, int(np.prod(model.table))
    if parts.edges == "linear":
        n_features = truth.batch.X.shape[1] + 1  # type: ignore[attr-defined]
        model.edge = Tables({"weights": np.zeros((n_types, n_features, size))}, parts.table_l2)
    elif parts.edges == "trees":
        model.edge_functions = [maker.new(size) for _ in range(n_types)]
    if base is not None:
        model.set_base(base)
    return model


def new_context_model(
    parts: Parts,
    window: tuple[int, int],
    learner: ContextLearner,
    truth: Truth,
    base: Model | None = None,
) -> Model:
    """Return a model of trees over a window of features and the labels before, without rounds."""
    assert truth.classes is not None
    batch, n_labels = truth.batch, len(truth.classes)
    if batch.edge_types is not None:
        raise ValueError(
            "edge_types are given, but TreeCRF has one function for all edges: make the type a "
            "feature of the position at which the edge ends"
        )
    check_table_size(parts.order, n_labels)
    shape = ContextShape(n_labels, parts.order, window, is_sparse=sparse.issparse(batch.X))
    is_forest = batch.parents is not None
    node = ContextTrees(shape, learner)
    model = Model(parts.order, n_labels, node, "context", is_forest=is_forest)
    if parts.start_end and not is_forest:
        model.ends = Tables({"end": np.zeros(n_labels)}, 0.0)
    if base is not None:
        model.set_base(base)
    return model


def check_table_size(
    order: int, n_labels: int, n_types: int | None = None, *, has_tables: bool = True
) -> None:
    """Raise ValueError where edge tables would not fit into memory."""
    size = n_labels ** (order + 1)
    if has_tables and size > MOST_ENTRIES:
        raise ValueError(
            f"order={order} with {n_labels} labels needs edge tables of {n_labels}^{order + 1} = "
            f"{size:.3g} entries; at most {MOST_ENTRIES:.3g} fit: use a lower order"
        )
    if n_types is not None and size * n_types > MOST_ENTRIES:
        raise ValueError(
            f"{n_types} edge types (the largest number and 0) need a table of {n_labels}^"
            f"{order + 1} entries each; at most {MOST_ENTRIES:.3g} entries fit: number them "
            "from 0, without gaps"
        )


def count_types(batch: Batch, structure: Chain | Forest) -> int | None:
    """Return how many edge types all workers have; None where edges have none."""
    if batch.edge_types is None:
        return None
    _, counts = agreed(
        lambda: _count_types(batch, structure),
        lambda n_types: (batch.n_instances, n_types),
    )
    return max(counts)


def _count_types(batch: Batch, structure: Chain | Forest) -> int:
    assert batch.edge_types is not None
    rows = structure.edge_rows(batch)
    types = batch.edge_types[rows]
    if len(types) and types.min() < 0:
        raise batch.bad_row(rows[types.argmin()], f"edge type {types.min()} is negative")
    return int(types.max(initial=0)) + 1
