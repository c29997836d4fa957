"""What parametric trainers share: an objective as a function of one flat vector, and rounds."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.inference.problem import Problem
from crfx.model.building import free_entries
from crfx.model.flat_parameters import (
    ParametricFunction,
    get_weights,
    parametric_functions,
    set_weights,
)
from crfx.model.model import Model
from crfx.model.sum import lifted
from crfx.objectives.base import Objective, PartName
from crfx.objectives.truth import Truth
from crfx.potentials.numbers import with_constant
from crfx.potentials.transitions import Tables
from crfx.scores import FloatArray, IntArray, Scores, Sharing
from crfx.structures import Chain, Forest
from crfx.trainers.base import Rounds, Trainer, TrainingState
from crfx.trainers.blocks import EdgeRows
from crfx.trainers.shared_evaluation import agreed_objective, notes_of_all
from crfx.workers import ALONE, Workers, current, total

Array64 = npt.NDArray[np.float64]
ScoreArrays = dict[str, FloatArray]
Free = dict[str, npt.NDArray[np.bool_]] | None
"""Which entries of tables may move, by name; None: all."""
Iterations: TypeAlias = Generator[tuple[npt.NDArray[Any], float], None, npt.NDArray[Any]]
"""Yields parameters and objective after each iteration or epoch; returns the last parameters."""

RESOLUTION = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-15}
"""Of a sum over many rows, by the dtype of scores."""


class ParameterBlock(Protocol):
    """Parameters of one part of the scores, on the rows of one batch."""

    part: PartName
    size: int

    def scores(self, values: FloatArray) -> ScoreArrays:
        """Return their scores by name, of the dtype of the parameters."""
        ...

    def gradient(self, slopes: ScoreArrays) -> Array64:
        """Return (size,) the gradient in the parameters from that in the scores."""
        ...


class TableParameters:
    """Tables of scores: an edge table (or one per type), or start and end.

    ``free`` marks the entries that may differ from 0; None: all.
    """

    def __init__(
        self,
        part: PartName,
        shapes: dict[str, tuple[int, ...]],
        free: Free = None,
    ) -> None:
        self.part, self.shapes, self.free = part, shapes, free
        self.size = sum(int(np.prod(shape)) for shape in shapes.values())

    def scores(self, values: FloatArray) -> ScoreArrays:
        """Return the tables by name, as views of the parameters."""
        tables, begin = {}, 0
        for name, shape in self.shapes.items():
            end = begin + int(np.prod(shape))
            tables[name], begin = values[begin:end].reshape(shape), end
        return tables

    def gradient(self, slopes: ScoreArrays) -> Array64:
        """Return the gradient of all entries, 0 if one is not free."""
        parts = []
        for name in self.shapes:
            slope = np.asarray(slopes[name], np.float64)
            parts.append((slope if self.free is None else slope * self.free[name]).reshape(-1))
        return np.concatenate(parts)


class NodeParameters:
    """Node scores by a function of the features, ``prepared`` on the rows of a batch."""

    part: PartName = "node"

    def __init__(self, prepared: Any, size: int) -> None:
        self.prepared, self.size = prepared, size
        if hasattr(prepared, "reuses_scores"):  # each evaluation is over before the next begins
            prepared.reuses_scores = True

    def scores(self, values: FloatArray) -> ScoreArrays:
        """Return the node scores (rows, K)."""
        return {"node": self.prepared.scores(values)}

    def gradient(self, slopes: ScoreArrays) -> Array64:
        """Return the gradient in the function's parameters."""
        gradient: Array64 = self.prepared.gradient(slopes["node"])
        return gradient


class EdgeParameters:
    """Edge scores by functions of the features, one per edge type, ``prepared`` on their rows."""

    part: PartName = "each_edge"

    def __init__(
        self, prepared: list[Any], sizes: list[int], rows: EdgeRows, table: tuple[int, ...]
    ) -> None:
        self.prepared, self.rows, self.table = prepared, rows, table
        self._borders = np.cumsum([0, *sizes])
        self.size = int(self._borders[-1])

    def scores(self, values: FloatArray) -> ScoreArrays:
        """Return the edge scores (rows, K, ..., K), 0 where no edge ends."""
        parts = [
            function.scores(values[begin:end])
            for function, begin, end in zip(
                self.prepared, self._borders[:-1], self._borders[1:], strict=True
            )
        ]
        return {"edge": self.rows.spread(parts, self.table)}

    def gradient(self, slopes: ScoreArrays) -> Array64:
        """Return the gradient in the functions' parameters."""
        slope = slopes["edge"].reshape(self.rows.n_rows, int(np.prod(self.table)))
        return np.concatenate(
            [
                function.gradient(slope[rows])
                for function, rows in zip(self.prepared, self.rows.by_type, strict=True)
            ]
        )


@dataclass(frozen=True)
class Rounded:
    """A function, and the least share of its value that is above its rounding error."""

    function: Callable[[Array64], tuple[float, Array64]]
    resolution: float = 0.0


class ParametricObjective:
    """objective + l2 |w|^2, and its gradient, at flat parameters w.

    ``base`` are scores that stay as they are, below those of the parameters.  Workers that train
    together have a batch each and one objective: 8 bytes per parameter in an evaluation.  Scores
    are of single precision, or of that which is `finer`.
    """

    def __init__(
        self,
        objective: Objective,
        blocks: Sequence[ParameterBlock],
        batch: Batch,
        structure: Chain | Forest,
        sharing: Sharing,
        l2: float = 0.0,
        base: ScoreArrays | None = None,
        communicator: Workers = ALONE,
    ) -> None:
        self.communicator = communicator
        self.objective, self.blocks = objective, blocks
        self.batch, self.structure, self.sharing = batch, structure, sharing
        self.l2, self.base = l2, base or {}
        self.dtype: np.dtype[Any] = np.dtype(np.float32)
        self._borders = np.cumsum([0, *(block.size for block in blocks)])

    def rounded(self) -> Rounded:
        """Return the function with the smallest change of its value that is more than rounding."""
        return Rounded(self, RESOLUTION[self.dtype])

    def finer(self) -> ParametricObjective:
        """Return the same objective in double precision."""
        copied = copy(self)
        copied.dtype = np.dtype(np.float64)
        return copied

    def split(self, values: FloatArray) -> list[FloatArray]:
        """Return the parameters of each block, as views."""
        return np.split(values, self._borders[1:-1])

    def problem(self, values: Array64) -> Problem:
        """Return the batch with its scores."""
        arrays = {name: array.astype(self.dtype, copy=False) for name, array in self.base.items()}
        parts = self.split(values.astype(self.dtype))
        for block, parameters in zip(self.blocks, parts, strict=True):
            for name, scores in block.scores(parameters).items():
                arrays[name] = arrays[name] + scores if name in arrays else scores
        return Problem(self.batch, Scores(**arrays), self.structure, self.sharing)

    def __call__(self, values: Array64) -> tuple[float, Array64]:
        """Return value and gradient."""
        parts = [block.part for block in self.blocks]
        evaluation = self.objective.evaluate(self.problem(values), parts)
        gradient = np.concatenate([block.gradient(evaluation.gradient) for block in self.blocks])
        value = evaluation.value
        if self.communicator.size > 1:
            value, gradient = self._of_all(value, gradient)
        if self.l2:
            gradient += (2 * self.l2) * values
        return value + self.penalty(values), gradient

    def _of_all(self, value: float, gradient: Array64) -> tuple[float, Array64]:
        """Return the sums over all workers, in one message."""
        sums = self.communicator.sum(np.concatenate([[value], gradient]))
        return float(sums[0]), sums[1:]

    def value(self, values: Array64) -> float:
        """Return the value alone."""
        value = self.objective.evaluate(self.problem(values), ()).value
        return total(self.communicator, value) + self.penalty(values)

    def penalty(self, values: Array64) -> float:
        """Return l2 |w|^2."""
        return self.l2 * float(values @ values) if self.l2 else 0.0


# From a model and its task -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ParametricTask:
    """What parametric training lowers: a loss on the labels of instances, and l2 |w|^2.

    ``bind`` (truth) is the loss on some instances.  ``observed``: only the entries of tables that
    occur in training may move.  ``decode`` gives the labels that the model predicts; losses of
    perceptrons, which grow with the scale of the scores, say little about how good those are.
    """

    truth: Truth
    bind: Callable[[Truth], Objective]
    l2: float = 0.0
    observed: bool = False
    n_jobs: int | None = None
    decode: Callable[[Problem], IntArray] | None = None

    def free(self, model: Model) -> Free:
        """Return which entries of the tables may move."""
        return free_entries(model, self.truth) if self.observed else None

    def objective(
        self, model: Model, loss: Objective | None = None, free: Free = None
    ) -> ParametricObjective:
        """Return the objective of all workers; ``loss`` and ``free``: if they are there already."""
        truth, batch = self.truth, self.truth.batch
        if loss is None:
            loss, free = agreed_objective(lambda: self.bind(truth), batch), self.free(model)
        return ParametricObjective(
            loss,
            parameter_blocks(model, batch, free)[0],
            batch,
            truth.structure,
            model.sharing,
            self.l2,
            base_scores(model, batch),
            current(),
        )


def edge_rows(model: Model, batch: Batch) -> EdgeRows:
    """Return the rows of edges with a constant feature last, whose weights are transitions."""
    rows = model.structure(batch).edge_rows(batch)
    return EdgeRows.of(batch, rows, model.n_types or 1, with_constant(batch.X))


def parameter_blocks(
    model: Model,
    batch: Batch,
    free: Free = None,
    *,
    touched: bool = False,
) -> tuple[list[ParameterBlock], IntArray]:
    """Return the parameters of a model, for the rows of a batch, and their places in `get_weights`.

    ``free`` marks the entries of tables that may move; None: all.  With ``touched`` functions have
    only the weights that the batch touches.
    """

    def prepared(function: ParametricFunction, X: Any) -> tuple[Any, IntArray]:
        if touched:
            return function.prepare_part(X)
        return function.prepare(X), np.arange(len(function.weights))

    node, *edges = parametric_functions(model)
    features, at = prepared(node, batch.X)
    blocks: list[ParameterBlock] = [NodeParameters(features, len(at))]
    places, begin = [at], len(node.weights)
    if model.edge is not None:
        blocks.append(_table_block("edge", model.edge, free))
        places.append(begin + np.arange(blocks[-1].size))
        begin += blocks[-1].size
    if edges:
        rows = edge_rows(model, batch)
        parts = [prepared(function, X) for function, X in zip(edges, rows.features, strict=True)]
        for function, (_, at) in zip(edges, parts, strict=True):
            places.append(begin + at)
            begin += len(function.weights)
        sizes = [len(at) for _, at in parts]
        blocks.append(EdgeParameters([part for part, _ in parts], sizes, rows, model.table))
    if model.ends is not None:
        blocks.append(_table_block("ends", model.ends, free))
        places.append(begin + np.arange(blocks[-1].size))
    return blocks, np.concatenate(places)


def _table_block(part: Any, tables: Tables, free: Free) -> TableParameters:
    """Return the entries of shared tables as parameters."""
    shapes = {name: table.shape for name, table in tables.tables.items()}
    marks = None if free is None else {name: free[name] for name in shapes}
    return TableParameters(part, shapes, marks)


def base_scores(model: Model, batch: Batch) -> ScoreArrays | None:
    """Return the scores that the weights add to, by name; None if there are none.

    Those of a base model, and the -inf of constraints.
    """
    if model.base is None and model.mask is None and batch.allowed is None:
        return None
    if model.base is None:
        scores = Scores(np.zeros((batch.n_rows, model.n_labels), np.float32))
    else:
        scores = model.base.scores(replace(batch, allowed=None), model.structure(batch))
        edge = lifted(scores.edge, model.base.sharing, model.sharing, model.n_types, batch)
        scores = Scores(scores.node, edge, scores.start, scores.end)
    had_edges = scores.edge is not None
    scores = model.masked(scores, batch)
    if not had_edges:
        edge = lifted(scores.edge, "shared", model.sharing, model.n_types, batch)
        scores = replace(scores, edge=edge)
    named = {name: getattr(scores, name) for name in ("node", "edge", "start", "end", "pairs")}
    if model.base is None and batch.allowed is None:
        del named["node"]  # zeros
    return {name: array for name, array in named.items() if array is not None}


def base_of(base: ScoreArrays | None, model: Model, rows: IntArray) -> ScoreArrays | None:
    """Return the scores of some rows that a model adds to."""
    if base is None:
        return None
    by_row = {"node", "edge"} if model.sharing == "each" else {"node"}
    return {name: scores[rows] if name in by_row else scores for name, scores in base.items()}


# Rounds ------------------------------------------------------------------------------------------


class ParameterTrainer(Trainer):
    """A trainer of the parameters of a model, which resumes exactly from its state."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.before: Callable[[], None] | None = None
        """What is to be done before the first round, and counts as a part of it."""
        self.best: npt.NDArray[Any] | None = None
        """The parameters of the best round, once there is one."""
        self._objective: Objective | None = None
        """What is lowered; it may note more than its value."""
        self._n_done = 0
        self._last: npt.NDArray[Any] | None = None

    @abstractmethod
    def _steps(self) -> Iterations:
        """Train, an iteration or epoch at a time."""

    @abstractmethod
    def state(self) -> TrainingState | None:
        """Return where training stands; None if the parameters of the model say it."""

    @abstractmethod
    def restore(self, state: TrainingState) -> None:
        """Resume where `state` was taken."""

    @property
    def can_restore(self) -> bool:
        """Whether an earlier run has left its best parameters."""
        return self.best is not None

    def rounds(self) -> Rounds:
        """Yield a record after each iteration or epoch; the model has its parameters."""
        begin = time.perf_counter()
        if self.before is not None:
            self.before()
        with closing(self._steps()) as steps:
            while True:
                try:
                    self._last, value = next(steps)
                except StopIteration as end:
                    set_weights(self.model, end.value)
                    return
                set_weights(self.model, self._last)
                self._n_done += 1
                record = {"objective": value, "seconds": time.perf_counter() - begin}
                yield record | notes_of_all(current(), self._objective)
                self._last = None  # these arrays are large: none is held beside the next
                begin = time.perf_counter()

    def mark(self) -> None:
        """Remember the parameters of the last round."""
        self.best = get_weights(self.model) if self._last is None else self._last

    def keep_best(self, n_done: int) -> None:
        """Return to the parameters that were remembered."""
        if self.best is not None:
            set_weights(self.model, self.best)
