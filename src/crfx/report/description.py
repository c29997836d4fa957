"""Descriptions of fitted models: arguments, labels, learning curves, transitions, features."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.estimators.base import counted_in
from crfx.terms import Names

Described = dict[str, Any]

MOST_ROWS = 100
"""Limit for the rows of a transition table: larger tables are not legible."""
_CURVE_TITLES = {
    "objective": "training objective",
    "gamma": "γ, mean over nodes",
    "halvings": "halvings of the step",
    "effective_samples": "effective samples, mean",
}
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def describe(model: Any, top: int = 10) -> Described:
    """Return plain values, for JSON and for `as_text`; lists have ``top`` entries at most."""
    described: Described = {
        "class": type(model).__name__,
        "arguments": _changed_arguments(model),
        "features": int(model.n_features_in_),
        "training": _training(model),
        "reading": None if model.reading_ is None else str(model.reading_),
    }
    if hasattr(model, "classes_"):
        described["labels"] = model.classes_.tolist()
        described["order"] = model.model_.order
        described["edges"] = model.model_.edge_family
        described["transitions"] = _strongest_transitions(model, top)
        described["transitions_note"] = _learned_edges(model)[1]
        described["important_edges"] = _important_in_edges(model, top)
    described["important"] = _important_features(model, top)
    return described


def called(value: Any) -> str:
    """Return an argument in one line: functions and classes by name, other objects by their
    ``repr`` without addresses.
    """
    if isinstance(value, str):
        return value
    name = getattr(value, "__name__", None) or _ADDRESS.sub("", repr(value))
    return " ".join(str(name).split())


def _changed_arguments(model: Any) -> Described:
    """Return the arguments that are not the estimator's defaults, as text if they are objects."""
    defaults = type(model)().get_params(deep=False)
    plain = (str, int, float, bool, type(None))
    return {
        name: value if isinstance(value, plain) else called(value)
        for name, value in model.get_params(deep=False).items()
        if not np.all(value == defaults[name])  # an array is compared entry by entry
    }


def _training(model: Any) -> Described:
    """Return the first and the last value of every curve in the history, and the best round.

    ``counted`` is the name of the ``rounds`` (iterations, epochs); ``seconds`` is their time,
    without preparation and without the evaluation of ``eval_set``.
    """
    history = {name: entries for name, entries in model.history_.items() if entries}
    seconds = history.pop("seconds", [])
    training: Described = {
        "rounds": len(seconds),
        "counted": counted_in(model),
        "best_round": int(model.best_iteration_) + 1 if seconds else None,
        "seconds": float(np.nansum(seconds)),
    }
    for name, entries in history.items():
        training[name] = {"first": _number(entries[0]), "last": _number(entries[-1])}
    if "eval_metric" in training:
        best = history["eval_metric"][min(model.best_iteration_, len(history["eval_metric"]) - 1)]
        training["eval_metric"] |= {"name": called(model.eval_metric), "kept": _number(best)}
    return training


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


@dataclass(frozen=True)
class HistoryCurve:
    """One value per round, NaN if there is none.

    ``kept`` is the index of the restored round, the last one without early stopping.
    """

    name: str
    title: str
    values: list[float]
    kept: int

    @property
    def at_kept(self) -> float:
        """The value of the round that was kept."""
        return self.values[self.kept]


def history_curves(model: Any) -> dict[str, HistoryCurve]:
    """Return the curves of ``model.history_`` with at least one number, by name.

    The objective and eval_metric come first; the seconds of rounds are left out.
    """
    history = model.history_
    foremost = ["objective", "eval_metric"]
    curves = {}
    for name in [*foremost, *sorted(set(history) - {*foremost, "seconds"})]:
        values = [float(value) for value in history.get(name, [])]
        if np.isfinite(values).any():
            title = _CURVE_TITLES.get(name, name.replace("_", " "))
            if name == "eval_metric":
                title = f"{called(model.eval_metric)} on the evaluation set"
            kept = min(int(model.best_iteration_), len(values) - 1)
            curves[name] = HistoryCurve(name, title, values, kept)
    return curves


@dataclass(frozen=True)
class TransitionTable:
    """Scores of transitions: ``values`` (rows, columns) from labels before to the label after.

    A row has the ``order`` labels before, oldest first.  Forbidden transitions are NaN.  ``note``
    says which part of the model is missing, if any.
    """

    rows: list[tuple[Any, ...]]
    columns: list[Any]
    values: npt.NDArray[np.float64]
    note: str = ""

    @property
    def largest(self) -> float:
        """The largest absolute value, at least a little above 0."""
        sizes = np.abs(self.values[np.isfinite(self.values)])
        return max(float(sizes.max(initial=0.0)), 1e-12)


def transition_table(model: Any, edge_type: int | None = None) -> TransitionTable:
    """Return the learned transitions, those of one type if edges have types.

    Raises ValueError if edges are not a table, or if it is too large to be legible.
    """
    table, note = _learned_edges(model)
    if table is None:
        why = "has edges that depend on X" if model.model_.has_edges else "has no edges"
        raise ValueError(f"there is no table of transitions: the {type(model).__name__} {why}")
    order = model.model_.order
    if table.ndim > order + 1:
        table = table[_checked_type(edge_type, len(table))]
    elif edge_type is not None:
        raise ValueError(f"edge_type is {edge_type!r}, but edges of this model have no types")
    names = model.classes_.tolist()
    if len(names) ** order > MOST_ROWS:
        raise ValueError(
            f"the table of transitions has {len(names) ** order} rows, {MOST_ROWS} can be read: "
            "crfx.report.description.describe lists its foremost entries"
        )
    mask = model.model_.mask
    if mask is not None:
        table = np.where(np.isneginf(mask.tables(order).get("edge", 0.0)), np.nan, table)
    rows = list(product(names, repeat=order))
    return TransitionTable(rows, names, table.reshape(len(rows), len(names)), note)


def transition_tables(model: Any) -> dict[str, TransitionTable]:
    """Return all transition tables by their titles; raises as `transition_table` does."""
    edges, _ = _learned_edges(model)
    if edges is None or edges.ndim == model.model_.order + 1:
        return {"Scores of transitions": transition_table(model)}
    return {
        f"Scores of transitions, edges of type {kind}": transition_table(model, kind)
        for kind in range(len(edges))
    }


def _checked_type(edge_type: int | None, n_types: int) -> int:
    if edge_type is None:
        raise ValueError(f"edges have {n_types} types: say which one by edge_type=")
    is_whole = isinstance(edge_type, int | np.integer) and not isinstance(edge_type, bool)
    if not is_whole or not 0 <= edge_type < n_types:
        raise ValueError(f"edge_type is {edge_type!r}: it must be from 0 to {n_types - 1}")
    return edge_type


def _learned_edges(model: Any) -> tuple[npt.NDArray[np.float64] | None, str]:
    """Return the sum of the edge tables of a model and its base models, with a note.

    Edges with types have one table per type.  If edges of base models depend on X, the table is
    that of the last model alone, and the note says so.  The table is None if edges are not tables.
    """
    with_edges = [layer for layer in model.model_.layers if layer.edge_family is not None]
    tables = [layer for layer in with_edges if layer.edge_family == "table"]
    note = ""
    if len(tables) < len(with_edges):
        tables = [layer for layer in tables if layer is model.model_]
        note = "of the last model only: the one underneath has edges that depend on X"
    if not tables:
        return None, ""
    return sum(layer.edge.tables["edge"].astype(np.float64) for layer in tables), note


def _strongest_transitions(model: Any, top: int) -> list[Described] | None:
    """Return the edge scores of largest absolute value; None if edges are not tables.

    ``from`` has the labels before, oldest first; ``type`` is the type of the edge, if it has one.
    """
    table, _ = _learned_edges(model)
    if table is None:
        return None
    names, n_labels = model.classes_.tolist(), model.model_.order + 1
    transitions: list[Described] = []
    for flat in np.argsort(-np.abs(table), axis=None, kind="stable")[:top]:
        place = np.unravel_index(flat, table.shape)
        *before, after = (names[code] for code in place[-n_labels:])
        entry: Described = {"from": before, "to": after, "score": float(table[place])}
        kind = {"type": int(place[0])} if len(place) > n_labels else {}
        transitions.append(entry | kind)
    return sorted(transitions, key=lambda entry: -entry["score"])


def _important_features(model: Any, top: int) -> Described:
    """Return the most important ``features``, their measure as ``by``, and a ``note``.

    Features with weights are listed with the label that they support or oppose.
    """
    weights = getattr(model, "coef_", None)
    if weights is None:
        importance = model.importance()
        return _importance(model, importance.node_by, _foremost(importance.node, top))
    weights = sparse.coo_matrix(weights if sparse.issparse(weights) else np.atleast_2d(weights))
    names: Names = model.columns_.name_of()
    if (node := getattr(model.model_, "node", None)) is not None:
        names = node.named(names)  # conjunctions come after columns
    labels = getattr(model, "classes_", None)
    features = []
    for at in np.argsort(-np.abs(weights.data), kind="stable")[:top]:
        entry: Described = {"feature": names(int(weights.col[at]))}
        if labels is not None:
            entry["label"] = labels.tolist()[weights.row[at]]
        features.append({**entry, "value": float(weights.data[at])})
    return _importance(model, "weight", features)


def _important_in_edges(model: Any, top: int) -> Described | None:
    """Return the most important features of edges; None if edges depend on none."""
    if model.model_.edge_family in (None, "table"):
        return None
    importance = model.importance()
    return _importance(model, importance.edge_by, _foremost(importance.edge, top))


def _importance(model: Any, by: str, features: list[Described]) -> Described:
    note = "" if model.model_.base is None else "the model underneath is not counted"
    return {"by": by, "features": features, "note": note}


def _foremost(importance: dict[str, float], top: int) -> list[Described]:
    return [{"feature": name, "value": value} for name, value in list(importance.items())[:top]]


def as_text(described: Described) -> str:
    """Return the result of `describe` as text for the terminal."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in described["arguments"].items())
    lines = [f"{described['class']}({arguments})"]
    if "labels" in described:
        names = " ".join(map(str, described["labels"]))
        lines += ["", f"{len(described['labels'])} labels: {names}"]
    lines.append(f"{described['features']:,} features")
    if described["reading"] is not None:
        lines.append(f"reads {described['reading']}")
    lines += ["", "Training", *_training_lines(described["training"])]
    if described.get("transitions"):
        note = f", {described['transitions_note']}" if described["transitions_note"] else ""
        lines += ["", f"Strongest transitions (order {described['order']}){note}"]
        for entry in described["transitions"]:
            kind = f" (type {entry['type']})" if "type" in entry else ""
            path = " -> ".join(map(str, [*entry["from"], entry["to"]]))
            lines.append(f"  {entry['score']:+8.3f}  {path}{kind}")
    if described["important"]["features"]:
        lines += _importance_lines("features", described["important"])
    if described.get("important_edges"):
        lines += _importance_lines("to edges", described["important_edges"])
    return "\n".join(lines)


def training_time(training: Described) -> str:
    """Return the time of training in words."""
    done = f"{training['rounds']:,} {training['counted']}"
    return f"{done} in {training['seconds']:.1f} s, preparing and watching aside"


def _training_lines(training: Described) -> list[str]:
    def text(value: float | None) -> str:
        return "?" if value is None else f"{value:.6g}"

    lines = [f"  {training_time(training)}"]
    for name, entry in training.items():
        if isinstance(entry, dict):
            title = f"{entry['name']} on dev" if "name" in entry else name
            kept = f", kept {text(entry['kept'])}" if "kept" in entry else ""
            lines.append(f"  {title}: {text(entry['first'])} to {text(entry['last'])}{kept}")
    return lines


def _importance_lines(what: str, important: Described) -> list[str]:
    note = f"; {important['note']}" if important["note"] else ""
    lines = ["", f"Most important {what}, by {important['by']}{note}"]
    for entry in important["features"]:
        label = f"  {entry['label']}" if "label" in entry else ""
        lines.append(f"  {entry['value']:+8.3f}  {entry['feature']}{label}")
    return lines
