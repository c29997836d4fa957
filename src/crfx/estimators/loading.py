"""Estimators to model files and back.

The format, version 1: ``model.json`` names the class and holds its arguments, labels, history and
the shape of the model; tables are .npy arrays, trees are XGBoost's UBJSON.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from crfx.estimators.assembly import MOST_ENTRIES
from crfx.estimators.gbcrf import GBCRF
from crfx.features import Columns
from crfx.io.model_file import Contents, read, write
from crfx.model import Model
from crfx.potentials import tree_format
from crfx.potentials.transitions import Tables
from crfx.potentials.trees import BoostedTrees
from crfx.potentials.xgboost_learner import XGBoostLearner

MOST_ORDER, MOST_TYPES = 100, 100_000
"""What a file may say; beyond them it is broken."""
CLASSES: dict[str, Callable[..., Any]] = {"GBCRF": GBCRF}


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file, whole or not at all."""
    estimator._check_fitted()
    if type(estimator) not in CLASSES.values():
        raise ValueError(f"a {type(estimator).__name__} cannot be saved: load would not know it")
    columns = estimator.columns_
    contents = Contents(
        {
            "class": type(estimator).__name__,
            "arguments": _plain_arguments(estimator),
            "labels": _plain_labels(estimator.classes_),
            "n_features": columns.n,
            "feature_names": columns.names,
            "categories": _plain_categories(columns),
            "n_rounds": estimator.n_rounds_,
            "history": {
                name: [entry if np.isfinite(entry) else None for entry in entries]
                for name, entries in estimator.history_.items()
            },
        }
    )
    contents.values["model"] = _pack_model(estimator.model_, "", contents)
    write(path, contents)


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that ``save`` wrote.  Executes nothing that the file brings."""
    contents = read(path)
    try:
        return _unpack(contents)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(f"{os.fspath(path)} is not a model file of crfx: {error}") from None


def _unpack(contents: Contents) -> Any:
    values = contents.values
    if values["class"] not in CLASSES:
        raise ValueError(f"it holds a {values['class']}, which this crfx does not know")
    estimator = CLASSES[values["class"]](**values["arguments"])
    estimator.classes_ = np.array(values["labels"])
    if estimator.classes_.shape != (int(values["model"]["n_labels"]),):
        raise ValueError("its labels are not as many as its scores")
    if len(set(values["labels"])) < len(values["labels"]):
        raise ValueError("a label is there twice")
    estimator.columns_ = _columns(values)
    estimator.n_rounds_ = int(values["n_rounds"])
    estimator.best_iteration_ = max(estimator.n_rounds_ - 1, 0)
    estimator.history_ = {
        name: [np.nan if entry is None else float(entry) for entry in entries]
        for name, entries in values["history"].items()
    }
    estimator.model_ = _unpack_model(values["model"], "", contents, estimator.columns_.n)
    if estimator.model_.n_rounds != estimator.n_rounds_:
        raise ValueError("its rounds are not as many as it says")
    return estimator


def _plain_arguments(estimator: Any) -> dict[str, Any]:
    arguments = estimator.get_params(deep=False)
    if arguments.get("base_learner") is not None:
        raise ValueError(
            "a model with a base_learner cannot be saved: the file holds no foreign objects"
        )
    if callable(arguments.get("eval_metric")):
        arguments["eval_metric"] = "loss"  # a function; needed in training only
    state = arguments.get("random_state")
    if state is not None and not isinstance(state, int | np.integer):
        arguments["random_state"] = None  # a generator; needed in training only
    return {name: _plain(value) for name, value in arguments.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _plain_labels(classes: Any) -> list[Any]:
    labels: list[Any] = classes.tolist()
    if not all(isinstance(label, str | int | float) for label in labels):
        raise ValueError("a model can be saved if its labels are text or numbers")
    return labels


def _plain_categories(columns: Columns) -> dict[str, list[Any]]:
    for name, known in columns.categories.items():
        if not all(isinstance(category, str | int | float) for category in known):
            raise ValueError(
                f"column {name!r} has categories that are no text and no numbers: such a model "
                "cannot be saved"
            )
    return columns.categories


def _columns(values: dict[str, Any]) -> Columns:
    names, categories = values["feature_names"], values.get("categories", {})
    found = Columns(int(values["n_features"]), names, categories)
    if found.n < 1 or (names is not None and len(names) != found.n):
        raise ValueError("its features are told in different ways")
    if not set(categories) <= set(names or ()):
        raise ValueError("it has categories of a feature that it has not")
    return found


def _pack_model(model: Model, prefix: str, contents: Contents) -> dict[str, Any]:
    """Put arrays and trees into ``contents`` under ``prefix``; return the rest."""
    functions = {"node": model.node}
    for kind, function in enumerate(model.edge_functions or ()):
        functions[f"edge{kind}"] = function
    for name, function in functions.items():
        if not isinstance(function, BoostedTrees):
            raise ValueError("a model with a base_learner cannot be saved")
        if function.raw is not None:
            contents.blobs[f"{prefix}{name}"] = function.raw
    packed: dict[str, Any] = {
        "n_rounds": model.n_rounds,
        "order": model.order,
        "n_labels": model.n_labels,
        "edges": model.edge_family,
        "n_types": model.n_types,
        "is_forest": model.is_forest,
        "tables": {},
    }
    for part, tables in (("edge", model.edge), ("ends", model.ends)):
        if tables is None:
            continue
        rounds = tables.rounds()
        packed["tables"][part] = {"l2": tables.l2, "names": list(tables.tables)}
        packed["tables"][part]["by_round"] = rounds is not None
        for name, array in (tables.tables if rounds is None else rounds).items():
            contents.arrays[f"{prefix}{part}.{name}"] = array
    if model.base is not None:
        packed["base"] = _pack_model(model.base, f"{prefix}base.", contents)
    return packed


def _unpack_model(
    packed: dict[str, Any], prefix: str, contents: Contents, n_features: int
) -> Model:
    n_labels, order, n_types = int(packed["n_labels"]), int(packed["order"]), packed["n_types"]
    n_rounds = int(packed["n_rounds"])
    family = packed["edges"]
    if family not in ("table", "linear", "trees", None):
        raise ValueError(f"unknown edges {family!r}")
    # Before anything grows with them: a small file must not ask for much memory or time.
    if not (1 <= order <= MOST_ORDER and n_labels >= 1 and n_rounds >= 0):
        raise ValueError(f"it has order {order}, {n_labels} labels and {n_rounds} rounds")
    if n_types is not None and not 1 <= n_types <= MOST_TYPES:
        raise ValueError(f"it has {n_types} edge types")
    size = n_labels ** (order + 1)
    if family is not None and size > MOST_ENTRIES:
        raise ValueError(f"order {order} with {n_labels} labels needs tables that are too large")
    model = Model(
        order=order,
        n_labels=n_labels,
        node=_trees(contents, f"{prefix}node", n_labels, n_features, n_rounds),
        edge_family=family,
        n_types=n_types,
        is_forest=_is_forest(packed),
    )
    if family == "trees":
        model.edge_functions = [
            _trees(contents, f"{prefix}edge{kind}", size, n_features, n_rounds)
            for kind in range(n_types or 1)
        ]
    front = () if n_types is None else (int(n_types),)
    shapes = {
        "edge": (*front, *(n_labels,) * (order + 1)),
        "weights": (int(n_types or 1), n_features + 1, size),
        "start": (n_labels,),
        "end": (n_labels,),
    }
    model.edge = _tables(packed["tables"].get("edge"), f"{prefix}edge", contents, shapes, n_rounds)
    model.ends = _tables(packed["tables"].get("ends"), f"{prefix}ends", contents, shapes, n_rounds)
    if (model.edge is None) != (family not in ("table", "linear")):
        raise ValueError("its edge tables are missing")
    if "base" in packed:
        model.base = _unpack_model(packed["base"], f"{prefix}base.", contents, n_features)
    return model


def _is_forest(packed: dict[str, Any]) -> bool:
    """Files of the first days do not say; a forest has start scores, and none at the end."""
    ends = packed["tables"].get("ends")
    return bool(packed.get("is_forest", ends is not None and "end" not in ends["names"]))


def _trees(
    contents: Contents, name: str, n_outputs: int, n_features: int, n_rounds: int
) -> BoostedTrees:
    raw = contents.blobs.get(name)
    if raw is not None:
        tree_format.check(raw, n_features=n_features, n_outputs=n_outputs)
    if n_rounds != (0 if raw is None else tree_format.n_rounds(raw)):
        raise ValueError(f"the trees {name} are not those of {n_rounds} rounds")
    return BoostedTrees(XGBoostLearner(), n_outputs, raw)


def _tables(
    packed: Any,
    prefix: str,
    contents: Contents,
    shapes: dict[str, tuple[int, ...]],
    n_rounds: int,
) -> Tables | None:
    if packed is None:
        return None
    arrays = {name: contents.arrays[f"{prefix}.{name}"] for name in packed["names"]}
    for name, array in arrays.items():
        shape = array.shape[1:] if packed["by_round"] else array.shape
        if shape != shapes[name] or array.dtype != np.float32:
            raise ValueError(f"the table {name} has shape {shape}, not {shapes[name]}")
    if not arrays:
        raise ValueError("it has tables without names")
    if packed["by_round"]:
        if any(len(array) != n_rounds + 1 for array in arrays.values()):
            raise ValueError(f"its tables are not those of {n_rounds} rounds")
        return Tables.from_rounds(arrays, float(packed["l2"]))
    return Tables.from_sum(arrays, float(packed["l2"]), n_rounds)
