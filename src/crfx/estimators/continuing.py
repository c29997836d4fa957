"""Going on with a fitted GBCRF, as if its training had been one longer run."""

from __future__ import annotations

from typing import Any

from crfx.estimators.assembly import new_function
from crfx.model import Model
from crfx.potentials.transitions import Tables
from crfx.potentials.trees import BoostedTrees

_SHAPE = ("edges", "order", "start_end", "edge_l2", "curvature")
"""Arguments that must agree; those of the trees, the step and sampling may change."""


def continued(old: Any, new: Any) -> Model | None:
    """A copy of the model of ``old``, to be trained on by ``new``; None if their shapes differ.

    The copy leaves ``old`` as it is.
    """
    if any(getattr(old, name) != getattr(new, name) for name in _SHAPE):
        return None
    model = old.model_
    functions = [model.node, *(model.edge_functions or ())]
    if new.base_learner is not None or not all(isinstance(f, BoostedTrees) for f in functions):
        return None
    tables = [_copied(part, old.n_rounds_) for part in (model.edge, model.ends)]
    return Model(
        order=model.order,
        n_labels=model.n_labels,
        node=_grown(model.node, new),
        edge_family=model.edge_family,
        edge=tables[0],
        edge_functions=None
        if model.edge_functions is None
        else [_grown(function, new) for function in model.edge_functions],
        ends=tables[1],
        n_types=model.n_types,
        base=model.base,
    )


def _grown(function: BoostedTrees, new: Any) -> BoostedTrees:
    fresh = new_function(new, function.n_outputs)
    assert isinstance(fresh, BoostedTrees)
    return BoostedTrees(fresh.learner, function.n_outputs, function.raw)


def _copied(tables: Tables | None, n_rounds: int) -> Tables | None:
    if tables is None:
        return None
    rounds = tables.rounds()
    if rounds is None:
        return Tables.from_sum(tables.tables, tables.l2, n_rounds)
    return Tables.from_rounds(rounds, tables.l2)
