"""A LinearCRF as JSON that other languages read; docs/model-file.md describes every field."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from crfx.estimators.base import check_fitted
from crfx.features import HashedVocabulary
from crfx.io.whole_file import whole_file
from crfx.potentials.linear import LinearFunction
from crfx.structures import Mask

if TYPE_CHECKING:
    from crfx.estimators.linear import LinearCRF

VERSION = 1


def write_json(crf: LinearCRF, path: str | os.PathLike[str]) -> None:
    """Write the model to a file, whole or not at all."""
    text = json.dumps(as_plain(crf), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    raw = text.encode("utf-8", "surrogatepass")
    with whole_file(path) as file:
        file.write(raw)


def as_plain(crf: LinearCRF) -> dict[str, Any]:
    """The model as dicts, lists, texts and numbers.  Weights that are 0 are left out."""
    check_fitted(crf)
    if crf.model_.base is not None:
        raise ValueError("the model stands on another: such a one has no JSON, save it instead")
    model, columns = crf.model_, crf.columns_
    node, *edges = (own for own in model.functions if isinstance(own, LinearFunction))
    ends = {} if model.ends is None else model.ends.tables
    return {
        "format": "crfx-linear",
        "version": VERSION,
        "labels": crf.classes_.tolist(),
        "decode": crf.decode,
        "order": int(model.order),
        "is_forest": model.is_forest,
        "n_types": model.n_types,
        "n_features": columns.n,
        "feature_names": columns.known_names(),
        "hashed": isinstance(columns.vocabulary, HashedVocabulary),
        "conjunctions": [] if node.conjunctions is None else node.conjunctions.sets(),
        "node_weights": _triples(node),
        "transitions": None if model.edge is None else _table(model.edge.tables["edge"]),
        "edge_weights": [_tuples(own, model.table) for own in edges] or None,
        "start": _table(ends["start"]) if "start" in ends else None,
        "end": _table(ends["end"]) if "end" in ends else None,
        "forbidden": None if model.mask is None else _forbidden(model.mask),
    }


def _forbidden(mask: Mask) -> dict[str, Any]:
    """What constraints forbid: pairs of neighbours, first labels, last labels."""
    return {
        "pairs": [] if mask.pair is None else np.argwhere(~mask.pair).tolist(),
        "start": [] if mask.start is None else np.flatnonzero(~mask.start).tolist(),
        "end": [] if mask.end is None else np.flatnonzero(~mask.end).tolist(),
    }


def _triples(function: LinearFunction) -> list[list[Any]]:
    """[feature, label, weight] of all weights but 0."""
    found = sparse.coo_matrix(function.pattern.matrix(function.weights))
    kept = np.flatnonzero(found.data)
    parts = (found.row[kept], found.col[kept], found.data[kept])
    return [list(each) for each in zip(*(part.tolist() for part in parts), strict=True)]


def _tuples(function: LinearFunction, table: tuple[int, ...]) -> list[list[Any]]:
    """[feature, label, ..., label, weight] of all weights but 0."""
    return [
        [feature, *(int(label) for label in np.unravel_index(entry, table)), weight]
        for feature, entry, weight in _triples(function)
    ]


def _table(table: Any) -> Any:
    return table.astype(np.float64).tolist()
