"""New models, without rounds and untrained, from the parts that an estimator asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.batch import Batch
from crfx.features.conjunctions import Conjunctions
from crfx.features.matrix import take_rows
from crfx.model.model import EdgeFamily, Model
from crfx.objectives.truth import Truth
from crfx.potentials.base import AdditiveFunction, Potential
from crfx.potentials.context_trees import ContextLearner, ContextShape, ContextTrees
from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction
from crfx.potentials.linear import LinearFunction
from crfx.potentials.numbers import with_conjunctions, with_constant
from crfx.potentials.regressors import BoostedRegressors
from crfx.potentials.transitions import Tables
from crfx.potentials.trees import BoostedTrees
from crfx.potentials.weight_pattern import WeightPattern
from crfx.scores import table_index
from crfx.structures import Chain, Forest
from crfx.workers import agreed, current, sums

MOST_ENTRIES = 2**27
"""Of an edge table; several of its size are needed in training."""
FIRST_WEIGHTS = 0.01
"""Standard deviation of the first weights of hidden units, as in the paper."""
MOST_WEIGHTS = 2**32
"""Of all units together: 16 GiB, and training needs them several times."""


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

    def made(self, function: Any) -> bool:
        """Return whether a function is of the kind made here."""
        return type(function) is self.kind

    def continued(self, function: Any) -> AdditiveFunction:
        """Return the rounds of a function, to be followed by rounds of this learner."""
        copy: AdditiveFunction = function.copy(self.learner, self.draw_seed())
        return copy


def has_parts(model: Model, parts: Parts) -> bool:
    """Return whether a model has the edges, the order and the ends asked for."""
    return all(getattr(parts, name) == value for name, value in _parts_of(model, parts).items())


def check_parts(model: Model, parts: Parts) -> None:
    """Raise ValueError if a model has other parts than those asked for."""
    for name, value in _parts_of(model, parts).items():
        if getattr(parts, name) != value:
            raise ValueError(
                f"{name} is {getattr(parts, name)!r}, but the model that is trained further has "
                f"{value!r}"
            )


def _parts_of(model: Model, parts: Parts) -> dict[str, Any]:
    """Return the arguments that ask for the parts of a model.

    Without edges there are no ends, whatever ``start_end`` is.
    """
    has_ends = model.ends is not None or (parts.start_end and model.edge_family is None)
    return {"edges": model.edge_family, "order": model.order, "start_end": has_ends}


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


def new_hidden_model(
    parts: Parts, shape: HiddenShape, truth: Truth, seed: int, base: Model | None = None
) -> Model:
    """Return a model with hidden units of random first weights, on top of ``base``."""
    if shape.size > MOST_WEIGHTS:
        raise ValueError(
            f"n_hidden is {shape.n_hidden}: with {shape.n_features} features that makes "
            f"{shape.size:.3g} weights, and at most {MOST_WEIGHTS:.3g} fit"
        )
    node = HiddenUnitFunction.random(shape, FIRST_WEIGHTS, np.random.default_rng(seed))
    model = new_model(parts, truth, node, None if base is None else base.n_types)
    if base is not None:
        model.set_base(base)
    return model


def new_linear_model(
    parts: Parts,
    truth: Truth,
    *,
    observed: bool,
    base: Model | None = None,
    least_types: int | None = None,
    conjunctions: Conjunctions | None = None,
) -> Model:
    """Return a linear model whose weights are all 0, on top of ``base``.

    ``observed``: only pairs that occur in training have weights.  The model has ``least_types``
    edge types or more, and those of ``base``.
    """
    pattern = _node_pattern(truth, conjunctions, observed=observed)
    node = LinearFunction(pattern, conjunctions=conjunctions)
    model = new_model(parts, truth, node, least_types if base is None else base.n_types)
    if parts.edges == "linear":
        patterns = _edge_patterns(truth, model, observed=observed)
        model.edge_functions = [LinearFunction(pattern) for pattern in patterns]
    if base is not None:
        model.set_base(base)
    return model


# Sizes and entries of tables ----------------------------------------------------------------------


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


def free_entries(model: Model, truth: Truth) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which table entries occur in the training of some worker, by name.

    Those with a weight occurred before.
    """
    batch, free = truth.batch, {}
    if model.edge is not None:
        rows, labels = _known_edges(truth)
        free["edge"] = model.edge.tables["edge"] != 0
        free["edge"][(*table_index(model.own_sharing, rows, batch.edge_types), *labels.T)] = True
    names: Any = {} if model.ends is None else model.ends.tables
    for name in names:
        codes = truth.taught_labels[truth.rows_with(name, batch)]
        free[name] = np.isin(np.arange(model.n_labels), codes) | (names[name] != 0)
    counts = sums(current(), {name: marks.astype(np.int64) for name, marks in free.items()})
    return {name: marks > 0 for name, marks in counts.items()}


def _node_pattern(
    truth: Truth, conjunctions: Conjunctions | None, *, observed: bool
) -> WeightPattern:
    assert truth.classes is not None
    X: Any = truth.batch.X
    n_labels = len(truth.classes)
    if not observed:
        n_more = 0 if conjunctions is None else len(conjunctions)
        return WeightPattern.all(X.shape[1] + n_more, n_labels)
    X = with_conjunctions(X, conjunctions)
    return WeightPattern.observed(X, truth.taught_labels, n_labels, current().gather)


def _edge_patterns(truth: Truth, model: Model, *, observed: bool) -> Iterator[WeightPattern]:
    """Yield the pattern of every edge type."""
    batch, size = truth.batch, int(np.prod(model.table))
    rows, features = truth.structure.edge_rows(batch), with_constant(batch.X)
    codes = np.full(batch.n_rows, -1)
    if observed:
        at, labels = _known_edges(truth)
        codes[at] = np.ravel_multi_index(tuple(labels.T), model.table)
    for kind in range(model.n_types or 1):
        if not observed:
            yield WeightPattern.all(features.shape[1], size)
            continue
        rows_of_type = rows if batch.edge_types is None else rows[batch.edge_types[rows] == kind]
        X = take_rows(features, rows_of_type)
        yield WeightPattern.observed(X, codes[rows_of_type], size, current().gather)


def _known_edges(truth: Truth) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return rows where edges end, and the labels that each edge joins, where all are known."""
    rows = truth.structure.edge_rows(truth.batch)
    codes = truth.taught_labels
    before = codes[truth.structure.contexts(truth.batch)]
    labels = np.column_stack([before, codes[rows]])
    known = (labels >= 0).all(axis=1)
    return rows[known], labels[known]
