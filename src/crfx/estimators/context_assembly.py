"""From the arguments of TreeCRF to a model and the blocks that boosting moves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import workers
from crfx.batch import Batch
from crfx.estimators.assembly import check_table_size
from crfx.estimators.base import drawn_seed
from crfx.estimators.continuing import copied_tables
from crfx.messages import shown
from crfx.model.model import Model
from crfx.objectives.registry import ObjectiveSettings
from crfx.objectives.truth import Truth
from crfx.potentials.context_trees import ContextLearner, ContextShape, ContextTrees
from crfx.potentials.transitions import Tables
from crfx.structures import Chain, Forest
from crfx.trainers.blocks import Block, JointBlock, Sampler, TableBlock
from crfx.trainers.context_block import ContextBlock

if TYPE_CHECKING:
    from crfx.estimators.treecrf import TreeCRF

COPIES, CURVED_COPIES = 3, 5
"""Arrays of the size of all edge tables that training needs, with and without a curvature: scores,
their gradient and what the search for splits gathers of it.  The peaks measured are a little less.
"""


MOST_NEIGHBOURS = 1000
"""On one side of a window: each adds the features of a position to every row."""


def parse_window(window: Any) -> tuple[int, int]:
    """Read the argument ``window``: (left, right)."""
    if isinstance(window, int | np.integer) and not isinstance(window, bool):
        if window < 1 or window % 2 == 0:
            raise ValueError(
                f"window is {window}: it must be an odd number, the position and equally many "
                "neighbours on both sides; or (left, right)"
            )
        return parse_window((int(window // 2), int(window // 2)))
    try:
        left, right = window
    except (TypeError, ValueError):
        left = right = None
    for side in (left, right):
        if not isinstance(side, int | np.integer) or isinstance(side, bool) or side < 0:
            raise ValueError(
                f"window is {shown(window)}: it must be an odd number, or (left, right), two whole "
                "numbers of 0 or more"
            )
        if side > MOST_NEIGHBOURS:
            raise ValueError(
                f"window reaches {side} neighbours: at most {MOST_NEIGHBOURS} on a side fit"
            )
    return int(left), int(right)


def new_context_model(
    crf: TreeCRF, batch: Batch, structure: Chain | Forest, n_labels: int
) -> Model:
    """A model without rounds."""
    if batch.edge_types is not None:
        raise ValueError(
            "edge_types are given, but TreeCRF has one function for all edges: make the type a "
            "feature of the position at which the edge ends"
        )
    check_table_size(crf, n_labels, None)
    shape = ContextShape(
        n_labels, int(crf.order), parse_window(crf.window), is_sparse=sparse.issparse(batch.X)
    )
    model = Model(
        order=crf.order,
        n_labels=n_labels,
        node=ContextTrees(shape, _learner(crf)),
        edge_family="context",
        is_forest=batch.parents is not None,
    )
    if crf.start_end and batch.parents is None:
        model.ends = Tables({"end": np.zeros(n_labels)}, 0.0)
    return model


def _learner(crf: TreeCRF) -> ContextLearner:
    return ContextLearner(
        max_leaves=int(crf.max_leaves),
        reg_lambda=0.0 if ObjectiveSettings.of(vars(crf)).is_first_order else float(crf.reg_lambda),
        min_child_weight=float(crf.min_child_weight),
        trimming=float(crf.influence_trimming),
        column_share=float(crf.colsample_bynode),
        seed=drawn_seed(crf.random_state),
    )


def check_memory(crf: TreeCRF, n_rows: int, n_followed: int, n_labels: int) -> None:
    """Raise ValueError where training cannot fit into the memory of this machine."""
    if not hasattr(os, "sysconf"):  # Windows: the allocation itself will tell
        return
    copies = COPIES if ObjectiveSettings.of(vars(crf)).is_first_order else CURVED_COPIES
    needed = 4.0 * (copies * n_rows + n_followed) * float(n_labels) ** (int(crf.order) + 1)
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise ValueError(
            f"{n_rows} positions with {n_labels}^{crf.order + 1} scores each need "
            f"{needed / 2**30:.1f} GiB, and this machine has {there / 2**30:.1f}: TreeCRF scores "
            "every label after all that may come before it, at every position; use a lower order, "
            'fewer labels or fewer positions, or GBCRF(edges="table")'
        )


def continued_context(old: TreeCRF, new: TreeCRF) -> Model | None:
    """A copy of the model of ``old``, to be trained on by ``new``; None if their parts differ."""
    model = old.model_
    node = model.node
    assert isinstance(node, ContextTrees)
    if (node.shape.order, node.shape.window) != (new.order, parse_window(new.window)):
        return None
    if not model.is_forest and (model.ends is not None) != bool(new.start_end):
        return None
    return Model(
        order=model.order,
        n_labels=model.n_labels,
        node=node.copy(_learner(new)),
        edge_family="context",
        ends=copied_tables(model.ends, old.n_rounds_, 0.0),
        is_forest=model.is_forest,
        base=model.base,
    )


def make_context_blocks(
    crf: TreeCRF, model: Model, truth: Truth, followed: list[Batch]
) -> list[Block]:
    """What boosting moves; ``followed`` batches have their scores kept up to date."""
    node = model.node
    assert isinstance(node, ContextTrees)
    team = workers.current()
    node.bind(truth.batch, truth.structure, followed, team if team.size > 1 else None)
    sampler = _row_sampler(crf, truth.batch)
    first_order = ObjectiveSettings.of(vars(crf)).is_first_order
    trees = ContextBlock(node, truth, sampler, first_order=first_order)
    if model.ends is None:
        return [trees]
    return [JointBlock(trees, TableBlock("ends", model.ends, len(followed)))]


def _row_sampler(crf: TreeCRF, batch: Batch) -> Sampler:
    if crf.subsample == 1.0:
        return lambda number: None
    seed = drawn_seed(crf.random_state)
    _, begin = workers.place(workers.current(), batch.n_rows)

    def rows(number: int) -> npt.NDArray[np.bool_]:
        # One draw per row: those of workers before are skipped, not drawn.
        bits = np.random.PCG64([seed, number]).advance(begin)
        return np.random.Generator(bits).random(batch.n_rows) < crf.subsample

    return rows
