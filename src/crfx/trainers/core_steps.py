"""Chains, losses and steps as the compiled core takes them, for all models that it can train.

The core takes the steps of epochs over chains and forests whose edge scores are tables (or that
have none), with any base model underneath, with constraints, unknown labels and class weights.
Python takes the others, one mini-batch after the other: edges that are linear in the features,
objectives that sample or list candidates, and the objectives of users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import _core
from crfx.model.model import Model
from crfx.objectives.base import Objective
from crfx.objectives.by_parts import ByParts
from crfx.objectives.expected_loss import ExpectedCost
from crfx.objectives.kl import Divergence
from crfx.objectives.labelwise import LabelwiseLikelihood
from crfx.objectives.likelihood import Likelihood, WeightedLikelihood
from crfx.objectives.loss_augmented import AugmentedLikelihood
from crfx.objectives.loss_scaled import ExactLossScaled
from crfx.objectives.perceptron import PerceptronLoss, WeightedPerceptronLoss
from crfx.objectives.pseudo_likelihood import PseudoLikelihood
from crfx.objectives.truth import Truth
from crfx.potentials.hidden_unit import HiddenUnitFunction
from crfx.potentials.linear import LinearFunction
from crfx.potentials.numbers import compressed, with_conjunctions
from crfx.trainers.parametric import Free, ScoreArrays
from crfx.trainers.sgd import SMALLEST_SHRINKAGE, AveragedParameters, Steps

STEPS_AT_ONCE = 1000
"""At the most; fewer where they are slow."""


@dataclass(frozen=True, eq=False)
class CoreLoss:
    """A loss in the words of the core (`crfx::ChainLoss`): a table of costs and how to read it."""

    kind: str
    table: npt.NDArray[Any] | None = None
    by_length: bool = False
    unit: float = 1.0


def core_loss(loss: Objective, n_labels: int) -> CoreLoss | None:
    """Return the loss in the words of the core; None where the core does not have it.

    Types are compared exactly: a class derived from one of these may compute something else.
    """
    if type(loss) in (Likelihood, WeightedLikelihood):
        return CoreLoss("likelihood")
    if isinstance(loss, PerceptronLoss | WeightedPerceptronLoss):
        margins = loss.margin * (1 - np.eye(n_labels)) if loss.margin else None
        is_ours = type(loss) in (PerceptronLoss, WeightedPerceptronLoss)
        return CoreLoss("perceptron", margins) if is_ours else None
    if type(loss) is PseudoLikelihood:
        return CoreLoss("pseudo_likelihood")
    if type(loss) is LabelwiseLikelihood:
        return CoreLoss("labelwise_likelihood")
    return _with_costs(loss)


def _with_costs(loss: Objective) -> CoreLoss | None:
    if isinstance(loss, ByParts) and len(loss.objectives) == 1:
        loss = loss.objectives[0][1]
    if type(loss) is AugmentedLikelihood:
        return CoreLoss("likelihood", loss.weight * loss.costs.table, loss.costs.normalize)
    if type(loss) is ExpectedCost:
        return CoreLoss("expected_loss", loss.costs.table, loss.costs.normalize)
    if type(loss) is ExactLossScaled:
        units = (loss.costs.table / loss.unit).round()
        return CoreLoss("loss_scaled", units, loss.costs.normalize, loss.unit)
    if type(loss) is Divergence:
        return CoreLoss("kl", loss.costs.table / -loss.temperature, loss.costs.normalize)
    return None


def can_take_steps(model: Model, loss: Objective) -> bool:
    """Return whether the core can take the steps that lower a loss."""
    is_table = model.edge_family in ("table", None)
    return is_table and core_loss(loss, model.n_labels) is not None


def core_chains(model: Model, truth: Truth, loss: Objective, base: ScoreArrays | None) -> Any:
    """Return the chains (or forests) of a batch with their labels, their loss and their tables.

    ``base`` may be None where there are no rows.
    """
    ends = {} if model.ends is None else model.ends.tables
    batch, sharing, under = truth.batch, model.sharing, base or {}
    n_types = model.n_types or 1
    if sharing == "typed" and "edge" in under:
        n_types = len(under["edge"])
    offsets: Any = batch.offsets
    parents: Any = batch.parents
    types: Any = batch.edge_types if sharing == "typed" else None
    return _core.Chains(
        offsets,
        parents,
        types,
        np.ascontiguousarray(truth.labels, np.int32),
        truth.weights,
        _bound(core_loss(loss, model.n_labels), truth),
        n_labels=model.n_labels,
        order=model.order,
        n_types=n_types,
        sharing=sharing,
        has_edge=model.edge is not None,
        has_start="start" in ends,
        has_end="end" in ends and parents is None,
        **{
            f"base_{name}": _flat(under[name]) if name in under else None
            for name in ("node", "edge", "start", "end", "pairs")
        },
    )


def _bound(loss: CoreLoss | None, truth: Truth) -> Any:
    assert loss is not None
    weights = truth.class_weights
    return _core.SweepLoss(
        loss.kind,
        class_weights=None if weights is None else np.ascontiguousarray(weights, np.float64),
        table=None if loss.table is None else _flat(loss.table),
        by_length=loss.by_length,
        unit=loss.unit,
    )


def _flat(table: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    return np.ascontiguousarray(table, np.float32).reshape(-1)


class CoreParameters(AveragedParameters):
    """Parameters of a model with hidden units, in float32, since there may be hundreds of millions.

    They are caught up with by feature.
    """

    def __init__(self, sweeps: Any, n_features: int, values: npt.NDArray[Any]) -> None:
        super().__init__(values.astype(np.float32), n_features + 1)
        self._sweeps = sweeps

    def catch_up(self) -> None:
        """Bring all parameters, and their sums, up to the last step."""
        self._sweeps.catch_up(**self._arrays)


class CoreSteps:
    """Takes the steps of epochs over the instances of a batch in the core.

    ``sweeps`` are the chains, features and parameters of a model as the core has them;
    ``arguments`` go with every call.
    """

    def __init__(self, sweeps: Any, n_threads: int, **arguments: Any) -> None:
        self.sweeps, self._n_threads, self._arguments = sweeps, n_threads, arguments

    def __call__(self, steps: Steps, parameters: AveragedParameters) -> None:
        """Take the steps of an epoch; a user may interrupt between parts of them."""
        for part in steps.parts(STEPS_AT_ONCE):
            asked = _asked(part, self._n_threads)
            parameters.run(lambda asked=asked, **a: self.sweeps.run(asked, **a, **self._arguments))


def _asked(steps: Steps, n_threads: int) -> Any:
    """Return the steps as the core takes them, on at most so many threads."""
    return _core.SweepSteps(
        np.ascontiguousarray(steps.order, np.int64),
        batch_size=steps.batch_size,
        first=steps.first,
        step=steps.step,
        period=steps.period or 0.0,
        penalty=steps.penalty,
        smallest_shrinkage=SMALLEST_SHRINKAGE,
        counts=steps.counts,
        n_threads=n_threads,
    )


def hidden_sweeps(model: Model, truth: Truth, loss: Objective, base: ScoreArrays | None) -> Any:
    """Return what the core needs for an epoch over instances with a model that has hidden units."""
    node = cast("HiddenUnitFunction", model.node)
    X = node.checked(truth.batch.X)
    starts, indices, values = compressed(X) if sparse.issparse(X) else (None, None, None)
    return _core.HiddenSweeps(
        core_chains(model, truth, loss, base),
        None if sparse.issparse(X) else np.ascontiguousarray(X),
        starts,
        indices,
        values,
        n_features=node.shape.n_features,
        n_hidden=node.shape.n_hidden,
        activation=node.shape.activation,
        has_skip=node.shape.skip,
    )


def linear_sweeps(
    model: Model, truth: Truth, loss: Objective, base: ScoreArrays | None, free: Free
) -> Any:
    """Return what the core needs for an epoch over instances with a linear model."""
    node: Any = model.node
    X: Any = truth.batch.X
    if X.shape[1] != node.n_columns:
        raise ValueError(f"X has {X.shape[1]} features, the weights are for others")
    X = with_conjunctions(X, node.conjunctions)
    if not sparse.issparse(X) and node.pattern.outputs is not None:
        X = sparse.csr_matrix(X)
    starts, indices, values = compressed(X) if sparse.issparse(X) else (None, None, None)
    return _core.Sweeps(
        core_chains(model, truth, loss, base),
        None if sparse.issparse(X) else np.ascontiguousarray(X),
        starts,
        indices,
        values,
        node.pattern.starts,
        node.pattern.outputs,
        _free_parameters(model, node, free),
    )


def _free_parameters(
    model: Model, node: LinearFunction, free: Free
) -> npt.NDArray[np.bool_] | None:
    """Return marks of the parameters that may move, in the order of `get_weights`; None: all."""
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
