"""Steps of the trainers that sweep, taken by the core: a hundred times less overhead than ours.

For chains with tables (or without edges) and sparse features, all labels known.  Everything else
goes one mini-batch after the other, with the same result up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import _core
from crfx.estimators.core_steps import core_chains, core_steps, masks_fit
from crfx.model import Model
from crfx.objectives.base import Objective
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.perceptron import PerceptronLoss
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.potentials.linear import LinearFunction
from crfx.potentials.numbers import compressed, with_conjunctions
from crfx.trainers.sgd import AveragedParameters, Steps

STEPS_AT_ONCE = 2000
"""In between a user may interrupt."""
Free = dict[str, npt.NDArray[np.bool_]]


def quick_steps(
    model: Model, truth: Truth, loss: Objective, free: Free | None, X: Any
) -> Callable[[Steps, AveragedParameters], None] | None:
    """What takes the steps of a sweep; None where the core cannot."""
    if not _is_plain(model, truth, loss, X):
        return None
    data = _sweeps(model, truth, free, X)

    def take(steps: Steps, parameters: AveragedParameters) -> None:
        for part in steps.parts(STEPS_AT_ONCE):
            run(part, parameters)

    def run(steps: Steps, parameters: AveragedParameters) -> None:
        asked = core_steps(steps, loss)
        parameters.taken_through(lambda **state: data.run(asked, **state))

    return take


def _is_plain(model: Model, truth: Truth, loss: Objective, X: Any) -> bool:
    return (
        type(loss) in (Likelihood, PerceptronLoss)
        and sparse.issparse(X)
        and model.edge_family in ("table", None)
        and not model.is_forest
        and not (truth.labels == UNKNOWN).any()
        and masks_fit(model, truth)
    )


def _sweeps(model: Model, truth: Truth, free: Free | None, X: Any) -> Any:
    node: Any = model.node
    if X.shape[1] != node.n_columns:
        raise ValueError(f"X has {X.shape[1]} features, the weights are for others")
    return _core.Sweeps(
        core_chains(model, truth),
        *compressed(with_conjunctions(X, node.conjunctions)),
        node.pattern.starts,
        node.pattern.outputs,
        _free_parameters(model, node, free),
    )


def _free_parameters(
    model: Model, node: LinearFunction, free: Free | None
) -> npt.NDArray[np.bool_] | None:
    """Marks of all parameters, in the order of `get_weights`; None: all may move."""
    if free is None and node.pattern.free is None:
        return None
    tables: dict[str, Any] = {} if model.edge is None else dict(model.edge.tables)
    tables |= {} if model.ends is None else model.ends.tables
    marks = [node.pattern.free]
    if marks[0] is None:
        marks = [np.ones(node.pattern.n_weights, bool)]
    for name, table in tables.items():
        marks.append(np.ones(table.size, bool) if free is None else free[name].reshape(-1))
    return np.concatenate(marks)  # type: ignore[arg-type]
