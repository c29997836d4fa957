"""Models in model files: the parts that potentials do not write themselves, and rankings."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from crfx.features.columns import Columns
from crfx.model.building import MOST_ENTRIES
from crfx.model.model import Model
from crfx.model.ranking_model import RankingModel, linear_function
from crfx.potentials.base import Function, PotentialShape
from crfx.potentials.linear import LinearFunction
from crfx.potentials.registry import POTENTIALS
from crfx.potentials.transitions import Tables
from crfx.potentials.trees import BoostedTrees
from crfx.state import State
from crfx.structures import Mask

MOST_ORDER, MOST_TYPES, MOST_BELOW = 100, 100_000, 100
"""What a file may ask for: order, edge types, base models."""


def model_to_state(model: Model, state: State) -> None:
    """Write a model and its base models."""
    state.values |= {
        "functions": model.node.kind,
        "n_rounds": model.n_rounds,
        "order": int(model.order),
        "n_labels": model.n_labels,
        "edges": model.edge_family,
        "n_types": model.n_types,
        "is_forest": model.is_forest,
        "tables": {},
    }
    model.node.to_state(state, "node")
    for number, function in enumerate(model.edge_functions or ()):
        function.to_state(state, f"edge{number}")
    for name, tables in (("edge", model.edge), ("ends", model.ends)):
        if tables is not None:
            tables.to_state(state, name)
    if model.mask is not None:
        _mask_to_state(model.mask, state)
    if model.base is not None:
        state.values["base"] = {}
        model_to_state(model.base, state.nested(state.values["base"], "base."))


def model_from_state(state: State, columns: Columns, depth: int = 0) -> Model:
    """Read and check what `model_to_state` wrote."""
    values = state.values
    # Before anything grows with them: a small file must not ask for much memory or time.
    n_labels, order = state.whole("n_labels", 1), state.whole("order", 1, MOST_ORDER)
    n_types = None if values["n_types"] is None else state.whole("n_types", 1, MOST_TYPES)
    n_rounds, family = state.whole("n_rounds"), values["edges"]
    if family not in ("table", "linear", "trees", "context", None):
        raise ValueError(f"unknown edges {family!r}")
    if depth > MOST_BELOW:
        raise ValueError("too many models stand below one another")
    size = n_labels ** (order + 1)
    if (family is not None or "mask" in values) and size > MOST_ENTRIES:
        raise ValueError(f"order {order} with {n_labels} labels needs tables that are too large")
    kind = values.get("functions", "trees")  # files of early versions have trees only
    if (family == "context") != (kind == "context"):
        raise ValueError(f"edges {family!r} do not go with {kind}")
    potential, is_linear = POTENTIALS[kind], kind == "linear"

    def shape(n_outputs: int, n_features: int) -> PotentialShape:
        return PotentialShape(n_outputs, n_features, n_rounds, columns.category_counts(), order)

    model = Model(
        order=order,
        n_labels=n_labels,
        node=cast("Any", potential.from_state(state, "node", shape(n_labels, columns.n))),
        edge_family=family,
        n_types=n_types,
        is_forest=_is_forest(state),
    )
    if family == "trees" or (is_linear and family == "linear"):
        edge = shape(size, columns.n + is_linear)  # linear edges have a constant feature
        model.edge_functions = [
            cast("Function", potential.from_state(state, f"edge{number}", edge))
            for number in range(n_types or 1)
        ]
    elif family in ("table", "linear"):
        if "edge" not in values["tables"]:
            raise ValueError("its edge tables are missing")
        front = () if n_types is None else (n_types,)
        shapes: dict[str, tuple[int, ...]] = {"edge": (*front, *model.table)}
        if family == "linear":
            shapes = {"weights": (n_types or 1, columns.n + 1, size)}
        model.edge = Tables.from_state(state, "edge", shapes, n_rounds)
    if "ends" in values["tables"]:
        shapes = {"start": (n_labels,), "end": (n_labels,)}
        model.ends = Tables.from_state(state, "ends", shapes, n_rounds)
    if "mask" in values:  # files without constraints lack it
        model.mask = _mask_from_state(state, n_labels)
    if "base" in values:
        base = model_from_state(state.nested(values["base"], "base."), columns, depth + 1)
        if base.n_labels != n_labels:
            raise ValueError("the model below has other labels")
        model.set_base(base)
    return model


def _is_forest(state: State) -> bool:
    """Return whether instances are forests, also of early files, which do not say.

    A forest has start scores, and none at the end.
    """
    ends = state.values["tables"].get("ends")
    return state.truth("is_forest", ends is not None and "end" not in ends["names"])


def _mask_to_state(mask: Mask, state: State) -> None:
    tables = {"pair": mask.pair, "start": mask.start, "end": mask.end}
    state.values["mask"] = [name for name, table in tables.items() if table is not None]
    for name, table in tables.items():
        if table is not None:
            state.put(f"mask.{name}", table)


def _mask_from_state(state: State, n_labels: int) -> Mask:
    shapes = {"pair": (n_labels, n_labels), "start": (n_labels,), "end": (n_labels,)}
    names = state.values["mask"]
    return Mask(**{name: state.array(f"mask.{name}", np.bool_, shapes[name]) for name in names})


# Rankings: one function of a document, in a layout of its own.


def ranking_to_state(model: RankingModel, state: State) -> None:
    """Write the model of a ranking and its base models."""
    state.values["scorer"] = model.scorer
    if model.scorer == "trees":
        model.function.to_state(state, "trees")
    else:  # without the pattern: every feature has one weight
        state.put("weights", cast("LinearFunction", model.function).weights)
    if model.base is not None:
        state.values["base"] = {}
        ranking_to_state(model.base, state.nested(state.values["base"], "base."))


def ranking_from_state(state: State, columns: Columns, depth: int = 0) -> RankingModel:
    """Read and check what `ranking_to_state` wrote."""
    if depth > MOST_BELOW:
        raise ValueError("too many models stand below one another")
    scorer = state.values["scorer"]
    function: LinearFunction | BoostedTrees
    if scorer == "linear":
        function = linear_function(state.array("weights", np.float64, (columns.n,)))
    elif scorer == "trees":
        shape = PotentialShape(1, columns.n, None, columns.category_counts())
        function = BoostedTrees.from_state(state, "trees", shape)
    else:
        raise ValueError(f"unknown scorer {scorer!r}")
    base = None
    if "base" in state.values:
        base = ranking_from_state(state.nested(state.values["base"], "base."), columns, depth + 1)
    return RankingModel(function, base)
