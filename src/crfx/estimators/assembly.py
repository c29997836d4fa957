"""From the arguments of GBCRF to a model and the blocks that boosting moves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crfx import workers
from crfx.batch import Batch
from crfx.estimators.base import drawn_seed
from crfx.features.matrix import is_categorical, is_frame
from crfx.model.model import Model
from crfx.objectives.registry import ObjectiveSettings
from crfx.potentials.additive import AdditiveFunction
from crfx.potentials.newton import linear_features
from crfx.potentials.regressors import BoostedRegressors
from crfx.potentials.transitions import Tables
from crfx.potentials.trees import BoostedTrees
from crfx.potentials.xgboost_learner import XGBoostLearner
from crfx.scores import FloatArray, Scores
from crfx.structures import Chain, Forest
from crfx.threads import thread_count
from crfx.trainers.blocks import (
    Block,
    EdgeFunctionBlock,
    EdgeRows,
    JointBlock,
    LinearEdgeBlock,
    NodeBlock,
    Sampler,
    TableBlock,
)
from crfx.trainers.boosting import WorkingScores
from crfx.workers import agreed

if TYPE_CHECKING:
    from crfx.estimators.gbcrf import GBCRF


MOST_ENTRIES = 2**27
"""Of an edge table; several of its size are needed in training."""


def new_model(crf: GBCRF, batch: Batch, structure: Chain | Forest, n_labels: int) -> Model:
    """A model without rounds."""
    n_types = count_types(batch, structure) if crf.edges is not None else None
    model = Model(
        order=crf.order,
        n_labels=n_labels,
        node=new_function(crf, n_labels),
        edge_family=crf.edges,
        n_types=n_types,
        is_forest=batch.parents is not None,
    )
    check_table_size(crf, n_labels, n_types)
    front = () if n_types is None else (n_types,)
    if crf.edges == "table":
        model.edge = Tables({"edge": np.zeros((*front, *model.table))}, table_l2(crf))
    elif crf.edges == "linear":
        shape = (n_types or 1, batch.X.shape[1] + 1, int(np.prod(model.table)))  # type: ignore[attr-defined]
        model.edge = Tables({"weights": np.zeros(shape)}, table_l2(crf))
    elif crf.edges == "trees":
        size = int(np.prod(model.table))
        model.edge_functions = [new_function(crf, size) for _ in range(n_types or 1)]
    if crf.start_end and crf.edges is not None:
        names = ("start", "end") if batch.parents is None else ("start",)
        model.ends = Tables({name: np.zeros(n_labels) for name in names}, table_l2(crf))
    return model


def check_table_size(crf: Any, n_labels: int, n_types: int | None) -> None:
    """Raise ValueError where edge tables would not fit into memory."""
    size = n_labels ** (int(crf.order) + 1)
    has_tables = getattr(crf, "edges", "context") is not None or crf.constraints is not None
    if has_tables and size > MOST_ENTRIES:
        raise ValueError(
            f"order={crf.order} with {n_labels} labels needs edge tables of {n_labels}^"
            f"{crf.order + 1} = {size:.3g} entries; at most {MOST_ENTRIES:.3g} fit: use a lower "
            "order"
        )
    if n_types is not None and size * n_types > MOST_ENTRIES:
        raise ValueError(
            f"{n_types} edge types (the largest number and 0) need a table of {n_labels}^"
            f"{crf.order + 1} entries each; at most {MOST_ENTRIES:.3g} entries fit: number them "
            "from 0, without gaps"
        )


def count_types(batch: Batch, structure: Chain | Forest) -> int | None:
    """How many edge types all workers have; None where edges have none."""
    if batch.edge_types is None:
        return None
    _, counts = agreed(
        lambda: _count_types(batch, structure),
        lambda n_types: (batch.n_instances, n_types),
    )
    return max(counts)


def _count_types(batch: Batch, structure: Chain | Forest) -> int:
    assert batch.edge_types is not None
    rows = structure.edge_rows(batch)
    types = batch.edge_types[rows]
    if len(types) and types.min() < 0:
        raise batch.bad_row(rows[types.argmin()], f"edge type {types.min()} is negative")
    return int(types.max(initial=0)) + 1


def table_l2(crf: GBCRF) -> float:
    """The penalty on tables and linear weights."""
    # First order: curvature 1, nothing regularised, as in the paper's comparison.
    return 0.0 if ObjectiveSettings.of(vars(crf)).is_first_order else crf.edge_l2


def new_function(crf: GBCRF, n_outputs: int) -> AdditiveFunction:
    """Boosted trees, or what ``base_learner`` asks for, without rounds."""
    seed = drawn_seed(crf.random_state)
    if crf.base_learner is not None:
        return BoostedRegressors(crf.base_learner, n_outputs, seed)
    params = {
        "max_depth": crf.max_depth,
        "max_leaves": crf.max_leaves,
        "grow_policy": crf.grow_policy,
        "reg_lambda": 0.0 if ObjectiveSettings.of(vars(crf)).is_first_order else crf.reg_lambda,
        "min_child_weight": crf.min_child_weight,
        "colsample_bynode": crf.colsample_bynode,
        **(crf.tree_params or {}),
    }
    learner = XGBoostLearner(params, crf.max_bin, seed, thread_count(crf.n_jobs), crf.device)
    return BoostedTrees(learner, n_outputs)


def make_blocks(crf: GBCRF, model: Model, batch: Batch, followed: list[Batch]) -> list[Block]:
    """What boosting moves in turn; ``followed`` batches have their scores kept up to date."""
    node = model.growing[0]
    _check_categories(batch.X)
    node.bind(batch.X, [other.X for other in followed], workers.current())
    sample = _row_sampler(crf, batch)
    nodes = NodeBlock(node, sample)
    if model.edge_family is None:
        return [nodes]
    edges: Block
    if model.edge_family == "table":
        assert model.edge is not None
        edges = TableBlock("edge", model.edge, len(followed))
    else:
        edges = _edge_function_block(model, batch, followed, sample)
    if model.ends is not None:
        # Together with the edges: a turn of their own would cost a third inference a round.
        edges = JointBlock(edges, TableBlock("ends", model.ends, len(followed)))
    return [nodes, edges]


def _edge_function_block(
    model: Model, batch: Batch, followed: list[Batch], sample: Sampler
) -> Block:
    linear = model.edge_family == "linear"
    rows = [
        EdgeRows.of(
            other,
            model.structure(other).edge_rows(other),
            model.n_types or 1,
            linear_features(other.X) if linear else other.X,
        )
        for other in (batch, *followed)
    ]
    if linear:
        assert model.edge is not None
        return LinearEdgeBlock(model.edge, rows[0], rows[1:], workers.current().sum)
    functions = model.growing[1:]
    for kind, function in enumerate(functions):
        own, *others = (each.features[kind] for each in rows)
        _check_categories(own)
        function.bind(own, others, workers.current())
    return EdgeFunctionBlock(functions, rows[0], rows[1:], sample)


def _check_categories(X: Any) -> None:
    """Raise ValueError where workers with rows, and without, have categories: XGBoost refuses."""
    team = workers.current()
    if team.size == 1 or not is_frame(X):
        return
    names = [name for name in X.columns if is_categorical(X[name])]
    empty = [rank for rank, n_rows in enumerate(team.gather(len(X))) if not n_rows]
    if names and empty:
        raise ValueError(
            f"column {str(names[0])!r} of X has categories, and worker {empty[0]} has no rows to "
            "grow trees on: use fewer workers, or encode categories as numbers"
        )


def _row_sampler(crf: GBCRF, batch: Batch) -> Sampler:
    if crf.subsample == 1.0:
        return lambda number: None
    seed = drawn_seed(crf.random_state)
    lengths = batch.lengths
    n_all, begin = workers.place(workers.current(), len(lengths))

    def rows(number: int) -> npt.NDArray[np.bool_]:
        random = np.random.default_rng([seed, number])
        chosen = random.random(n_all)[begin : begin + len(lengths)] < crf.subsample
        return np.repeat(chosen, lengths)

    return rows


def working_scores(model: Model, batch: Batch) -> WorkingScores:
    """The scores before training, in arrays that may be changed."""
    structure = model.structure(batch)

    def arrays() -> dict[str, FloatArray]:
        if model.base is None or not model.can_be_cut:
            return _arrays(model.scores(batch, structure))
        # Round by round on top of what lies underneath, as training adds them.
        found = _arrays(model.scores(batch, structure, 0))
        free = replace(batch, allowed=None)
        for own in model.rounds_alone():
            for name, change in _arrays(own.scores(free, structure)).items():
                found[name] += change
        return found

    return WorkingScores(batch, structure, model.sharing, arrays(), rebuild=arrays)


def _arrays(scores: Scores) -> dict[str, FloatArray]:
    return {
        name: np.array(array, dtype=np.float32)
        for name in ("node", "edge", "start", "end", "pairs")
        if (array := getattr(scores, name)) is not None
    }
