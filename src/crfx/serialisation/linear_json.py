"""A LinearCRF as JSON that other languages read; docs/model-file.md describes every field."""

from __future__ import annotations

import json
import os
from typing import Any, cast

import numpy as np
from scipy import sparse

from crfx.features import HashedVocabulary
from crfx.io.whole_file import whole_file
from crfx.model.model import Model
from crfx.potentials.linear import LinearFunction
from crfx.serialisation.saved import Saved
from crfx.structures import Mask

VERSION = 1


def write_json(saved: Saved, path: str | os.PathLike[str]) -> None:
    """Write a LinearCRF to a file, whole or not at all."""
    text = json.dumps(as_plain(saved), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    raw = text.encode("utf-8", "surrogatepass")
    with whole_file(path) as file:
        file.write(raw)


def as_plain(saved: Saved) -> dict[str, Any]:
    """Return the model as dicts, lists, texts and numbers; weights that are 0 are left out."""
    model, columns, classes = cast("Model", saved.model), saved.columns, saved.classes
    assert classes is not None
    if model.base is not None:
        raise ValueError("the model stands on another: such a one has no JSON, save it instead")
    node, *edges = cast("list[LinearFunction]", model.functions)
    ends = {} if model.ends is None else model.ends.tables
    return {
        "format": "crfx-linear",
        "version": VERSION,
        "labels": classes.tolist(),
        "decode": saved.arguments["decode"],
        "order": int(model.order),
        "is_forest": model.is_forest,
        "n_types": model.n_types,
        "n_features": columns.n,
        "feature_names": columns.known_names(),
        "hashed": isinstance(columns.vocabulary, HashedVocabulary),
        "conjunctions": [] if node.conjunctions is None else node.conjunctions.sets(),
        "node_weights": _triples(node),
        "transitions": None if model.edge is None else _table(model.edge.tables["edge"]),
        "edge_weights": [_tuples(function, model.table) for function in edges] or None,
        "start": _table(ends["start"]) if "start" in ends else None,
        "end": _table(ends["end"]) if "end" in ends else None,
        "forbidden": None if model.mask is None else _forbidden(model.mask),
    }


def _forbidden(mask: Mask) -> dict[str, Any]:
    """Return what constraints forbid: pairs of neighbours, first labels, last labels."""
    return {
        "pairs": [] if mask.pair is None else np.argwhere(~mask.pair).tolist(),
        "start": [] if mask.start is None else np.flatnonzero(~mask.start).tolist(),
        "end": [] if mask.end is None else np.flatnonzero(~mask.end).tolist(),
    }


def _triples(function: LinearFunction) -> list[list[Any]]:
    """Return [feature, label, weight] for all weights but 0."""
    pairs = sparse.coo_matrix(function.pattern.matrix(function.weights))
    kept = np.flatnonzero(pairs.data)
    parts = (pairs.row[kept], pairs.col[kept], pairs.data[kept])
    return [list(each) for each in zip(*(part.tolist() for part in parts), strict=True)]


def _tuples(function: LinearFunction, table: tuple[int, ...]) -> list[list[Any]]:
    """Return [feature, label, ..., label, weight] for all weights but 0."""
    return [
        [feature, *(int(label) for label in np.unravel_index(entry, table)), weight]
        for feature, entry, weight in _triples(function)
    ]


def _table(table: Any) -> Any:
    return table.astype(np.float64).tolist()
