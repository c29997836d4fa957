"""F^k(labels before, window of x): boosted trees that may split on either (Dietterich 2004)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import _core
from crfx.batch import Batch
from crfx.features.tree_rows import WindowView, category_flags, tree_rows
from crfx.messages import shown
from crfx.potentials.base import Potential, PotentialShape
from crfx.potentials.tree_arrays import NAMES, TreeArrays, join
from crfx.potentials.tree_shap import SHAP, context_terms
from crfx.scores import FloatArray, IntArray
from crfx.state import State
from crfx.structures import Chain, Forest
from crfx.terms import Names, Terms
from crfx.workers import Workers

Array32 = npt.NDArray[np.float32]
Readable: TypeAlias = tuple[_core.FeatureRows, npt.NDArray[np.uint8]]
"""A batch as trees read it: its rows, and (rows,) 1 where labels come before."""

MOST_LEAVES = 2**31 - 1
"""The largest number of leaves that the core counts; no tree has as many."""
MOST_NEIGHBOURS, MOST_READ_NEIGHBOURS = 1000, 100_000
"""The widest side of a window in training and in a file: a neighbour adds features to each row."""
_JOINING = RLock()
"""Held while rounds are joined, which the first of many predicting threads does."""


@dataclass(frozen=True)
class ContextLearner:
    """Settings of growth: at most ``max_leaves`` leaves, the best split first.

    ``trimming`` is the share of a tree's absolute gradient whose rows are not searched; leaves are
    fitted to all rows.  Each node searches a ``column_share`` of the columns, labels before among
    them, drawn by ``seed`` and round.
    """

    max_leaves: int = 8
    reg_lambda: float = 0.0
    min_child_weight: float = 0.0
    trimming: float = 0.0
    column_share: float = 1.0
    seed: int = 0


@dataclass(frozen=True, eq=False)
class ContextShape:
    """Shape of the scores: ``n_labels`` labels after ``order`` others, from a feature window."""

    n_labels: int
    order: int
    window: tuple[int, int] = (0, 0)
    is_sparse: bool = False

    def n_columns(self, n_features: int) -> int:
        """Return the number of columns of the window; see `crfx.features.tree_rows`."""
        width = sum(self.window) + 1
        return width * (n_features + (self.is_sparse and width > 1))

    def check_kind(self, batch: Batch) -> None:
        """Raise ValueError if a window over the features of ``batch`` has other columns."""
        if any(self.window) and batch.n_rows and sparse.issparse(batch.X) != self.is_sparse:
            kinds = ("dense", "sparse") if self.is_sparse else ("sparse", "dense")
            raise ValueError(
                f"X is {kinds[0]}, but the model was fitted on {kinds[1]} features, and its window "
                "tells in another way there what lies outside of an instance: use one kind"
            )


def parse_window(window: Any) -> tuple[int, int]:
    """Read the argument ``window`` of TreeCRF: return (left, right)."""
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


@dataclass(frozen=True, eq=False)
class Slopes:
    """Gradient and curvature of F.

    ``edge`` (rows, K, ..., K) counts where labels come before, ``node`` (rows, K) where none do.
    Without a curvature it is 1, times the weight of the row.
    """

    edge: Array32
    node: Array32
    edge_curvature: Array32 | None = None
    node_curvature: Array32 | None = None
    weights: Array32 | None = None


@dataclass(eq=False)
class ContextTrees(Potential):
    """A sum of rounds, each with one tree per label.

    ``bind`` reads a training batch and batches to follow; ``propose`` grows a round.

    With workers, the cuts of bins and the sums that trees grow by are those of all rows, however
    rows are shared out.  In a round each worker sends 16 bytes * labels * (leaves - 1) *
    (bins + 2 * labels**order), in 2 * leaves messages for up to 16 labels at once: a column has up
    to 255 bins, and one for missing values.  With a ``column_share`` below one half it sends that
    share of the bins, twice.  Trimming adds 20 messages, and 4 kB per label.  Cuts are computed
    once: 16 bytes per value of a column, or 0.2 to 2 MB where these are many.
    """

    kind: ClassVar = "context"
    takes_labels: ClassVar = True
    method: ClassVar = SHAP
    shape: ContextShape
    learner: ContextLearner = ContextLearner()
    n_jobs: int = 1
    _rounds: list[TreeArrays] = field(default_factory=list)
    _bound: Readable | None = None
    _bins: _core.Bins | None = None
    _followed: list[Readable] = field(default_factory=list)
    _workers: Workers | None = None
    _ready: tuple[TreeArrays, _core.ContextTrees] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_ready": None}  # the core quickly makes it again

    def to_state(self, state: State, name: str) -> None:
        """Write the trees and the window that they see."""
        window, is_sparse = list(self.shape.window), bool(self.shape.is_sparse)
        state.values["context"] = {"window": window, "is_sparse": is_sparse}
        for part in NAMES:
            state.put(f"{name}.{part}", getattr(self.trees, part))

    @classmethod
    def from_state(cls, state: State, name: str, shape: PotentialShape) -> Self:
        """Read and check what `to_state` wrote."""
        values = state.nested(state.values["context"])
        left, right = values.values["window"]
        most = MOST_READ_NEIGHBOURS
        if not all(type(side) is int and 0 <= side <= most for side in (left, right)):
            raise ValueError(f"it has a window of {left} and {right} neighbours")
        is_sparse = values.truth("is_sparse")
        context = ContextShape(shape.n_outputs, shape.order, (left, right), is_sparse)
        trees = TreeArrays(*(state.array(f"{name}.{part}") for part in NAMES))
        trees.check(context.n_columns(shape.n_features), context.n_labels, context.order)
        function = cls(context, _rounds=[trees])
        if shape.n_rounds not in (None, function.n_rounds):
            raise ValueError(f"its trees are not those of {shape.n_rounds} rounds")
        return function

    def __post_init__(self) -> None:
        self.n_outputs = self.shape.n_labels

    @property
    def n_rounds(self) -> int:
        """The number of rounds."""
        return sum(part.n_trees for part in self._rounds) // self.shape.n_labels

    @property
    def trees(self) -> TreeArrays:
        """All trees, those of the first round first."""
        with _JOINING:
            if len(self._rounds) != 1:
                self._rounds = [join(self._rounds)]
            return self._rounds[0]

    def _native(self) -> _core.ContextTrees:
        """Return all trees as the core walks them; kept until rounds change."""
        with _JOINING:
            trees = self.trees
            if self._ready is None or self._ready[0] is not trees:
                self._ready = trees, self._bound_trees(trees)
            return self._ready[1]

    def _bound_trees(self, trees: TreeArrays) -> _core.ContextTrees:
        asked = {name: getattr(trees, name) for name in NAMES if name not in ("gains", "weights")}
        return _core.ContextTrees(**asked, n_labels=self.shape.n_labels, order=self.shape.order)

    def bind(
        self,
        batch: Batch,
        structure: Chain | Forest,
        followed: list[Batch],
        workers: Workers | None = None,
    ) -> None:
        """Read the training batch, and batches whose scores are kept up to date."""
        self._bound = self._readable(batch, structure)
        flags, gap = category_flags(batch.X), max(self.shape.window)
        self._bins = _core.Bins(self._bound[0], flags, self.n_jobs, workers, overlap=gap)
        self._workers = workers
        self._followed = [self._readable(other, structure) for other in followed]

    def _readable(self, batch: Batch, structure: Chain | Forest) -> Readable:
        self.shape.check_kind(batch)
        has_context = np.zeros(batch.n_rows, np.uint8)
        has_context[structure.edge_rows(batch)] = 1
        return tree_rows(batch.X, batch.lengths, *self.shape.window), has_context

    def release(self) -> None:
        """Forget the batches."""
        self._bound, self._bins, self._followed, self._workers = None, None, [], None

    def propose(self, slopes: Slopes, chosen: npt.NDArray[np.int32], number: int) -> GrownRound:
        """Grow round ``number`` on the ``chosen`` rows."""
        assert self._bound is not None
        assert self._bins is not None
        learner = self.learner
        grown = _core.grow_context_trees(
            self._bins,
            n_labels=self.shape.n_labels,
            order=self.shape.order,
            has_context=self._bound[1],
            edge=_flat(slopes.edge),
            edge_curvature=_flat(slopes.edge_curvature),
            node=_flat(slopes.node),
            node_curvature=_flat(slopes.node_curvature),
            weights=slopes.weights,
            chosen=chosen,
            max_leaves=min(learner.max_leaves, MOST_LEAVES),
            l2=learner.reg_lambda,
            min_child_weight=learner.min_child_weight,
            trimming=learner.trimming,
            column_share=learner.column_share,
            seed=_round_seed(learner.seed, number),
            n_threads=self.n_jobs,
            workers=self._workers,
        )
        return GrownRound(self, TreeArrays(*grown), self._bound, self._followed)

    def accept(self, trees: TreeArrays) -> None:
        """Keep a round."""
        self._rounds.append(trees)

    def keep(self, n_rounds: int) -> None:
        """Drop the rounds after the first ``n_rounds``."""
        if n_rounds < self.n_rounds:
            self._rounds = [self.trees.between(0, n_rounds * self.shape.n_labels)]

    def rounds_alone(self) -> Iterator[ContextTrees]:
        """Yield every round as a function of its own."""
        trees, size = self.trees, self.shape.n_labels
        for begin in range(0, trees.n_trees, size):
            rounds = [trees.between(begin, begin + size)]
            yield ContextTrees(self.shape, self.learner, self.n_jobs, rounds)

    def copy(self, learner: ContextLearner) -> ContextTrees:
        """Return the same rounds, to be followed by those of another learner."""
        return ContextTrees(self.shape, learner, self.n_jobs, [self.trees])

    def with_outputs(self, places: IntArray, n_outputs: int) -> ContextTrees:
        """Return the same rounds with more labels: old label k becomes ``places[k]``.

        A new label scores 0, and as the label before it counts as "none".
        """
        shape = replace(self.shape, n_labels=n_outputs)
        trees = self.trees.with_labels(places, n_outputs)
        return ContextTrees(shape, self.learner, self.n_jobs, [trees])

    def parts(
        self, batch: Batch, structure: Chain | Forest, n_rounds: int | None = None
    ) -> dict[str, FloatArray]:
        """Return "node" (rows, K) and "edge" (rows, K, ..., K) scores of the first rounds.

        "edge" is 0 where no labels come before, "node" elsewhere.
        O(rows * trees * (depth + contexts)), and trees * leaves * contexts the first time.
        """
        n_labels, order = self.shape.n_labels, self.shape.order
        node = np.zeros((batch.n_rows, n_labels), np.float32)
        edge = np.zeros((batch.n_rows, *(n_labels,) * (order + 1)), np.float32)
        bound = self._readable(batch, structure)
        n_rounds = self.n_rounds if n_rounds is None else min(n_rounds, self.n_rounds)
        self._add(self._native(), n_rounds * n_labels, bound, 1.0, node=node, edge=edge)
        return {"node": node, "edge": edge}

    def scores_after(self, batch: Batch, structure: Chain | Forest, before: IntArray) -> FloatArray:
        """Return (rows, K) the scores of edges from the labels ``before`` (rows, order).

        They are 0 where there are none (-1).
        """
        scores: FloatArray = np.zeros((batch.n_rows, self.shape.n_labels), np.float32)
        rows = np.flatnonzero((before >= 0).all(axis=1))
        edge = self.parts(batch, structure)["edge"]
        scores[rows] = edge[(rows, *before[rows].T)]
        return scores

    def explained_rows(
        self,
        batch: Batch,
        rows: IntArray,
        before: IntArray,
        names: Names,
        labels: Sequence[Any],
    ) -> list[Terms]:
        """Return F of some rows as sums of SHAP values, after the labels ``before`` of all rows."""
        self.shape.check_kind(batch)
        view = WindowView(batch.X, batch.lengths, *self.shape.window)
        return context_terms(self.trees, view, before, labels, rows, names)

    def add(self, trees: TreeArrays, bound: Readable, step: float, **scores: FloatArray) -> None:
        """Add ``step`` times the scores of trees to those of ``node`` and ``edge``, in place."""
        self._add(self._bound_trees(trees), trees.n_trees, bound, step, **scores)

    def _add(
        self,
        native: _core.ContextTrees,
        n_trees: int,
        bound: Readable,
        step: float,
        *,
        node: FloatArray | None = None,
        edge: FloatArray | None = None,
    ) -> None:
        edge, node = _flat(edge), _flat(node)
        native.add_scores(n_trees, *bound, step=step, edge=edge, node=node, n_threads=self.n_jobs)


@dataclass(frozen=True, eq=False)
class GrownRound:
    """The trees of one round, which are not kept yet."""

    function: ContextTrees
    trees: TreeArrays
    bound: Readable
    followed: list[Readable]

    def adders(self, bound: Readable) -> dict[str, Callable[[FloatArray, float], None]]:
        """Return functions, by name of the scores, that add a step of the round in place."""
        return {
            "node": lambda node, step: self.function.add(self.trees, bound, step, node=node),
            "edge": lambda edge, step: self.function.add(self.trees, bound, step, edge=edge),
        }

    def accept(self, step: float) -> None:
        """Keep the round with the step that was taken."""
        self.function.accept(self.trees.scaled(step))


def _round_seed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])


def _flat(array: FloatArray | None) -> Any:
    """Return a view with one axis; None for None."""
    if array is None:
        return None
    assert array.flags.c_contiguous
    return array.reshape(-1)
