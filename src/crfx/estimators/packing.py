"""Models to the contents of a model file and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from crfx.estimators.file_values import number, texts, truth, whole
from crfx.features.columns import Columns
from crfx.features.conjunctions import Conjunctions
from crfx.io.model_file import Contents
from crfx.model.building import MOST_ENTRIES
from crfx.model.model import Model
from crfx.potentials import tree_format
from crfx.potentials.additive import Function
from crfx.potentials.context_trees import ContextShape, ContextTrees
from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction
from crfx.potentials.linear import LinearFunction
from crfx.potentials.transitions import Tables
from crfx.potentials.tree_arrays import NAMES, TreeArrays
from crfx.potentials.trees import BoostedTrees
from crfx.potentials.weight_pattern import WeightPattern
from crfx.potentials.xgboost_learner import XGBoostLearner
from crfx.structures import Mask

MOST_ORDER, MOST_TYPES, MOST_NEIGHBOURS, MOST_BELOW = 100, 100_000, 100_000, 100
"""What a file may say; beyond them it is broken."""
_EDGE_TABLES = {"table": "edge", "linear": "weights"}
"""Of edges that are no functions."""


def pack_model(model: Model, prefix: str, contents: Contents) -> dict[str, Any]:
    """Put arrays and trees into ``contents`` under ``prefix``; return the rest."""
    kind = _kind(model)
    for name, function in _named_functions(model):
        if isinstance(function, LinearFunction):
            _pack_linear(function, f"{prefix}{name}", contents)
        elif isinstance(function, ContextTrees):
            for part in NAMES:
                contents.arrays[f"{prefix}{name}.{part}"] = getattr(function.trees, part)
        elif isinstance(function, HiddenUnitFunction):
            contents.arrays[f"{prefix}{name}.weights"] = function.weights
        elif not isinstance(function, BoostedTrees):
            raise ValueError("a model with a base_learner cannot be saved")
        elif function.raw is not None:
            contents.blobs[f"{prefix}{name}"] = function.raw
    packed: dict[str, Any] = {
        "functions": kind,
        "n_rounds": model.n_rounds if kind in ("trees", "context") else 0,
        "order": int(model.order),
        "n_labels": model.n_labels,
        "edges": model.edge_family,
        "n_types": model.n_types,
        "is_forest": model.is_forest,
        "tables": {},
    }
    if isinstance(model.node, HiddenUnitFunction):
        shape = model.node.shape
        packed["hidden"] = {
            "n_hidden": shape.n_hidden,
            "activation": shape.activation,
            "skip": shape.skip,
        }
    if isinstance(model.node, ContextTrees):
        packed["context"] = {
            "window": list(model.node.shape.window),
            "is_sparse": bool(model.node.shape.is_sparse),
        }
    for part, tables in (("edge", model.edge), ("ends", model.ends)):
        if tables is None:
            continue
        rounds = tables.rounds()
        packed["tables"][part] = {"l2": tables.l2, "names": list(tables.tables)}
        packed["tables"][part]["by_round"] = rounds is not None
        for name, array in (tables.tables if rounds is None else rounds).items():
            contents.arrays[f"{prefix}{part}.{name}"] = array
    if model.mask is not None:
        packed["mask"] = _pack_mask(model.mask, prefix, contents)
    if model.base is not None:
        packed["base"] = pack_model(model.base, f"{prefix}base.", contents)
    return packed


def unpack_model(
    packed: dict[str, Any], prefix: str, contents: Contents, columns: Columns, depth: int = 0
) -> Model:
    """The model that ``pack_model`` packed, checked."""
    n_features, n_categories = columns.n, columns.category_counts()
    # Before anything grows with them: a small file must not ask for much memory or time.
    n_labels, order = whole(packed, "n_labels", 1), whole(packed, "order", 1, MOST_ORDER)
    n_types = None if packed["n_types"] is None else whole(packed, "n_types", 1, MOST_TYPES)
    n_rounds, family = whole(packed, "n_rounds"), packed["edges"]
    if family not in ("table", "linear", "trees", "context", None):
        raise ValueError(f"unknown edges {family!r}")
    if depth > MOST_BELOW:
        raise ValueError("too many models stand below one another")
    size = n_labels ** (order + 1)
    if (family is not None or "mask" in packed) and size > MOST_ENTRIES:
        raise ValueError(f"order {order} with {n_labels} labels needs tables that are too large")
    kind = packed.get("functions", "trees")
    is_linear = kind == "linear"

    def function(name: str, n_outputs: int, n_columns: int) -> Function:
        if is_linear:
            return _linear(contents, f"{prefix}{name}", n_outputs, n_columns)
        if kind == "hidden":
            return _hidden(contents, f"{prefix}{name}", n_outputs, n_columns, packed["hidden"])
        return _trees(contents, f"{prefix}{name}", n_outputs, n_columns, n_categories, n_rounds)

    node: Function | ContextTrees
    if kind == "context":
        node = _context(contents, f"{prefix}node", packed, n_features)
    else:
        node = function("node", n_labels, n_features)
    model = Model(
        order=order,
        n_labels=n_labels,
        node=node,
        edge_family=family,
        n_types=n_types,
        is_forest=_is_forest(packed),
    )
    if family == "trees" or (is_linear and family == "linear"):
        n_columns = n_features + is_linear  # linear edges have a constant feature
        model.edge_functions = [
            function(f"edge{kind}", size, n_columns) for kind in range(n_types or 1)
        ]
    front = () if n_types is None else (int(n_types),)
    shapes = {
        "edge": (*front, *(n_labels,) * (order + 1)),
        "weights": (int(n_types or 1), n_features + 1, size),
        "start": (n_labels,),
        "end": (n_labels,),
    }
    model.edge = _tables(packed, "edge", prefix, contents, shapes, n_rounds)
    model.ends = _tables(packed, "ends", prefix, contents, shapes, n_rounds)
    no_table = family in (None, "context") or model.edge_functions is not None
    if (family == "context") != (kind == "context"):
        raise ValueError(f"edges {family!r} do not go with {kind}")
    if (model.edge is None) != no_table:
        raise ValueError("its edge tables are missing")
    if "mask" in packed:  # files without constraints do not speak of them
        model.mask = _mask(packed["mask"], prefix, contents, n_labels)
    if "base" in packed:
        base = unpack_model(packed["base"], f"{prefix}base.", contents, columns, depth + 1)
        if base.n_labels != n_labels:
            raise ValueError("the model below has other labels")
        model.set_base(base)
    return model


def _pack_mask(mask: Mask, prefix: str, contents: Contents) -> list[str]:
    tables = {"pair": mask.pair, "start": mask.start, "end": mask.end}
    found = {name: table for name, table in tables.items() if table is not None}
    for name, table in found.items():
        contents.arrays[f"{prefix}mask.{name}"] = table
    return list(found)


def _mask(names: list[str], prefix: str, contents: Contents, n_labels: int) -> Mask:
    shapes = {"pair": (n_labels, n_labels), "start": (n_labels,), "end": (n_labels,)}
    tables = {name: contents.arrays[f"{prefix}mask.{name}"] for name in names}
    for name, table in tables.items():
        if table.shape != shapes[name] or table.dtype != np.bool_:
            raise ValueError(f"its constraints {name} have shape {table.shape}, not {shapes[name]}")
    return Mask(**tables)


def _is_forest(packed: dict[str, Any]) -> bool:
    """Files of the first days do not say; a forest has start scores, and none at the end."""
    ends = packed["tables"].get("ends")
    return truth(packed, "is_forest", ends is not None and "end" not in ends["names"])


def _trees(
    contents: Contents,
    name: str,
    n_outputs: int,
    n_features: int,
    n_categories: Mapping[int, int],
    n_rounds: int,
) -> BoostedTrees:
    raw, decoded = contents.blobs.get(name), None
    if raw is not None:
        decoded = tree_format.check(
            raw, n_features=n_features, n_outputs=n_outputs, n_categories=n_categories
        )
    trees = BoostedTrees(XGBoostLearner(), n_outputs, raw, decoded)
    if trees.n_rounds != n_rounds:
        raise ValueError(f"the trees {name} are not those of {n_rounds} rounds")
    return trees


def _context(
    contents: Contents, name: str, packed: dict[str, Any], n_features: int
) -> ContextTrees:
    left, right = packed["context"]["window"]
    n_labels, order = packed["n_labels"], packed["order"]
    if not all(type(side) is int and 0 <= side <= MOST_NEIGHBOURS for side in (left, right)):
        raise ValueError(f"it has a window of {left} and {right} neighbours")
    shape = ContextShape(n_labels, order, (left, right), truth(packed["context"], "is_sparse"))
    trees = TreeArrays(*(contents.arrays[f"{name}.{part}"] for part in NAMES))
    trees.check(shape.n_columns(n_features), n_labels, order)
    if trees.n_trees != packed["n_rounds"] * n_labels:
        raise ValueError(f"its trees are not those of {packed['n_rounds']} rounds")
    return ContextTrees(shape, _rounds=[trees])


def _pack_linear(function: LinearFunction, name: str, contents: Contents) -> None:
    matrix = function.pattern.matrix(function.weights)
    contents.arrays[f"{name}.starts"] = matrix.indptr.astype(np.int64)
    outputs = matrix.indices if function.pattern.outputs is not None else matrix.indices[:0]
    contents.arrays[f"{name}.outputs"] = outputs.astype(np.int32)  # none: every feature has all
    contents.arrays[f"{name}.weights"] = matrix.data
    if function.conjunctions is not None:
        contents.arrays[f"{name}.conjunctions.starts"] = function.conjunctions.starts
        contents.arrays[f"{name}.conjunctions.columns"] = function.conjunctions.columns


def _conjunctions(contents: Contents, name: str, n_columns: int) -> Conjunctions | None:
    """None where there are none; files without them do not speak of them."""
    if f"{name}.conjunctions.starts" not in contents.arrays:
        return None
    starts, columns = (
        contents.arrays[f"{name}.conjunctions.{part}"] for part in ("starts", "columns")
    )
    if not (starts.dtype == columns.dtype == np.int64 and starts.ndim == columns.ndim == 1):
        raise ValueError(f"the conjunctions of {name} are of another type")
    if len(starts) < 2 or starts[0] != 0 or starts[-1] != len(columns):
        raise ValueError(f"the conjunctions of {name} begin and end in wrong places")
    if (np.diff(starts) < 2).any() or columns.min() < 0 or columns.max() >= n_columns:
        raise ValueError(f"the conjunctions of {name} are not of two or more columns")
    rises = np.diff(columns) > 0
    rises[starts[1:-1] - 1] = True  # from one to the next
    if not rises.all():
        raise ValueError(f"the conjunctions of {name} are not in order")
    return Conjunctions(starts, columns)


def _linear(contents: Contents, name: str, n_outputs: int, n_columns: int) -> LinearFunction:
    conjunctions = _conjunctions(contents, name, n_columns)
    n_features = n_columns + (0 if conjunctions is None else len(conjunctions))
    starts, outputs, weights = (
        contents.arrays[f"{name}.{part}"] for part in ("starts", "outputs", "weights")
    )
    if starts.dtype != np.int64 or outputs.dtype != np.int32 or weights.dtype != np.float64:
        raise ValueError(f"the weights {name} are of another type")
    has_all = outputs.shape == (0,) and weights.shape == (n_features * n_outputs,)
    if starts.shape != (n_features + 1,) or not (has_all or weights.shape == outputs.shape):
        raise ValueError(f"the weights {name} are not those of {n_features} features")
    falls = starts[1:] < starts[:-1]
    if weights.ndim != 1 or starts[0] != 0 or starts[-1] != len(weights) or falls.any():
        raise ValueError(f"the weights {name} begin and end in wrong places")
    if len(outputs) and not (outputs.min() >= 0 and outputs.max() < n_outputs):
        raise ValueError(f"the weights {name} are for scores that there are not")
    if not np.isfinite(weights).all():
        raise ValueError(f"the weights {name} are not all finite")
    if has_all and np.array_equal(np.diff(starts), np.full(n_features, n_outputs)):
        return LinearFunction(WeightPattern.all(n_features, n_outputs), weights, conjunctions)
    if weights.shape != outputs.shape:
        raise ValueError(f"the weights {name} are for all scores, but begin in wrong places")
    matrix = sparse.csr_matrix((weights, outputs, starts), shape=(n_features, n_outputs))
    if not matrix.has_canonical_format:
        raise ValueError(f"the weights {name} are not in order")
    return LinearFunction(*WeightPattern.of_matrix(matrix), conjunctions)


def _kind(model: Model) -> str:
    if isinstance(model.node, HiddenUnitFunction):
        return "hidden"
    if isinstance(model.node, ContextTrees):
        return "context"
    return "linear" if isinstance(model.node, LinearFunction) else "trees"


def _hidden(
    contents: Contents, name: str, n_outputs: int, n_features: int, packed: dict[str, Any]
) -> HiddenUnitFunction:
    n_hidden, activation, skip = (packed[part] for part in ("n_hidden", "activation", "skip"))
    if activation not in ("softplus", "relu", "tanh", "sigmoid"):
        raise ValueError(f"unknown activation {activation!r}")
    if type(n_hidden) is not int or n_hidden < 0 or not isinstance(skip, bool):
        raise ValueError(f"it has {n_hidden!r} hidden units")
    shape = HiddenShape(n_features, n_hidden, n_outputs, activation, skip)
    weights = contents.arrays[f"{name}.weights"]
    if weights.dtype != np.float32 or weights.shape != (shape.size,):
        raise ValueError(f"the weights {name} are not those of {n_hidden} hidden units")
    if not np.isfinite(weights).all():
        raise ValueError(f"the weights {name} are not all finite")
    return HiddenUnitFunction(shape, weights)


def _named_functions(model: Model) -> list[tuple[str, Function | ContextTrees]]:
    names = ["node", *(f"edge{kind}" for kind in range(len(model.edge_functions or ())))]
    return list(zip(names, model.functions, strict=True))


def _tables(
    model: dict[str, Any],
    part: str,
    prefix: str,
    contents: Contents,
    shapes: dict[str, tuple[int, ...]],
    n_rounds: int,
) -> Tables | None:
    packed = model["tables"].get(part)
    if packed is None:
        return None
    names, by_round = texts(packed["names"]), truth(packed, "by_round")
    arrays = {name: contents.arrays[f"{prefix}{part}.{name}"] for name in names}
    if not arrays:
        raise ValueError("it has tables without names")
    ends = [["start", "end"], ["start"], ["end"]]
    if names not in (ends if part == "ends" else [[_EDGE_TABLES[model["edges"]]]]):
        raise ValueError(f"it has the tables {', '.join(names)}, which do not belong together")
    for name, array in arrays.items():
        shape = array.shape[1:] if by_round else array.shape
        if shape != shapes[name] or array.dtype != np.float32:
            raise ValueError(f"the table {name} has shape {shape}, not {shapes[name]}")
        if not np.isfinite(array).all():
            raise ValueError(f"the table {name} is not all finite")
    l2 = float(number(packed["l2"], "its l2"))
    if by_round:
        if any(len(array) != n_rounds + 1 for array in arrays.values()):
            raise ValueError(f"its tables are not those of {n_rounds} rounds")
        return Tables.from_rounds(arrays, l2)
    return Tables.from_sum(arrays, l2, n_rounds)
