"""Feature induction: which conjunctions of features would raise the likelihood most.

McCallum 2003, "Efficiently inducing features of conditional random fields", section 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.features.conjunctions import Conjunctions, Pairs, canonical, column_keys, pairs_in
from crfx.features.matrix import take_rows
from crfx.inference.sum_product import summed
from crfx.model.flat_parameters import (
    add_conjunctions,
    get_weights,
    linear_functions,
    set_weights,
)
from crfx.model.model import Model
from crfx.potentials.numbers import as_numbers
from crfx.scores import IntArray
from crfx.trainers.base import TrainingState
from crfx.trainers.lbfgs import Course, LBFGSSettings, course_of, descend, lbfgs_state
from crfx.trainers.parametric import (
    Iterations,
    ParameterTrainer,
    ParametricObjective,
    ParametricTask,
)

Array64 = npt.NDArray[np.float64]

MOST_ENTRIES = 50_000
"""Entries, of columns times labels, whose gains are found at once: they stay in the cache."""
NEWTON_STEPS = 30
ENOUGH = 1e-8
"""A weight is good once another Newton step would raise its gain by less."""
LARGEST_CHANGE = 30.0
"""Weights stop where a score changes by so much: without penalties they may have no maximum."""
LEAST_SLOPE = 1e-3
"""Pairs are screened by labels whose probability at a position is wrong by more."""
LONGEST_STEP = 2.0
"""Of the Newton step that screens a pair, in units of scores: far away its parabola is wrong."""


@dataclass(frozen=True)
class FeatureInduction:
    """Settings of feature induction: conjunctions added to a `LinearCRF` (McCallum 2003).

    A round takes the pairs of features, conjunctions of earlier rounds among them, that occur
    together where the model errs or is unsure, and adds those that gain most.  With the other
    weights held fixed, p_t the marginals, w_t the sample weights, and positions taken for
    independent, a feature g with weight mu for label y lowers the objective by

        G(mu) = sum_t w_t [mu g_t 1(y_t = y) - log(1 + p_t(y) (exp(mu g_t) - 1))]
                - l1 |mu| - l2 mu^2,

    which is concave; the gain is its maximum, for the best label.  It is exact where there are no
    edges.  Positions whose label is unknown do not count.

    Cost of a round: O(pairs of features at unsure positions), and O(occurrences of the candidates
    times their labels) for each of some ten Newton steps; then weights are trained further.

    Parameters
    ----------
    rounds : int
        How often conjunctions are added; fewer where none is good enough.  To those of an
        ``init_model`` that is trained further, so many rounds are added.
    per_round : int
        Conjunctions added in a round at most.
    candidates : int
        Conjunctions whose gain is computed in a round: the pairs of features that look best where
        the model errs or is unsure.
    min_count : float
        Times that a pair occurs at such positions at least, sample weights counted.
    min_gain : float
        What a conjunction is to gain at least: of the log-likelihood, less the penalties.
    confidence : float
        The model is unsure where the true label has a lower probability.
    iterations : int
        Iterations of L-BFGS before every round; after the last there are up to ``max_iter``.
        Early stopping counts all of them alike and ends induction too.
    """

    rounds: int = 10
    per_round: int = 500
    candidates: int = 5000
    min_count: float = 3
    min_gain: float = 1.0
    confidence: float = 0.95
    iterations: int = 20


def settings_of(option: int | FeatureInduction | None) -> FeatureInduction | None:
    """Return the settings of induction for so many rounds; None: no induction."""
    if option is None or isinstance(option, FeatureInduction):
        return option
    return FeatureInduction(rounds=option)


def check_inducible(X: Any) -> None:
    """Raise ValueError where conjunctions of the columns of X cannot be chosen."""
    if not sparse.issparse(X):
        raise ValueError(
            "feature_induction needs sparse features (CSR, dicts, texts or a Template): where X is "
            "dense every column occurs with every other at every position, which suggests nothing"
        )


class Induction(ParameterTrainer):
    """Trains a linear model by L-BFGS, and adds conjunctions to it in between."""

    def __init__(
        self,
        model: Model,
        task: ParametricTask,
        settings: LBFGSSettings,
        induction: FeatureInduction,
    ) -> None:
        super().__init__(model)
        self._task, self._settings, self._induction = task, settings, induction
        self._rows = np.flatnonzero(task.truth.labels >= 0)
        self._X = canonical(take_rows(as_numbers(task.truth.batch.X), self._rows))
        self._resumed: TrainingState | None = None
        self._course: Course | None = None
        self._n_induced = 0
        self._n_first = 0
        """How many iterations were done before this round of induction."""

    def _steps(self) -> Iterations:
        model, induction = self.model, self._induction
        if self._settings.n_left == 0:  # it was to end, and was cut off before it could
            return get_weights(model)
        while self._n_induced < induction.rounds:
            whole = self._task.objective(model)
            most = min(induction.iterations, self._settings.max_iter)
            set_weights(model, (yield from self._descend(whole, most, is_last=False)))
            more = self._chosen(whole)
            if not len(more):
                self._n_induced = induction.rounds
                break
            self._widen(more)
            self._n_induced += 1
        return (yield from self._descend(self._task.objective(model), self._settings.max_iter))

    def _descend(
        self, whole: ParametricObjective, max_iter: int, *, is_last: bool = True
    ) -> Iterations:
        resumed, self._resumed = self._resumed, None
        self._course, self._n_first = course_of(resumed), self._n_done
        if resumed is not None:
            n_done = int(resumed.numbers["in_round"])
            self._course.left = max_iter - n_done
            self._n_first -= n_done
        return descend(
            whole.rounded(),
            get_weights(self.model),
            max_iter=max_iter,
            tol=self._settings.tol,
            l1=self._settings.l1,
            finer=whole.finer().rounded() if is_last else None,
            course=self._course,
            is_last=is_last,
        )

    def state(self) -> TrainingState | None:
        """Return where training stands, the round of induction included."""
        if self._course is None:
            return self._resumed
        state = lbfgs_state(self._course, self._n_done)
        counts = {"induced": self._n_induced, "in_round": self._n_done - self._n_first}
        numbers = state.numbers | {name: float(count) for name, count in counts.items()}
        return replace(state, numbers=numbers).with_best(self.best)

    def restore(self, state: TrainingState) -> None:
        """Resume where `state` was taken."""
        self._resumed, self.best = state, state.best
        self._n_done, self._n_induced = state.n_done, int(state.numbers["induced"])

    def _chosen(self, whole: ParametricObjective) -> Conjunctions:
        """Choose new conjunctions, by the marginals of the model as it is."""
        task = self._task
        p = summed(whole.problem(get_weights(self.model)), None, None, n_jobs=task.n_jobs).node
        weights = task.truth.position_weights
        at = Positions(
            np.clip(p[self._rows].astype(np.float64), 0.0, 1.0),
            task.truth.labels[self._rows],
            np.ones(len(self._rows)) if weights is None else weights[self._rows],
            self._settings.l1,
            task.l2,
            task.observed,
        )
        known = linear_functions(self.model)[0].conjunctions or Conjunctions.of([])
        return choose(self._X, known, at, self._induction)[0]

    def _widen(self, more: Conjunctions) -> None:
        """Add conjunctions to the model, and their weights to the best parameters."""
        n_before = len(linear_functions(self.model)[0].weights)
        codes = self._task.truth.taught_labels[self._rows]
        n_new = add_conjunctions(self.model, self._X, codes, more)
        if self.best is not None:  # the weights of nodes come first
            self.best = np.insert(self.best, np.full(n_new, n_before), 0.0)


# Choosing conjunctions ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Positions:
    """The predictions at positions whose label is known: ``p`` (rows, labels), the true
    label codes and the weights; ``observed``: weights are for pairs that occur only.
    """

    p: Array64
    labels: IntArray
    weights: Array64
    l1: float = 0.0
    l2: float = 0.0
    observed: bool = True

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return int(self.p.shape[1])


def choose(
    X: Any, known: Conjunctions, at: Positions, settings: FeatureInduction
) -> tuple[Conjunctions, Array64]:
    """Return new conjunctions of the columns of X (CSR) that gain most, and their gains.

    They unite two columns or ``known`` conjunctions.  A conjunction whose values are those of a
    column that is there already brings nothing and is left out.  The gain of one is that of its
    best label.  O(pairs of features at unsure positions + Newton steps *
    occurrences of candidates * their labels).
    """
    X = canonical(X)
    wide = canonical(known.widened(X)) if len(known) else X
    proposed = Conjunctions.of(_proposed(wide, X.shape[1], known, at, settings))
    if not len(proposed):
        return proposed, np.zeros(0)
    columns = proposed.of_matrix(X).tocsc()
    new = _new(column_keys(columns), column_keys(wide))
    gain = gains(columns[:, new], at)
    order = np.argsort(-gain, kind="stable")
    order = order[gain[order] >= max(settings.min_gain, np.finfo(float).tiny)]
    order = order[: settings.per_round]
    return proposed.take(new[order]), gain[order]


def _new(keys: npt.NDArray[np.uint64], old: npt.NDArray[np.uint64]) -> IntArray:
    """Return where a key occurs for the first time, and is not among the old ones."""
    first = np.sort(np.unique(keys, return_index=True)[1])
    new: IntArray = first[~np.isin(keys[first], old)]
    return new


def _proposed(
    wide: Any, n_columns: int, known: Conjunctions, at: Positions, settings: FeatureInduction
) -> Iterator[frozenset[int]]:
    """Yield sets of columns: the best pairs where the model errs or is unsure."""
    doubt = 1.0 - at.p[np.arange(len(at.p)), at.labels]
    unsure = np.flatnonzero(doubt > 1.0 - settings.confidence)
    unsure = unsure[np.argsort(-doubt[unsure], kind="stable")]
    pairs = pairs_in(wide, unsure)
    promise = _promise(pairs, at, settings.min_count)
    atoms = known.sets()
    # A pair of a conjunction and one of its columns is nothing new.
    seen = {frozenset(columns) for columns in atoms}
    n_found = 0
    for pair in np.argsort(-promise, kind="stable"):
        if promise[pair] <= 0 or n_found == settings.candidates:
            break
        left, right = (
            frozenset((column,) if column < n_columns else atoms[column - n_columns])
            for column in (int(pairs.left[pair]), int(pairs.right[pair]))
        )
        if left | right in seen:
            continue
        seen.add(left | right)
        n_found += 1
        yield left | right


def _promise(pairs: Pairs, at: Positions, min_count: float) -> Array64:
    """Return (pairs,) the approximate gain, by the best label and one Newton step; 0: too rare."""
    n_pairs, weights = len(pairs.left), at.weights[pairs.rows]
    counts = np.bincount(pairs.which, weights, n_pairs)
    squares = np.bincount(pairs.which, weights * pairs.values.astype(np.float64) ** 2, n_pairs)
    with np.errstate(divide="ignore", invalid="ignore"):
        longest = LONGEST_STEP * np.sqrt(counts / squares)
    best = np.zeros(n_pairs)
    for label in range(at.n_labels):
        hits = at.labels == label
        slope = at.weights * (hits - at.p[:, label])
        curve = at.weights * at.p[:, label] * (1 - at.p[:, label])
        used = np.flatnonzero((np.abs(slope) > LEAST_SLOPE * at.weights)[pairs.rows])
        which, rows = pairs.which[used], pairs.rows[used]
        values = pairs.values[used].astype(np.float64)
        g = np.bincount(which, slope[rows] * values, n_pairs)
        h = np.bincount(which, curve[rows] * values**2, n_pairs) + 2 * at.l2
        g = np.maximum(np.abs(g) - at.l1, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.fmin(g / h, longest)
        gain = np.where(g > 0, g * step - h * step**2 / 2, 0.0)
        if at.observed:
            gain[np.bincount(which, hits[rows], n_pairs) == 0] = 0.0
        np.maximum(best, gain, out=best)
    best[counts < min_count] = 0.0
    return best


def gains(columns: Any, at: Positions) -> Array64:
    """Return (columns,) the gain of each by its best label; columns are CSC (rows, columns)."""
    candidates, labels = _weights_of(columns, at)
    gain = best_weights(columns, candidates, labels, at)[1]
    best = np.zeros(columns.shape[1])
    np.maximum.at(best, candidates, gain)
    return best


def _weights_of(columns: Any, at: Positions) -> tuple[IntArray, IntArray]:
    """Return (weights,) column and label of each weight that the columns would have."""
    counts = np.diff(columns.indptr)
    owner = np.repeat(np.arange(columns.shape[1]), counts)
    if not at.observed:
        used = np.flatnonzero(counts)
        return np.repeat(used, at.n_labels), np.tile(np.arange(at.n_labels), len(used))
    pairs = np.unique(owner * at.n_labels + at.labels[columns.indices])
    return np.divmod(pairs, at.n_labels)


def best_weights(
    columns: Any, candidates: IntArray, labels: IntArray, at: Positions
) -> tuple[Array64, Array64]:
    """Return the weight mu that maximises G, and G there, for every (candidate column, label).

    Newton's method, and bisection where it leaves the interval that is known to hold the maximum.
    """
    sizes = np.diff(columns.indptr)[candidates].astype(np.int64)
    weights, gains = np.zeros(len(candidates)), np.zeros(len(candidates))
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(candidates):
        before = ends[begin] - sizes[begin]
        end = max(begin + 1, int(np.searchsorted(ends, before + MOST_ENTRIES, side="right")))
        chunk = slice(begin, end)
        part = _Entries.of(columns, candidates[chunk], labels[chunk], at)
        weights[chunk], gains[chunk] = part.maximised(at.l1, at.l2)
        begin = end
    return weights, gains


@dataclass(frozen=True, eq=False)
class _Entries:
    """Entries of some columns, each for a label: values g, p of the label, truth, weights.

    Entries ``begins[k]`` to ``begins[k + 1]`` belong to weight k; each has one or more.
    """

    begins: IntArray
    owner: IntArray
    g: Array64
    p: Array64
    hit: npt.NDArray[np.bool_]
    w: Array64

    @classmethod
    def of(cls, columns: Any, candidates: IntArray, labels: IntArray, at: Positions) -> _Entries:
        starts = columns.indptr.astype(np.int64)
        sizes = starts[candidates + 1] - starts[candidates]
        begins = np.cumsum(sizes) - sizes
        owner = np.repeat(np.arange(len(candidates)), sizes)
        places = np.arange(len(owner)) + (starts[candidates] - begins)[owner]
        rows, label = columns.indices[places], labels[owner]
        g = columns.data[places].astype(np.float64)
        return cls(begins, owner, g, at.p[rows, label], at.labels[rows] == label, at.weights[rows])

    def maximised(self, l1: float, l2: float) -> tuple[Array64, Array64]:
        """Return the best weights and their gains."""
        slope = self._sum(self.w * self.g * (self.hit - self.p))
        sign = np.where(slope < 0, -1.0, 1.0)
        g = self.g * sign[self.owner]  # so that every weight is positive
        low = np.zeros(len(self.begins))
        high = LARGEST_CHANGE / np.maximum.reduceat(np.abs(g), self.begins)
        mu = low
        for _ in range(NEWTON_STEPS):
            raised = self.p * np.exp(mu[self.owner] * g)
            q = raised / (1.0 - self.p + raised)
            slope = self._sum(self.w * g * (self.hit - q)) - 2 * l2 * mu - l1
            curve = self._sum(self.w * g**2 * q * (1 - q)) + 2 * l2
            low, high = np.where(slope > 0, mu, low), np.where(slope > 0, high, mu)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = slope / curve
            inside = (mu + step > low) & (mu + step < high)
            done = (np.abs(slope * step) < ENOUGH) | (low == high)
            if done.all():
                break
            mu = np.where(done, mu, np.where(inside, mu + step, (low + high) / 2))
        change = mu[self.owner] * g
        terms = self.w * (change * self.hit - np.log1p(self.p * np.expm1(change)))
        gain = self._sum(terms) - l1 * mu - l2 * mu**2
        mu = np.where(gain > 0, mu, 0.0)
        return sign * mu, np.maximum(gain, 0.0)

    def _sum(self, entries: Array64) -> Array64:
        total: Array64 = np.add.reduceat(entries, self.begins)
        return total
