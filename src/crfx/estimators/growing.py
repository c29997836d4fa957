"""Going on with a LinearCRF: on features, pairs and labels that its training has not seen."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.estimators.linear_assembly import linear_functions
from crfx.estimators.model_parameters import parameter_arrays
from crfx.model.continuing import table_codes, with_labels
from crfx.model.model import Model
from crfx.potentials.linear import LinearFunction
from crfx.potentials.weight_pattern import WeightPattern
from crfx.scores import IntArray


def can_go_on(old: Any, new: Any) -> bool:
    """Whether ``new`` may train the weights of ``old`` further: they have the same parts."""
    return type(old) is type(new) and has_parts(old.model_, new)


def has_parts(model: Model, new: Any) -> bool:
    """Whether a model has the edges, the order and the ends that an estimator asks for."""
    return all(getattr(new, name) == value for name, value in _parts(model, new).items())


def check_goes_on(old: Any, new: Any) -> None:
    """Raise ValueError where the weights of a fitted estimator are not of the parts asked for."""
    for name, value in _parts(old.model_, new).items():
        if getattr(new, name) != value:
            raise ValueError(
                f"{name} is {getattr(new, name)!r}, but the model that is trained further has "
                f"{value!r}"
            )


def _parts(model: Model, new: Any) -> dict[str, Any]:
    return {
        "edges": model.edge_family,
        "order": model.order,
        "start_end": model.ends is not None or (new.start_end and model.edge_family is None),
    }


def grow(old: Model, new: Model, codes: IntArray) -> IntArray:
    """Let ``new``, made for new data, have what ``old`` has too; where its weights come from.

    ``codes`` (old labels,) are the codes of the old labels among the new.  Returns, for every
    parameter of ``new``, its place among those of ``old``, or -1 if it is new.  The functions of
    ``new`` get all pairs of feature and output that either has.
    """
    places = iter(np.split(*_numbered(old)))
    (node, *edges), (new_node, *new_edges) = linear_functions(old), linear_functions(new)
    origins = [_grow_function(node, new_node, codes, next(places))]
    if old.edge is not None and new.edge is not None:
        tables = old.edge.tables["edge"], new.edge.tables["edge"]
        origins.append(_grow_table(*tables, codes, next(places), typed=new.n_types is not None))
    outputs = table_codes(old.table, codes, new.n_labels) if edges else codes
    for one, other in zip_longest(edges, new_edges):
        if one is None:  # of an edge type that is new
            origins.append(np.full(len(other.weights), -1))
        else:
            own = next(places)
            origins.append(_grow_function(one, other, outputs, own, with_constant=True))
    if old.ends is not None and new.ends is not None:
        for name, table in new.ends.tables.items():
            origins.append(_grow_table(old.ends.tables[name], table, codes, next(places)))
    new.base = old.base
    if old.base is not None and new.n_labels != old.n_labels:
        new.base = with_labels(old.base, codes, new.n_labels)
    return np.concatenate(origins)


def keeps_places(origin: IntArray, old: npt.NDArray[Any], new: Model) -> bool:
    """Whether the weights of ``new`` are the old ones, in their order: what `grow` returned says
    where they come from, and those that stay 0 come from nowhere.
    """
    patterns = [function.pattern for function in linear_functions(new)]
    n_fixed = sum(0 if own.free is None else int((~own.free).sum()) for own in patterns)
    if len(origin) != len(old) or np.count_nonzero(origin < 0) != n_fixed:
        return False
    return bool(((origin < 0) | (origin == np.arange(len(old)))).all())


def _numbered(model: Model) -> tuple[IntArray, IntArray]:
    """The places of all parameters, and where to split them by part."""
    sizes = [part.size for part in parameter_arrays(model)]
    return np.arange(sum(sizes)), np.cumsum(sizes)[:-1]


def _grow_function(
    old: LinearFunction,
    new: LinearFunction,
    codes: IntArray,
    places: IntArray,
    *,
    with_constant: bool = False,
) -> IntArray:
    """Columns keep their numbers; conjunctions of them, and a constant, stay the last."""
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
    found = np.asarray(kept[pairs.row, pairs.col]).reshape(-1)
    origin = np.full(new.pattern.n_weights, -1)
    origin[pairs.data.astype(np.int64) - 1] = found.astype(np.int64) - 1
    return origin


def _grow_table(
    old: npt.NDArray[Any],
    new: npt.NDArray[Any],
    codes: IntArray,
    places: IntArray,
    *,
    typed: bool = False,
) -> IntArray:
    """Edge types, whose axis comes first, keep their numbers."""
    origin = np.full(new.shape, -1)
    front = [np.arange(old.shape[0])] if typed else []
    axes = [*front, *[codes] * (new.ndim - len(front))]
    origin[np.ix_(*axes)] = places.reshape(old.shape)
    return origin.reshape(-1)
