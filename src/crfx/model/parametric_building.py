"""New parametric models: linear in the features, or with hidden units; and what they train."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.features.conjunctions import Conjunctions
from crfx.features.matrix import take_rows
from crfx.model.building import Parts, new_model
from crfx.model.flat_parameters import grow_linear, linear_functions
from crfx.model.model import Model
from crfx.objectives.truth import Truth
from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction
from crfx.potentials.linear import LinearFunction
from crfx.potentials.numbers import with_conjunctions, with_constant
from crfx.potentials.weight_pattern import WeightPattern
from crfx.scores import IntArray, table_index
from crfx.workers import current, sums

FIRST_WEIGHTS = 0.01
"""Standard deviation of the first weights of hidden units, as in the paper."""
MOST_WEIGHTS = 2**32
"""Of all units together: 16 GiB, and training needs them several times."""


def has_parts(model: Model, parts: Parts) -> bool:
    """Return whether a parametric model has the edges, the order and the ends asked for."""
    return all(getattr(parts, name) == value for name, value in _parts_of(model, parts).items())


def check_parts(model: Model, parts: Parts) -> None:
    """Raise ValueError where a parametric model has other parts than those asked for."""
    for name, value in _parts_of(model, parts).items():
        if getattr(parts, name) != value:
            raise ValueError(
                f"{name} is {getattr(parts, name)!r}, but the model that is trained further has "
                f"{value!r}"
            )


def _parts_of(model: Model, parts: Parts) -> dict[str, Any]:
    """The arguments that ask for the parts of a parametric model.

    Without edges there are no ends, whatever ``start_end`` is.
    """
    has_ends = model.ends is not None or (parts.start_end and model.edge_family is None)
    return {"edges": model.edge_family, "order": model.order, "start_end": has_ends}


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


def grown_linear_model(
    old: Model, classes: npt.NDArray[Any], parts: Parts, truth: Truth, *, observed: bool
) -> tuple[Model, IntArray]:
    """Return a linear model for new data with all that ``old`` has, whose labels are ``classes``.

    Its weights are 0; `grow_linear` says what the second array is.
    """
    conjunctions, n_types = linear_functions(old)[0].conjunctions, old.n_types
    model = new_linear_model(
        parts, truth, observed=observed, least_types=n_types, conjunctions=conjunctions
    )
    if (n_types is None, old.is_forest) != (model.n_types is None, model.is_forest):
        raise ValueError("pass parents and edge_types exactly if the model was fitted with them")
    assert truth.classes is not None
    return model, grow_linear(old, model, np.searchsorted(truth.classes, classes))


def add_conjunctions(model: Model, X: Any, codes: IntArray, more: Conjunctions) -> int:
    """Give the nodes of a linear model more conjunctions with weights of 0; return how many
    weights these have, which come after those of the nodes so far.

    ``codes`` are the labels of the rows of X.
    """
    node = linear_functions(model)[0]
    if node.pattern.outputs is None:
        pattern = WeightPattern.all(len(more), node.n_outputs)
    else:
        pattern = WeightPattern.observed(more.of_matrix(X), codes, node.n_outputs)
    model.node = LinearFunction(
        node.pattern.followed_by(pattern),
        np.concatenate([node.weights, np.zeros(pattern.n_weights)]),
        more if node.conjunctions is None else node.conjunctions.joined(more),
    )
    model.node.use_threads(node.n_jobs)
    return pattern.n_weights


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
    counts = sums(current(), {name: own.astype(np.int64) for name, own in free.items()})
    return {name: own > 0 for name, own in counts.items()}


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
        own = rows if batch.edge_types is None else rows[batch.edge_types[rows] == kind]
        X = take_rows(features, own)
        yield WeightPattern.observed(X, codes[own], size, current().gather)


def _known_edges(truth: Truth) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Rows at which an edge ends, and the labels of all its positions, where all are known."""
    rows = truth.structure.edge_rows(truth.batch)
    own = truth.taught_labels
    before = own[truth.structure.contexts(truth.batch)]
    labels = np.column_stack([before, own[rows]])
    known = (labels >= 0).all(axis=1)
    return rows[known], labels[known]
