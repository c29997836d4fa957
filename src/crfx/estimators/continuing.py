"""Going on with a fitted GBCRF, as if its training had been one longer run."""

from __future__ import annotations

from typing import Any

from crfx.estimators.assembly import new_function, table_l2
from crfx.model.model import Model
from crfx.potentials.base import AdditiveFunction
from crfx.potentials.regressors import BoostedRegressors
from crfx.potentials.transitions import Tables
from crfx.potentials.trees import BoostedTrees


def continued(old: Any, new: Any) -> Model | None:
    """A copy of the model of ``old``, to be trained on by ``new``; None if their shapes differ.

    Edges, order, ends and the kind of learner must agree; arguments of the trees, steps, sampling
    and penalties may change.  The copy leaves ``old`` as it is.
    """
    model = old.model_
    if not _has_shape(model, new):
        return None
    functions = [_grown(function, new) for function in model.growing]
    tables = [
        copied_tables(part, old.n_rounds_, table_l2(new)) for part in (model.edge, model.ends)
    ]
    return Model(
        order=model.order,
        n_labels=model.n_labels,
        node=functions[0],
        edge_family=model.edge_family,
        edge=tables[0],
        edge_functions=None if model.edge_functions is None else functions[1:],
        ends=tables[1],
        n_types=model.n_types,
        is_forest=model.is_forest,
        base=model.base,
    )


def _has_shape(model: Model, new: Any) -> bool:
    """Whether the model is such as ``new`` asks for.  Arguments may have changed since it was made.

    Without edges there are no ends either, whatever ``start_end`` is.
    """
    if (model.edge_family, model.order) != (new.edges, new.order):
        return False
    has_ends, boosts_regressors = model.ends is not None, isinstance(model.node, BoostedRegressors)
    same_ends = new.edges is None or has_ends == new.start_end
    return bool(same_ends) and boosts_regressors == (new.base_learner is not None)


def _grown(function: AdditiveFunction, new: Any) -> AdditiveFunction:
    fresh = new_function(new, function.n_outputs)
    if isinstance(function, BoostedRegressors) and isinstance(fresh, BoostedRegressors):
        return function.copy(fresh.regressor, fresh.seed)
    assert isinstance(function, BoostedTrees)
    assert isinstance(fresh, BoostedTrees)
    return BoostedTrees(fresh.learner, function.n_outputs, function.raw)


def copied_tables(tables: Tables | None, n_rounds: int, l2: float) -> Tables | None:
    """The same tables with the same rounds, to be trained on with another penalty."""
    if tables is None:
        return None
    rounds = tables.rounds()
    if rounds is None:
        return Tables.from_sum(tables.tables, l2, n_rounds)
    return Tables.from_rounds(rounds, l2)
