"""A linear model on a few instances at a time: the weights they touch, and their loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.estimators.linear_assembly import edge_rows, linear_functions, table_block
from crfx.features import take_rows
from crfx.model import Model
from crfx.objectives.base import Objective
from crfx.objectives.truth import Truth
from crfx.potentials.linear import as_numbers
from crfx.scores import FloatArray, IntArray
from crfx.trainers.parametric import (
    EdgeParameters,
    NodeParameters,
    ParameterBlock,
    ParametricObjective,
)


@dataclass(eq=False)
class MiniBatches:
    """Instances in; the positions of the weights they touch, and their loss at those, out.

    ``loss`` (truth) -> objective; ``free`` as in `parameter_blocks`; ``base`` are scores below
    those of the model, of all rows.
    """

    model: Model
    truth: Truth
    loss: Callable[[Truth], Objective]
    free: dict[str, npt.NDArray[np.bool_]] | None = None
    base: dict[str, FloatArray] | None = None

    def __post_init__(self) -> None:
        self._X = as_numbers(self.truth.batch.X)

    def __call__(self, instances: IntArray) -> tuple[IntArray, ParametricObjective]:
        """Cut the instances out."""
        truth, rows = self.truth.take(instances)
        batch = replace(truth.batch, X=take_rows(self._X, rows))
        blocks, at = self._blocks(batch)
        objective = ParametricObjective(
            self.loss(truth),
            blocks,
            batch,
            truth.structure,
            self.model.sharing,
            0.0,
            self._base(rows),
        )
        return at, objective

    def _blocks(self, batch: Batch) -> tuple[list[ParameterBlock], IntArray]:
        model = self.model
        node, *edges = linear_functions(model)
        prepared, at = node.prepare_part(batch.X)
        blocks: list[ParameterBlock] = [NodeParameters(prepared, len(at))]
        places, begin = [at], len(node.weights)
        if model.edge is not None:
            blocks.append(table_block("edge", model.edge, self.free))
            places.append(begin + np.arange(blocks[-1].size))
            begin += blocks[-1].size
        if edges:
            rows = edge_rows(model, batch)
            parts = [
                function.prepare_part(X) for function, X in zip(edges, rows.features, strict=True)
            ]
            for function, (_, own) in zip(edges, parts, strict=True):
                places.append(begin + own)
                begin += len(function.weights)
            sizes = [len(own) for _, own in parts]
            blocks.append(EdgeParameters([part for part, _ in parts], sizes, rows, model.table))
        if model.ends is not None:
            blocks.append(table_block("ends", model.ends, self.free))
            places.append(begin + np.arange(blocks[-1].size))
        return blocks, np.concatenate(places)

    def _base(self, rows: IntArray) -> dict[str, FloatArray] | None:
        if self.base is None:
            return None
        by_row = {"node", "edge"} if self.model.sharing == "each" else {"node"}
        return {
            name: scores[rows] if name in by_row else scores for name, scores in self.base.items()
        }
