"""The block of F(labels before, x), which scores nodes and edges at once."""

from __future__ import annotations

import os
from typing import cast

import numpy as np

from crfx.batch import Batch
from crfx.model.model import Model
from crfx.objectives.base import Evaluation
from crfx.objectives.truth import Truth
from crfx.potentials.context_trees import ContextTrees, Slopes
from crfx.trainers.blocks import Block, JointBlock, Proposal, Sampler, TableBlock
from crfx.workers import current

COPIES, CURVED_COPIES = 3, 5
"""Arrays of the size of all edge tables that training needs, with and without a curvature: scores,
their gradient and what the search for splits gathers of it.  The peaks measured are a little less.
"""


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
            row_weights = None if weights is None else weights.astype(np.float32)
            return Slopes(edge, node, weights=row_weights)
        return Slopes(edge, node, at.curvature["edge"], at.curvature["node"])

    def mark(self, n_rounds: int) -> None:
        """Do nothing: trees keep all rounds."""

    def keep(self, n_rounds: int) -> None:
        """Drop later rounds."""
        self.function.keep(n_rounds)

    def release(self) -> None:
        """Let go of the rows of the function."""
        self.function.release()


def context_blocks(
    model: Model, truth: Truth, followed: list[Batch], sample: Sampler, *, first_order: bool
) -> list[Block]:
    """Return what boosting moves; ``followed`` batches have their scores kept up to date."""
    node, workers = cast("ContextTrees", model.node), current()
    node.bind(truth.batch, truth.structure, followed, workers if workers.size > 1 else None)
    trees = ContextBlock(node, truth, sample, first_order=first_order)
    if model.ends is None:
        return [trees]
    return [JointBlock(trees, TableBlock("ends", model.ends, len(followed)))]


def check_memory(model: Model, n_rows: int, n_followed: int, *, first_order: bool) -> None:
    """Raise ValueError where training cannot fit into the memory of this machine."""
    if not hasattr(os, "sysconf"):  # Windows: the allocation itself will tell
        return
    copies = COPIES if first_order else CURVED_COPIES
    n_labels, order = model.n_labels, model.order
    needed = 4.0 * (copies * n_rows + n_followed) * float(n_labels) ** (order + 1)
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > available:
        raise ValueError(
            f"{n_rows} positions with {n_labels}^{order + 1} scores each need "
            f"{needed / 2**30:.1f} GiB, and this machine has {available / 2**30:.1f}: TreeCRF "
            "scores every label after all that may come before it, at every position; use a lower "
            'order, fewer labels or fewer positions, or GBCRF(edges="table")'
        )
