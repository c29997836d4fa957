"""The block of F(labels before, x), which scores nodes and edges at once."""

from __future__ import annotations

import numpy as np

from crfx.objectives.base import Evaluation
from crfx.objectives.truth import Truth
from crfx.potentials.context_trees import ContextTrees, Slopes
from crfx.trainers.blocks import Block, Proposal, Sampler


class ContextBlock(Block):
    """Node and edge scores by one function; nodes where no labels come before.

    ``sample`` (number) -> (rows,) bool or None: the rows that round looks at.  A first-order round
    has curvature 1, times weights: its arrays are not asked for.
    """

    parts = ("node", "each_edge")

    def __init__(
        self, function: ContextTrees, truth: Truth, sample: Sampler, *, first_order: bool
    ) -> None:
        self.function, self.truth, self.sample = function, truth, sample
        self.first_order = first_order

    def propose(self, evaluation: Evaluation, number: int) -> Proposal:
        """Grow one tree per label."""
        sampled = self.sample(number)
        n_rows = self.truth.batch.n_rows
        chosen = np.arange(n_rows) if sampled is None else np.flatnonzero(sampled)
        grown = self.function.propose(self._slopes(evaluation), chosen.astype(np.int32), number)
        return Proposal(
            grown.adders(grown.bound),
            [grown.adders(other) for other in grown.followed],
            grown.accept,
        )

    def _slopes(self, at: Evaluation) -> Slopes:
        edge, node = at.gradient["edge"], at.gradient["node"]
        if self.first_order:
            weights = self.truth.edge_row_weights
            own = None if weights is None else weights.astype(np.float32)
            return Slopes(edge, node, weights=own)
        return Slopes(edge, node, at.curvature["edge"], at.curvature["node"])

    def mark(self, n_rounds: int) -> None:
        """Trees keep all rounds."""

    def keep(self, n_rounds: int) -> None:
        """Drop later rounds."""
        self.function.keep(n_rounds)
