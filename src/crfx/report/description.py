"""What a fitted model is: labels, sizes, strongest transitions and features, how it was trained."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from crfx.estimators.base import counted_in
from crfx.report.naming import called
from crfx.report.transition_table import learned_edges
from crfx.terms import Names

Described = dict[str, Any]


def describe(model: Any, top: int = 10) -> Described:
    """Plain values, for JSON and for `as_text`; lists have ``top`` entries at most."""
    found: Described = {
        "class": type(model).__name__,
        "arguments": changed_arguments(model),
        "features": int(model.n_features_in_),
        "training": _training(model),
        "reading": None if model.reading_ is None else str(model.reading_),
    }
    if hasattr(model, "classes_"):
        found["labels"] = model.classes_.tolist()
        found["order"] = model.model_.order
        found["edges"] = model.model_.edge_family
        found["transitions"] = strongest_transitions(model, top)
        found["transitions_note"] = learned_edges(model)[1]
        found["important_edges"] = important_in_edges(model, top)
    found["important"] = important_features(model, top)
    return found


def changed_arguments(model: Any) -> Described:
    """The arguments that are not the estimator's defaults, as text where they are objects."""
    usual = type(model)().get_params(deep=False)
    given = model.get_params(deep=False)
    # An array is compared entry by entry.
    changed = {name: own for name, own in given.items() if not np.all(own == usual[name])}
    plain = (str, int, float, bool, type(None))
    return {name: own if isinstance(own, plain) else called(own) for name, own in changed.items()}


def _training(model: Any) -> Described:
    """The first and the last of every number that training noted, and the best round.

    ``rounds`` are iterations or sweeps, if ``counted`` says so; ``seconds`` is what they took
    themselves, without preparing for them and without watching an evaluation set.
    """
    history = {name: entries for name, entries in model.history_.items() if entries}
    found: Described = {
        "rounds": len(history.get("seconds", [])),
        "counted": counted_in(model),
        "best_round": int(model.best_iteration_) + 1 if history.get("seconds") else None,
        "seconds": float(np.nansum(history.get("seconds", [0.0]))),
    }
    for name, entries in history.items():
        if name != "seconds":
            found[name] = {"first": _number(entries[0]), "last": _number(entries[-1])}
    if "eval_metric" in found:
        best = history["eval_metric"][min(model.best_iteration_, len(history["eval_metric"]) - 1)]
        found["eval_metric"] |= {"name": called(model.eval_metric), "kept": _number(best)}
    return found


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def strongest_transitions(model: Any, top: int) -> list[Described] | None:
    """The edge scores of greatest size, of `learned_edges`; None where edges are no tables.

    ``from`` has the labels before, oldest first; ``type`` that of the edge, where it has one.
    """
    table, _ = learned_edges(model)
    if table is None:
        return None
    chosen = np.argsort(-np.abs(table), axis=None, kind="stable")[:top]
    found = []
    for place in zip(*np.unravel_index(chosen, table.shape), strict=True):
        kind, labels = _parted(place, model)
        entry: Described = {"from": labels[:-1], "to": labels[-1], "score": float(table[place])}
        if kind is not None:
            entry["type"] = kind
        found.append(entry)
    return sorted(found, key=lambda entry: -float(entry["score"]))


def _parted(place: tuple[Any, ...], model: Any) -> tuple[int | None, list[Any]]:
    """The type of the edge, None without types, and the labels of a place in the table."""
    names = model.classes_.tolist()
    n_before = len(place) - model.model_.order - 1
    kind = int(place[0]) if n_before else None
    return kind, [names[code] for code in place[n_before:]]


def important_features(model: Any, top: int) -> Described:
    """``by``: how importance is measured; ``features``: the foremost, with the label they speak
    for or against where weights tell it; ``note``: what is not counted.
    """
    weights = _weights(model)
    if weights is None:
        found = model.importance()
        return _importance(model, found.node_by, _foremost(found.node, top))
    names, labels = _feature_names(model), getattr(model, "classes_", None)
    features = []
    for at in np.argsort(-np.abs(weights.data), kind="stable")[:top]:
        entry: Described = {"feature": names(int(weights.col[at]))}
        if labels is not None:
            entry["label"] = labels.tolist()[weights.row[at]]
        features.append({**entry, "value": float(weights.data[at])})
    return _importance(model, "weight", features)


def important_in_edges(model: Any, top: int) -> Described | None:
    """As `important_features`, where edges depend on features; None where they do not."""
    if model.model_.edge_family in (None, "table"):
        return None
    found = model.importance()
    return _importance(model, found.edge_by, _foremost(found.edge, top))


def _importance(model: Any, by: str, features: list[Described]) -> Described:
    note = "" if model.model_.base is None else "the model underneath is not counted"
    return {"by": by, "features": features, "note": note}


def _foremost(found: dict[str, float], top: int) -> list[Described]:
    return [{"feature": name, "value": value} for name, value in list(found.items())[:top]]


def _weights(model: Any) -> Any:
    """(labels, features) weights of a model that is linear, (1, features) of one that ranks; None
    of others.
    """
    weights = getattr(model, "coef_", None)
    if weights is None:
        return None
    return sparse.coo_matrix(weights if sparse.issparse(weights) else np.atleast_2d(weights))


def _feature_names(model: Any) -> Names:
    """The names of columns, and of conjunctions after them."""
    names: Names = model.columns_.name_of()
    node = getattr(model.model_, "node", None)
    return names if node is None else node.named(names)


def as_text(found: Described) -> str:
    """A page for the terminal."""
    lines = [f"{found['class']}({', '.join(f'{k}={v!r}' for k, v in found['arguments'].items())})"]
    if "labels" in found:
        names = " ".join(map(str, found["labels"]))
        lines += ["", f"{len(found['labels'])} labels: {names}"]
    lines.append(f"{found['features']:,} features")
    if found["reading"] is not None:
        lines.append(f"reads {found['reading']}")
    lines += ["", "Training", *_told_training(found["training"])]
    if found.get("transitions"):
        note = f", {found['transitions_note']}" if found["transitions_note"] else ""
        lines += ["", f"Strongest transitions (order {found['order']}){note}"]
        lines += [f"  {_told_transition(entry)}" for entry in found["transitions"]]
    if found["important"]["features"]:
        lines += _told_important("features", found["important"])
    if found.get("important_edges"):
        lines += _told_important("to edges", found["important_edges"])
    return "\n".join(lines)


def _told_important(what: str, found: Described) -> list[str]:
    note = f"; {found['note']}" if found["note"] else ""
    title = f"Most important {what}, by {found['by']}{note}"
    return ["", title, *(f"  {_told_feature(entry)}" for entry in found["features"])]


def _told_training(training: Described) -> list[str]:
    lines = [f"  {told_time(training)}"]
    for name, entry in training.items():
        if isinstance(entry, dict):
            first, last = (_told_number(entry[end]) for end in ("first", "last"))
            best = f", kept {_told_number(entry['kept'])}" if "kept" in entry else ""
            told = entry.get("name", name)
            where = " on dev" if "name" in entry else ""
            lines.append(f"  {told}{where}: {first} to {last}{best}")
    return lines


def told_time(training: Described) -> str:
    """How long it took."""
    done = f"{training['rounds']:,} {training['counted']}"
    return f"{done} in {training['seconds']:.1f} s, preparing and watching aside"


def _told_number(value: float | None) -> str:
    return "?" if value is None else f"{value:.6g}"


def _told_transition(entry: Described) -> str:
    kind = f" (type {entry['type']})" if "type" in entry else ""
    path = " -> ".join(map(str, [*entry["from"], entry["to"]]))
    return f"{entry['score']:+8.3f}  {path}{kind}"


def _told_feature(entry: Described) -> str:
    label = f"  {entry['label']}" if "label" in entry else ""
    return f"{entry['value']:+8.3f}  {entry['feature']}{label}"
