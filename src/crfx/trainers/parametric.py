"""An objective as a function of one flat vector of parameters: what parametric trainers lower."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.inference.problem import Problem
from crfx.objectives.base import Objective, PartName
from crfx.scores import FloatArray, IntArray, Scores, Sharing
from crfx.structures import Chain, Forest
from crfx.trainers.base import TrainingState
from crfx.trainers.blocks import EdgeRows
from crfx.trainers.lbfgs import Course, Rounded, lbfgs_state
from crfx.workers import ALONE, Workers, total

Array64 = npt.NDArray[np.float64]
ScoreArrays = dict[str, FloatArray]

RESOLUTION = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-15}
"""Of a sum over many rows, by the dtype of scores."""


class ParameterBlock(Protocol):
    """Parameters of one part of the scores, on the rows of one batch."""

    part: PartName
    size: int

    def scores(self, values: FloatArray) -> ScoreArrays:
        """The scores they give, by name, of the dtype of the parameters."""
        ...

    def gradient(self, slopes: ScoreArrays) -> Array64:
        """(size,) from the gradient in the scores."""
        ...


class TableParameters:
    """Tables of scores: an edge table (or one per type), or start and end.

    ``free`` marks the entries that may differ from 0; None: all.
    """

    def __init__(
        self,
        part: PartName,
        shapes: dict[str, tuple[int, ...]],
        free: dict[str, npt.NDArray[np.bool_]] | None = None,
    ) -> None:
        self.part, self.shapes, self.free = part, shapes, free
        self.size = sum(int(np.prod(shape)) for shape in shapes.values())

    def scores(self, values: FloatArray) -> ScoreArrays:
        """The tables by name, as views of the parameters."""
        found, begin = {}, 0
        for name, shape in self.shapes.items():
            end = begin + int(np.prod(shape))
            found[name], begin = values[begin:end].reshape(shape), end
        return found

    def gradient(self, slopes: ScoreArrays) -> Array64:
        """Zero where an entry is not free."""
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

    def scores(self, values: FloatArray) -> ScoreArrays:
        """(rows, K)."""
        return {"node": self.prepared.scores(values)}

    def gradient(self, slopes: ScoreArrays) -> Array64:
        """Of the function's parameters."""
        found: Array64 = self.prepared.gradient(slopes["node"])
        return found


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
        """(rows, K, ..., K), zero where no edge ends."""
        parts = [
            function.scores(values[begin:end])
            for function, begin, end in zip(
                self.prepared, self._borders[:-1], self._borders[1:], strict=True
            )
        ]
        return {"edge": self.rows.spread(parts, self.table)}

    def gradient(self, slopes: ScoreArrays) -> Array64:
        """Of the functions' parameters."""
        slope = slopes["edge"].reshape(self.rows.n_rows, int(np.prod(self.table)))
        return np.concatenate(
            [
                function.gradient(slope[rows])
                for function, rows in zip(self.prepared, self.rows.by_type, strict=True)
            ]
        )


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
        """With the smallest change of the value that is more than rounding."""
        return Rounded(self, RESOLUTION[self.dtype])

    def finer(self) -> ParametricObjective:
        """The same in double precision."""
        found = copy(self)
        found.dtype = np.dtype(np.float64)
        return found

    def split(self, values: FloatArray) -> list[FloatArray]:
        """The parameters of each block, as views."""
        return np.split(values, self._borders[1:-1])

    def problem(self, values: Array64) -> Problem:
        """The batch with its scores."""
        arrays = {name: own.astype(self.dtype, copy=False) for name, own in self.base.items()}
        parts = self.split(values.astype(self.dtype))
        for block, own in zip(self.blocks, parts, strict=True):
            for name, scores in block.scores(own).items():
                arrays[name] = arrays[name] + scores if name in arrays else scores
        return Problem(self.batch, Scores(**arrays), self.structure, self.sharing)

    def __call__(self, values: Array64) -> tuple[float, Array64]:
        """Value and gradient."""
        parts = [block.part for block in self.blocks]
        found = self.objective.evaluate(self.problem(values), parts)
        gradient = np.concatenate([block.gradient(found.gradient) for block in self.blocks])
        value = found.value
        if self.communicator.size > 1:
            value, gradient = self._of_all(value, gradient)
        if self.l2:
            gradient += (2 * self.l2) * values
        return value + self.penalty(values), gradient

    def _of_all(self, value: float, gradient: Array64) -> tuple[float, Array64]:
        """The sums of all workers, in one message."""
        sums = self.communicator.sum(np.concatenate([[value], gradient]))
        return float(sums[0]), sums[1:]

    def value(self, values: Array64) -> float:
        """The value alone."""
        own = self.objective.evaluate(self.problem(values), ()).value
        return total(self.communicator, own) + self.penalty(values)

    def penalty(self, values: Array64) -> float:
        """l2 |w|^2."""
        return self.l2 * float(values @ values) if self.l2 else 0.0


def grown(values: npt.NDArray[Any], origin: IntArray) -> npt.NDArray[Any]:
    """Return flat parameters in another order: ``origin`` is the old place of each, or -1 for new
    ones, which are 0.
    """
    return np.where(origin >= 0, values[origin], values.dtype.type(0))


def grown_state(state: TrainingState, origin: IntArray) -> TrainingState:
    """Return the state of a training whose parameters are moved by `grown`.

    The memory of L-BFGS and the averages over sweeps begin anew: they say nothing about new
    parameters.
    """
    if state.trainer == "lbfgs":
        return lbfgs_state(Course(), state.n_done)
    numbers = state.numbers | {"product": 1.0, "steps": 0.0, "n_counted": 0.0}
    values = grown(state.arrays["values"], origin)
    return replace(state, numbers=numbers, arrays={"values": values, "sum": np.zeros(len(values))})
