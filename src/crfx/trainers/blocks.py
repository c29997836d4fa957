"""Blocks: the parts of the scores that boosting moves in turn, and what each may add.

A block asks the objective for its parts, fits potentials to gradient and curvature, and proposes
a change of the scores.  What it proposes is kept once the trainer has settled the step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.features.matrix import is_categorical, is_frame, take_rows
from crfx.model.model import Model
from crfx.objectives.base import Evaluation, PartName
from crfx.potentials.base import AdditiveFunction
from crfx.potentials.newton import newton_step
from crfx.potentials.numbers import with_constant
from crfx.potentials.transitions import Tables
from crfx.scores import FloatArray, IntArray
from crfx.workers import current, place

Adder = Callable[[FloatArray, float], None]
Changes = Mapping[str, FloatArray | Adder]
"""What to add to the scores, by name: node, edge, start, end.

An array; or, where that would take too much memory, a function that adds a step to an array.
"""


Sampler = Callable[[int], npt.NDArray[np.bool_] | None]


@dataclass(frozen=True, eq=False)
class Proposal:
    """A change of the training scores and of those that are followed.

    ``accept(step)`` keeps it; ``penalty(step)`` is the block's regulariser if it were kept.
    """

    changes: Changes
    followed: list[Changes]
    accept: Callable[[float], None]
    penalty: Callable[[float], float] = lambda step: 0.0


class Block(ABC):
    """Parts of the scores and the potential behind them."""

    parts: tuple[PartName, ...]

    @abstractmethod
    def propose(self, evaluation: Evaluation, number: int) -> Proposal:
        """Fit round ``number`` to gradient and curvature."""

    def penalty(self) -> float:
        """Return what the block's regulariser adds to the objective."""
        return 0.0

    @abstractmethod
    def mark(self, n_rounds: int) -> None:
        """Note that ``keep(n_rounds)`` may come."""

    @abstractmethod
    def keep(self, n_rounds: int) -> None:
        """Drop the rounds after the first ``n_rounds``."""

    def release(self) -> None:  # noqa: B027 - tables hold no rows
        """Let go of the rows that the block learns from."""


class NodeBlock(Block):
    """Node scores by a function of the features, K outputs.

    ``sample`` (number) -> (rows,) bool or None: the rows that round looks at.
    """

    parts = ("node",)

    def __init__(self, function: AdditiveFunction, sample: Sampler = lambda number: None) -> None:
        self.function, self.sample = function, sample

    def propose(self, evaluation: Evaluation, number: int) -> Proposal:
        """Fit one function per label."""
        gradient, curvature = evaluation.gradient["node"], evaluation.curvature["node"]
        _leave_out(self.sample(number), gradient, curvature)
        addition = self.function.propose(gradient, curvature, number)
        followed: list[Changes] = [{"node": delta} for delta in addition.followed]
        return Proposal({"node": addition.delta}, followed, addition.accept)

    def mark(self, n_rounds: int) -> None:
        """Do nothing: functions keep all rounds."""

    def keep(self, n_rounds: int) -> None:
        """Drop later rounds."""
        self.function.keep(n_rounds)

    def release(self) -> None:
        """Let go of the rows of the function."""
        self.function.release()


def _leave_out(
    sampled: npt.NDArray[np.bool_] | None, gradient: FloatArray, curvature: FloatArray
) -> None:
    """Set gradient and curvature of rows that are not sampled to 0, in place."""
    if sampled is not None:
        gradient[~sampled] = 0.0
        curvature[~sampled] = 0.0


def _flat(tables: FloatArray) -> FloatArray:
    """Return (rows, entries) from (rows, K, ..., K), also if there are no rows."""
    return tables.reshape(len(tables), int(np.prod(tables.shape[1:])))


class TableBlock(Block):
    """Shared tables: transitions ("edge"), or start and end ("ends")."""

    def __init__(self, part: PartName, tables: Tables, n_followed: int) -> None:
        self.parts, self.tables, self.n_followed = (part,), tables, n_followed

    def propose(self, evaluation: Evaluation, number: int) -> Proposal:
        """Propose one Newton step."""
        delta = self.tables.propose(evaluation.gradient, evaluation.curvature)
        changes: Changes = dict(delta)
        return Proposal(
            changes,
            [changes] * self.n_followed,
            lambda step: self.tables.accept(delta, step),
            lambda step: self.tables.penalty(delta, step),
        )

    def penalty(self) -> float:
        """Return the penalty on the tables."""
        return self.tables.penalty()

    def mark(self, n_rounds: int) -> None:
        """Note the round."""
        self.tables.mark(n_rounds)

    def keep(self, n_rounds: int) -> None:
        """Drop later rounds."""
        self.tables.keep(n_rounds)


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """Rows of a batch at which an edge ends, by edge type; their features."""

    n_rows: int
    by_type: list[IntArray]
    features: list[Any]

    @classmethod
    def of(cls, batch: Batch, rows: IntArray, n_types: int, X: Any) -> EdgeRows:
        """Sort ``rows`` by type; ``X`` has the features of every row."""
        if batch.edge_types is None:
            groups = [rows]
        else:
            groups = [rows[batch.edge_types[rows] == k] for k in range(n_types)]
        return cls(batch.n_rows, groups, [take_rows(X, group) for group in groups])

    def spread(self, parts: list[FloatArray], table: tuple[int, ...]) -> FloatArray:
        """Return (rows, *table) from (rows of one type, outputs) each; 0 where no edge ends."""
        edge = np.zeros((self.n_rows, int(np.prod(table))), dtype=parts[0].dtype)
        for rows, part in zip(self.by_type, parts, strict=True):
            edge[rows] = part
        return edge.reshape(self.n_rows, *table)


class EdgeFunctionBlock(Block):
    """Edge scores by functions of the features: an output per table entry, a function per type.

    ``sample`` (number) -> (rows,) bool or None: the rows that round looks at.
    """

    parts = ("each_edge",)

    def __init__(
        self,
        functions: list[AdditiveFunction],
        rows: EdgeRows,
        followed: list[EdgeRows],
        sample: Sampler = lambda number: None,
    ) -> None:
        self.functions, self.rows, self.followed = functions, rows, followed
        self.sample = sample

    def propose(self, evaluation: Evaluation, number: int) -> Proposal:
        """Fit one function per table entry, on the rows where an edge of its type ends."""
        gradient, curvature = evaluation.gradient["edge"], evaluation.curvature["edge"]
        table, sampled = gradient.shape[1:], self.sample(number)
        additions = []
        for function, rows in zip(self.functions, self.rows.by_type, strict=True):
            slope, curved = _flat(gradient[rows]), _flat(curvature[rows])
            _leave_out(None if sampled is None else sampled[rows], slope, curved)
            additions.append(function.propose(slope, curved, number))

        def accept(step: float) -> None:
            for addition in additions:
                addition.accept(step)

        followed: list[Changes] = [
            {"edge": rows.spread([addition.followed[k] for addition in additions], table)}
            for k, rows in enumerate(self.followed)
        ]
        return Proposal(
            {"edge": self.rows.spread([addition.delta for addition in additions], table)},
            followed,
            accept,
        )

    def mark(self, n_rounds: int) -> None:
        """Do nothing: functions keep all rounds."""

    def keep(self, n_rounds: int) -> None:
        """Drop later rounds."""
        for function in self.functions:
            function.keep(n_rounds)

    def release(self) -> None:
        """Let go of the rows of all functions."""
        for function in self.functions:
            function.release()


class LinearEdgeBlock(Block):
    """Edge scores linear in the features; weights (types, features + 1, table entries).

    ``total`` adds up sums over rows, where other workers have rows too.
    """

    parts = ("each_edge",)

    def __init__(
        self,
        weights: Tables,
        rows: EdgeRows,
        followed: list[EdgeRows],
        total: Callable[[npt.NDArray[Any]], npt.NDArray[Any]] = lambda array: array,
    ) -> None:
        self.weights, self.rows, self.followed, self.total = weights, rows, followed, total

    def propose(self, evaluation: Evaluation, number: int) -> Proposal:
        """Minimise the quadratic model over the weights of each type."""
        gradient, curvature = evaluation.gradient["edge"], evaluation.curvature["edge"]
        table, weights = gradient.shape[1:], self.weights.tables["weights"]
        delta = np.stack(
            [
                newton_step(
                    features,
                    _flat(gradient[rows]),
                    _flat(curvature[rows]),
                    weights_of_type,
                    self.weights.l2,
                    self.total,
                )
                for features, rows, weights_of_type in zip(
                    self.rows.features, self.rows.by_type, weights, strict=True
                )
            ]
        )

        def scored(rows: EdgeRows) -> Changes:
            parts = [x @ change for x, change in zip(rows.features, delta, strict=True)]
            return {"edge": rows.spread(parts, table)}

        return Proposal(
            scored(self.rows),
            [scored(rows) for rows in self.followed],
            lambda step: self.weights.accept({"weights": delta}, step),
            lambda step: self.weights.penalty({"weights": delta}, step),
        )

    def penalty(self) -> float:
        """Return the penalty on the weights."""
        return self.weights.penalty()

    def mark(self, n_rounds: int) -> None:
        """Note the round."""
        self.weights.mark(n_rounds)

    def keep(self, n_rounds: int) -> None:
        """Drop later rounds."""
        self.weights.keep(n_rounds)


class JointBlock(Block):
    """Two blocks that move at once, with one step, and so share an evaluation.

    Each proposes from its own curvature; see `crfx.objectives.base.Objective` on why that is safe.
    """

    def __init__(self, first: Block, second: Block) -> None:
        self.both = (first, second)
        self.parts = first.parts + second.parts

    def propose(self, evaluation: Evaluation, number: int) -> Proposal:
        """Propose what both propose."""
        one, other = (block.propose(evaluation, number) for block in self.both)

        def accept(step: float) -> None:
            one.accept(step)
            other.accept(step)

        return Proposal(
            {**one.changes, **other.changes},
            [{**a, **b} for a, b in zip(one.followed, other.followed, strict=True)],
            accept,
            lambda step: one.penalty(step) + other.penalty(step),
        )

    def penalty(self) -> float:
        """Return the penalty of both."""
        return sum(block.penalty() for block in self.both)

    def mark(self, n_rounds: int) -> None:
        """Note the round."""
        for block in self.both:
            block.mark(n_rounds)

    def keep(self, n_rounds: int) -> None:
        """Drop later rounds."""
        for block in self.both:
            block.keep(n_rounds)

    def release(self) -> None:
        """Let go of the rows of both."""
        for block in self.both:
            block.release()


# The blocks of a model ----------------------------------------------------------------------------


def boosted_blocks(
    model: Model, batch: Batch, followed: list[Batch], sample: Sampler
) -> list[Block]:
    """Return what boosting moves in turn: nodes; edges, with start and end scores.

    ``followed`` batches have their scores kept up to date.
    """
    node = model.growing[0]
    _check_categories(batch.X)
    node.bind(batch.X, [other.X for other in followed], current())
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
            with_constant(other.X) if linear else other.X,
        )
        for other in (batch, *followed)
    ]
    if linear:
        assert model.edge is not None
        return LinearEdgeBlock(model.edge, rows[0], rows[1:], current().sum)
    functions = model.growing[1:]
    for kind, function in enumerate(functions):
        train, *others = (each.features[kind] for each in rows)
        _check_categories(train)
        function.bind(train, others, current())
    return EdgeFunctionBlock(functions, rows[0], rows[1:], sample)


def _check_categories(X: Any) -> None:
    """Raise ValueError if X has categories and some worker has no rows, as XGBoost would."""
    workers = current()
    if workers.size == 1 or not is_frame(X):
        return
    names = [name for name in X.columns if is_categorical(X[name])]
    empty = [rank for rank, n_rows in enumerate(workers.gather(len(X))) if not n_rows]
    if names and empty:
        raise ValueError(
            f"column {str(names[0])!r} of X has categories, and worker {empty[0]} has no rows to "
            "grow trees on: use fewer workers, or encode categories as numbers"
        )


# Samplers: what a round looks at ------------------------------------------------------------------


def instance_sampler(share: float, draw_seed: Callable[[], int], batch: Batch) -> Sampler:
    """Return a sampler of whole instances, a ``share`` of them in every round."""
    if share == 1.0:
        return lambda number: None
    seed, lengths = draw_seed(), batch.lengths
    n_all, begin = place(current(), len(lengths))

    def rows(number: int) -> npt.NDArray[np.bool_]:
        random = np.random.default_rng([seed, number])
        chosen = random.random(n_all)[begin : begin + len(lengths)] < share
        return np.repeat(chosen, lengths)

    return rows


def row_sampler(share: float, draw_seed: Callable[[], int], n_rows: int) -> Sampler:
    """Return a sampler of rows, a ``share`` of them in every round."""
    if share == 1.0:
        return lambda number: None
    seed = draw_seed()
    _, begin = place(current(), n_rows)

    def rows(number: int) -> npt.NDArray[np.bool_]:
        # One draw per row: those of workers before are skipped, not drawn.
        bits = np.random.PCG64([seed, number]).advance(begin)
        return np.random.Generator(bits).random(n_rows) < share

    return rows
