"""Steps of sweeps over linear functions, taken by the compiled core.

`crfx.estimators.core_steps` says which it takes.  The others go through Python, one mini-batch
after the other, some 35 times slower and with the same result up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import _core
from crfx.estimators.core_steps import Base, can_take_steps, core_chains, core_steps
from crfx.model.model import Model
from crfx.objectives.base import Objective
from crfx.objectives.truth import Truth
from crfx.potentials.linear import LinearFunction
from crfx.potentials.numbers import compressed, with_conjunctions
from crfx.trainers.sgd import AveragedParameters, Steps

STEPS_AT_ONCE = 2000
"""At the most; fewer where they are slow."""
Free = dict[str, npt.NDArray[np.bool_]]


def quick_steps(
    model: Model, truth: Truth, loss: Objective, free: Free | None, base: Base, n_threads: int
) -> Callable[[Steps, AveragedParameters], None] | None:
    """Return what takes the steps of a sweep; None where the core cannot.

    ``base``: scores below those of the parameters, of all rows of the truth.
    """
    if not can_take_steps(model, loss):
        return None
    data = _sweeps(model, truth, loss, free, base)

    def take(steps: Steps, parameters: AveragedParameters) -> None:
        for part in steps.parts(STEPS_AT_ONCE):
            run(part, parameters)

    def run(steps: Steps, parameters: AveragedParameters) -> None:
        asked = core_steps(steps, n_threads)
        parameters.taken_through(lambda **state: data.run(asked, **state))

    return take


def _sweeps(model: Model, truth: Truth, loss: Objective, free: Free | None, base: Base) -> Any:
    node: Any = model.node
    X: Any = truth.batch.X
    if X.shape[1] != node.n_columns:
        raise ValueError(f"X has {X.shape[1]} features, the weights are for others")
    X = with_conjunctions(X, node.conjunctions)
    if not sparse.issparse(X) and node.pattern.outputs is not None:
        X = sparse.csr_matrix(X)
    dense: Any = None
    starts = indices = values = None
    if sparse.issparse(X):
        starts, indices, values = compressed(X)
    else:
        dense = np.ascontiguousarray(X)
    return _core.Sweeps(
        core_chains(model, truth, loss, base),
        dense,
        starts,
        indices,
        values,
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
