"""The parameters of a model in one flat vector, and their places in it when the model grows.

The vector has the weights of the node function, the edge table, the weights of the edge functions
by type, and the tables of the ends, in this order.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.features.conjunctions import Conjunctions
from crfx.model.building import Parts, new_linear_model
from crfx.model.continuing import table_codes, widened, with_labels
from crfx.model.model import Model
from crfx.objectives.truth import Truth
from crfx.potentials.hidden_unit import HiddenUnitFunction
from crfx.potentials.linear import LinearFunction
from crfx.potentials.transitions import Tables
from crfx.potentials.weight_pattern import WeightPattern
from crfx.scores import IntArray

Array64 = npt.NDArray[np.float64]
ParametricFunction: TypeAlias = LinearFunction | HiddenUnitFunction


def parametric_functions(model: Model) -> list[ParametricFunction]:
    """Return the functions of nodes, then of edges by type."""
    return cast("list[ParametricFunction]", model.functions)


def linear_functions(model: Model) -> list[LinearFunction]:
    """Return the functions of a linear model: of nodes, then of edges by type."""
    return cast("list[LinearFunction]", model.functions)


def parameter_arrays(model: Model) -> list[npt.NDArray[Any]]:
    """Return the arrays that hold the parameters, in the order of the vector."""
    node, *edges = parametric_functions(model)
    edge, ends = (
        [] if tables is None else list(tables.tables.values())
        for tables in (model.edge, model.ends)
    )
    return [node.weights, *edge, *(function.weights for function in edges), *ends]


def n_parameters(model: Model) -> int:
    """Return how many parameters a model has."""
    return sum(part.size for part in parameter_arrays(model))


def get_weights(model: Model) -> Array64:
    """Return all parameters of a model in one vector."""
    parts = [part.reshape(-1) for part in parameter_arrays(model)]
    return np.concatenate(parts, dtype=np.float64)


def set_weights(model: Model, values: npt.NDArray[Any]) -> None:
    """Write the parameters into the arrays of a model, which other models may share."""
    arrays = parameter_arrays(model)
    borders = np.cumsum([array.size for array in arrays])[:-1]
    for array, part in zip(arrays, np.split(values, borders), strict=True):
        array[...] = part.reshape(array.shape)


def copied(model: Model) -> Model:
    """Return a model with hidden units whose parameters are a copy."""
    node = cast("HiddenUnitFunction", model.node)
    function = HiddenUnitFunction(node.shape, node.weights.copy())
    function.use_threads(node.n_jobs)
    edge, ends = (
        None if part is None else Tables(dict(part.tables), part.l2)
        for part in (model.edge, model.ends)
    )
    return replace(model, node=function, edge=edge, ends=ends)


# Places of parameters in a larger model -----------------------------------------------------------


def moved(values: npt.NDArray[Any], origin: IntArray) -> npt.NDArray[Any]:
    """Return flat parameters in another order: ``origin`` is the old place of each, or -1 for new
    ones, which are 0.
    """
    return np.where(origin >= 0, values[origin], values.dtype.type(0))


def keeps_places(origin: IntArray, old: Model, new: Model) -> bool:
    """Return whether the weights of a linear model are the old ones, in their order.

    ``origin`` is what `grow_linear` returned; weights that stay 0 have no old place.
    """
    patterns = [function.pattern for function in linear_functions(new)]
    n_fixed = sum(0 if pattern.free is None else int((~pattern.free).sum()) for pattern in patterns)
    n_old = n_parameters(old)
    if len(origin) != n_old or np.count_nonzero(origin < 0) != n_fixed:
        return False
    return bool(((origin < 0) | (origin == np.arange(n_old))).all())


def places_with_labels(new: Model, old: Model, codes: IntArray) -> IntArray:
    """Return (parameters,) the old places in a model with hidden units that has got more labels.

    Old label k is label ``codes[k]`` now; new parameters have -1.
    """
    node, before = (cast("HiddenUnitFunction", model.node) for model in (new, old))
    places, begin = [node.shape.places_in(before.shape, codes)], before.shape.size
    for table in parameter_arrays(old)[1:]:
        n_axes = table.ndim if table.ndim == 1 else old.order + 1
        numbers = 1 + begin + np.arange(table.size).reshape(table.shape)
        places.append(widened(numbers, n_axes, codes, new.n_labels).reshape(-1) - 1)
        begin += table.size
    return np.concatenate(places)


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


def grow_linear(old: Model, new: Model, codes: IntArray) -> IntArray:
    """Add what a linear model has to ``new``, made for new data; return the old places.

    ``codes`` (old labels,) are the codes of the old labels among the new.  The result has, for
    every parameter of ``new``, its place among those of ``old``, or -1 if it is new.  The functions
    of ``new`` get all pairs of feature and output that either has.
    """
    sizes = [array.size for array in parameter_arrays(old)]
    places = iter(np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]))
    (node, *edges), (new_node, *new_edges) = linear_functions(old), linear_functions(new)
    origins = [_grow_function(node, new_node, codes, next(places))]
    if old.edge is not None and new.edge is not None:
        tables = old.edge.tables["edge"], new.edge.tables["edge"]
        origins.append(_grow_table(*tables, codes, next(places), typed=new.n_types is not None))
    outputs = table_codes(old.table, codes, new.n_labels) if edges else codes
    for function, larger in zip_longest(edges, new_edges):
        if function is None:  # of an edge type that is new
            origins.append(np.full(len(larger.weights), -1))
        else:
            at = next(places)
            origins.append(_grow_function(function, larger, outputs, at, with_constant=True))
    if old.ends is not None and new.ends is not None:
        for name, table in new.ends.tables.items():
            origins.append(_grow_table(old.ends.tables[name], table, codes, next(places)))
    new.base = old.base
    if old.base is not None and new.n_labels != old.n_labels:
        new.base = with_labels(old.base, codes, new.n_labels)
    return np.concatenate(origins)


def _grow_function(
    old: LinearFunction,
    new: LinearFunction,
    codes: IntArray,
    places: IntArray,
    *,
    with_constant: bool = False,
) -> IntArray:
    """Return the old places; columns keep their numbers, conjunctions and a constant stay last."""
    features = np.arange(old.pattern.n_features)
    features[old.n_columns :] += new.n_columns - old.n_columns
    if with_constant:
        features[-1] = new.pattern.n_features - 1
    shape = new.pattern.n_features, new.n_outputs
    numbered = old.pattern.matrix(places.astype(np.float64) + 1)  # 0 stands for what is not there
    old_pairs = sparse.coo_matrix(numbered)
    kept = sparse.csr_matrix(
        (old_pairs.data, (features[old_pairs.row], codes[old_pairs.col])), shape=shape
    )
    if new.pattern.outputs is None:
        new.weights = np.zeros(new.pattern.n_weights)
        return np.asarray(kept.todense(), dtype=np.int64).reshape(-1) - 1
    union = kept + new.pattern.matrix(np.ones(new.pattern.n_weights))
    new.pattern, _ = WeightPattern.of_matrix(sparse.csr_matrix(union))
    new.weights = np.zeros(new.pattern.n_weights)
    pairs = sparse.coo_matrix(new.pattern.matrix(np.arange(1.0, new.pattern.n_weights + 1)))
    numbers = np.asarray(kept[pairs.row, pairs.col]).reshape(-1)
    origin = np.full(new.pattern.n_weights, -1)
    origin[pairs.data.astype(np.int64) - 1] = numbers.astype(np.int64) - 1
    return origin


def _grow_table(
    old: npt.NDArray[Any],
    new: npt.NDArray[Any],
    codes: IntArray,
    places: IntArray,
    *,
    typed: bool = False,
) -> IntArray:
    """Return the old places; edge types, whose axis comes first, keep their numbers."""
    origin = np.full(new.shape, -1)
    front = [np.arange(old.shape[0])] if typed else []
    axes = [*front, *[codes] * (new.ndim - len(front))]
    origin[np.ix_(*axes)] = places.reshape(old.shape)
    return origin.reshape(-1)
