"""The parameters of a model: in one flat vector, and as blocks that score the rows of a batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.model.building import check_table_size, count_types
from crfx.model.model import Model
from crfx.model.sum import lifted
from crfx.objectives.truth import Truth
from crfx.potentials.hidden_unit import HiddenUnitFunction
from crfx.potentials.linear import LinearFunction
from crfx.potentials.numbers import with_constant
from crfx.potentials.transitions import Tables
from crfx.scores import FloatArray, IntArray, Scores
from crfx.trainers.blocks import EdgeRows
from crfx.trainers.parametric import (
    EdgeParameters,
    NodeParameters,
    ParameterBlock,
    TableParameters,
)

Array64 = npt.NDArray[np.float64]
ParametricFunction = LinearFunction | HiddenUnitFunction


def new_model(
    crf: Any, truth: Truth, node: ParametricFunction, least_types: int | None = None
) -> Model:
    """A model whose nodes are scored by a function, and by the tables that ``crf`` asks for, all 0;
    with ``least_types`` edge types or more.
    """
    batch, n_labels = truth.batch, node.n_outputs
    n_types = count_types(batch, truth.structure) if crf.edges is not None else None
    if n_types is not None and least_types is not None:
        n_types = max(n_types, least_types)
    has_tables = crf.edges is not None or crf.constraints is not None
    check_table_size(crf.order, n_labels, n_types, has_tables=has_tables)
    model = Model(
        order=crf.order,
        n_labels=n_labels,
        node=node,
        edge_family=crf.edges,
        n_types=n_types,
        is_forest=batch.parents is not None,
    )
    front = () if n_types is None else (n_types,)
    if crf.edges == "table":
        model.edge = Tables({"edge": np.zeros((*front, *model.table))}, 0.0)
    if crf.start_end and crf.edges is not None:
        names = ("start", "end") if batch.parents is None else ("start",)
        model.ends = Tables({name: np.zeros(n_labels) for name in names}, 0.0)
    return model


def edge_rows(model: Model, batch: Batch) -> EdgeRows:
    """With a constant feature last: its weights are the plain transitions."""
    rows = model.structure(batch).edge_rows(batch)
    return EdgeRows.of(batch, rows, model.n_types or 1, with_constant(batch.X))


def parameter_blocks(
    model: Model,
    batch: Batch,
    free: dict[str, npt.NDArray[np.bool_]] | None = None,
    *,
    touched: bool = False,
) -> tuple[list[ParameterBlock], IntArray]:
    """The parameters of a model, on the rows of a batch, and their places in `get_weights`.

    ``free`` marks the entries of tables that may move; None: all.  With ``touched`` functions have
    only the weights that the batch touches.
    """

    def prepared(function: ParametricFunction, X: Any) -> tuple[Any, IntArray]:
        if touched:
            return function.prepare_part(X)
        return function.prepare(X), np.arange(len(function.weights))

    node, *edges = parametric_functions(model)
    features, at = prepared(node, batch.X)
    blocks: list[ParameterBlock] = [NodeParameters(features, len(at))]
    places, begin = [at], len(node.weights)
    if model.edge is not None:
        blocks.append(_table_block("edge", model.edge, free))
        places.append(begin + np.arange(blocks[-1].size))
        begin += blocks[-1].size
    if edges:
        rows = edge_rows(model, batch)
        parts = [prepared(function, X) for function, X in zip(edges, rows.features, strict=True)]
        for function, (_, own) in zip(edges, parts, strict=True):
            places.append(begin + own)
            begin += len(function.weights)
        sizes = [len(own) for _, own in parts]
        blocks.append(EdgeParameters([part for part, _ in parts], sizes, rows, model.table))
    if model.ends is not None:
        blocks.append(_table_block("ends", model.ends, free))
        places.append(begin + np.arange(blocks[-1].size))
    return blocks, np.concatenate(places)


def _table_block(
    part: Any, tables: Tables, free: dict[str, npt.NDArray[np.bool_]] | None
) -> TableParameters:
    """The entries of shared tables as parameters."""
    shapes = {name: table.shape for name, table in tables.tables.items()}
    own = None if free is None else {name: free[name] for name in shapes}
    return TableParameters(part, shapes, own)


def base_scores(model: Model, batch: Batch) -> dict[str, FloatArray] | None:
    """The scores below those of the weights, by name, on a batch; None where there are none.

    Those of a base model, and the -inf of constraints.
    """
    if model.base is None and model.mask is None and batch.allowed is None:
        return None
    if model.base is None:
        scores = Scores(np.zeros((batch.n_rows, model.n_labels), np.float32))
    else:
        scores = model.base.scores(replace(batch, allowed=None), model.structure(batch))
        edge = lifted(scores.edge, model.base.sharing, model.sharing, model.n_types, batch)
        scores = Scores(scores.node, edge, scores.start, scores.end)
    had_edges = scores.edge is not None
    scores = model.masked(scores, batch)
    if not had_edges:
        edge = lifted(scores.edge, "shared", model.sharing, model.n_types, batch)
        scores = replace(scores, edge=edge)
    named = {name: getattr(scores, name) for name in ("node", "edge", "start", "end", "pairs")}
    if model.base is None and batch.allowed is None:
        del named["node"]  # zeros
    return {name: array for name, array in named.items() if array is not None}


def get_weights(model: Model) -> Array64:
    """All parameters of a model in one vector."""
    parts = [part.reshape(-1) for part in parameter_arrays(model)]
    return np.concatenate(parts, dtype=np.float64)


def set_weights(model: Model, values: npt.NDArray[Any]) -> None:
    """Put the parameters back where they belong."""
    borders = np.cumsum([part.size for part in parameter_arrays(model)])[:-1]
    for part, own in zip(parameter_arrays(model), np.split(values, borders), strict=True):
        part[...] = own.reshape(part.shape)


def parameter_arrays(model: Model) -> list[npt.NDArray[Any]]:
    """The arrays that hold the parameters, in the order of `parameter_blocks`."""
    node, *edges = parametric_functions(model)
    tables = [
        [] if part is None else list(part.tables.values()) for part in (model.edge, model.ends)
    ]
    return [node.weights, *tables[0], *(function.weights for function in edges), *tables[1]]


def parametric_functions(model: Model) -> list[ParametricFunction]:
    """Of nodes, then of edges by type."""
    return cast("list[ParametricFunction]", model.functions)


def copied(model: Model) -> Model:
    """A model with hidden units and tables whose parameters are its own."""
    node = model.node
    assert isinstance(node, HiddenUnitFunction)
    own = HiddenUnitFunction(node.shape, node.weights.copy())
    own.use_threads(node.n_jobs)
    edge, ends = (
        None if part is None else Tables(dict(part.tables), part.l2)
        for part in (model.edge, model.ends)
    )
    return replace(model, node=own, edge=edge, ends=ends)
