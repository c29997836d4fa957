"""Boosted trees: a function of the features with one output per label (or label tuple)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import RLock
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.features.matrix import inputs_at, is_on_disk, take_rows
from crfx.features.tree_rows import plain_rows
from crfx.potentials import tree_format, ubjson
from crfx.potentials.base import Addition, AdditiveFunction, PotentialShape
from crfx.potentials.tree_shap import SHAP, SHARE_OF_GAIN
from crfx.potentials.xgboost_learner import TreeEnsemble, XGBoostLearner, check_rows
from crfx.scores import IntArray
from crfx.state import State
from crfx.terms import Names, Terms
from crfx.workers import ALONE, Workers

Array32 = npt.NDArray[np.float32]

MOST_VALUES = 2**24
"""SHAP values that are held at a time, unless one row has more: 64 MiB."""
_JOINING = RLock()
"""Held while rounds are joined or laid out, which the first of many predicting threads does."""


class BoostedTrees(AdditiveFunction):
    """A sum of rounds, each with one tree per output.

    ``bind`` takes the training rows, and rows to follow; ``propose`` grows a round, which is kept
    with the step that was taken in the end.  XGBoost grows trees and explains them; scores come
    from our own core.  Many threads may score at the same time.

    ``raw`` is a joined model to begin with, and ``decoded`` the same as `tree_format.check` returns
    it: decoding many small trees takes longer than the rest of a first prediction.
    """

    kind: ClassVar = "trees"
    method: ClassVar = SHAP
    measure = SHARE_OF_GAIN
    _matrix: Any
    _followed: list[Any]

    def __init__(
        self,
        learner: XGBoostLearner,
        n_outputs: int,
        raw: bytes | None = None,
        decoded: dict[str, Any] | None = None,
    ) -> None:
        self.learner, self.n_outputs = learner, n_outputs
        self._rounds: list[bytes] = [] if raw is None else [raw]
        self._steps: list[float] = [] if raw is None else [1.0]
        self._forget()
        self._decoded: dict[str, Any] | None = decoded
        self._n_rounds = 0 if raw is None else tree_format.n_rounds(raw, decoded)
        self.release()

    def to_state(self, state: State, name: str) -> None:
        """Write the trees in XGBoost's format; nothing before the first round."""
        if (raw := self.raw) is not None:
            state.put_blob(name, raw)

    @classmethod
    def from_state(cls, state: State, name: str, shape: PotentialShape) -> Self:
        """Read and check the trees."""
        raw, decoded = state.blob(name), None
        if raw is not None:
            decoded = tree_format.check(
                raw,
                n_features=shape.n_features,
                n_outputs=shape.n_outputs,
                n_categories=shape.categories,
            )
        trees = cls(XGBoostLearner(), shape.n_outputs, raw, decoded)
        if shape.n_rounds not in (None, trees.n_rounds):
            raise ValueError(f"the trees {name} are not those of {shape.n_rounds} rounds")
        return trees

    def bind(self, X: Any, followed: list[Any], workers: Workers = ALONE) -> None:
        """Quantise the training rows, and prepare the rows whose scores are kept up to date.

        Bins are those of the rows of all ``workers``, and so are trees where XGBoost's collective
        joins the workers.
        """
        for rows in (X, *followed):
            check_rows(rows, workers)
        self._matrix = self.learner.training_matrix(X, workers)
        self._followed = [
            other if is_on_disk(other) else self.learner.matrix(other) for other in followed
        ]

    def release(self) -> None:
        """Forget the training rows."""
        self._matrix, self._followed = None, []

    def propose(self, gradient: Array32, curvature: Array32, number: int) -> Addition:
        """Grow round ``number``: (rows, outputs) gradient and curvature of the training rows."""
        grown = self.learner.grow(self._matrix, gradient, curvature, number)
        raw = grown.raw()  # and not XGBoost's booster, which holds more than the scores do
        return Addition(
            grown.training_scores(self._matrix),
            [self._scored(grown, other) for other in self._followed],
            lambda step: self._accept(raw, step),
        )

    def _scored(self, grown: TreeEnsemble, rows: Any) -> Array32:
        """Return (rows, outputs) of one round on rows that are followed."""
        if not is_on_disk(rows):
            return grown.scores(rows)
        scores = np.zeros((len(rows), self.n_outputs), dtype=np.float32)
        for place, chunk in rows.chunks():
            scores[place] = grown.scores(self.learner.matrix(chunk))
        return scores

    def _accept(self, raw: bytes, step: float) -> None:
        self._rounds.append(raw)
        self._steps.append(step)
        self._n_rounds += 1
        self._forget()

    def _forget(self) -> None:
        """Drop what was computed from the rounds before a change."""
        self._scorer: TreeScorer | None = None
        self._ensemble: TreeEnsemble | None = None
        self._decoded = None

    def __getstate__(self) -> dict[str, Any]:
        # The scorer belongs to the core, and is quickly made again.
        return self.__dict__ | {"_scorer": None, "_decoded": None}

    @property
    def raw(self) -> bytes | None:
        """The joined model in XGBoost's format; None before the first round."""
        with _JOINING:
            if len(self._rounds) > 1 or self._steps not in ([], [1.0]):
                self._rounds, self._steps = [tree_format.join(self._rounds, self._steps)], [1.0]
            return self._rounds[0] if self._rounds else None

    @property
    def n_rounds(self) -> int:
        """The number of rounds."""
        return self._n_rounds

    def keep(self, n_rounds: int) -> None:
        """Drop the rounds after the first ``n_rounds``."""
        raw = self.raw
        if raw is not None and n_rounds < self._n_rounds:
            raw = tree_format.first_rounds(raw, n_rounds)
        self._rounds = [] if raw is None or not n_rounds else [raw]
        self._steps = [1.0] * len(self._rounds)
        self._n_rounds = min(self._n_rounds, n_rounds)
        self._forget()

    @classmethod
    def without_rounds(cls, learner: XGBoostLearner, n_outputs: int, seed: int) -> BoostedTrees:
        """Return trees to be grown by a learner with a seed."""
        return cls(replace(learner, seed=seed), n_outputs)

    def copy(self, learner: XGBoostLearner, seed: int) -> BoostedTrees:
        """Return the same rounds, to be followed by those of another learner."""
        return BoostedTrees(replace(learner, seed=seed), self.n_outputs, self.raw)

    def rounds_alone(self) -> Iterator[BoostedTrees]:
        """Yield every round as a function of its own."""
        raw = self.raw
        for raw_round in () if raw is None else tree_format.rounds_alone(raw):
            yield BoostedTrees(self.learner, self.n_outputs, raw_round)

    def with_outputs(self, places: IntArray, n_outputs: int) -> BoostedTrees:
        """Return the rounds with more outputs: output k becomes ``places[k]``, new ones are 0."""
        raw = self.raw
        if raw is not None:
            raw = tree_format.with_outputs(raw, places, n_outputs)
        return BoostedTrees(self.learner, n_outputs, raw)

    def ensemble(self) -> TreeEnsemble | None:
        """Return the trees, ready to be explained; None before the first round."""
        with _JOINING:
            if self._ensemble is None and (raw := self.raw) is not None:
                self._ensemble = TreeEnsemble.of(raw, self.n_outputs, self.learner.n_jobs)
            return self._ensemble

    def explained(self, X: Any, names: Names) -> Iterator[Terms]:
        """Yield the scores of every row of X as sums of SHAP values and the expected score."""
        ensemble, n_rows, n_columns = self.ensemble(), X.shape[0], X.shape[1]
        if ensemble is None:
            yield from (Terms.nothing(self.n_outputs) for _ in range(n_rows))
            return
        at_once = max(1, MOST_VALUES // (self.n_outputs * (n_columns + 1)))
        for begin in range(0, n_rows, at_once):
            part = take_rows(X, np.arange(begin, min(begin + at_once, n_rows)))
            values = ensemble.contributions(self.learner.matrix(part))
            for row, row_values in enumerate(values):
                columns = np.flatnonzero(row_values[:, :-1].any(axis=0))
                features = [names(column) for column in columns.tolist()]
                inputs, shares = inputs_at(part, row, columns), row_values[:, columns].T
                yield Terms.of(row_values[:, -1], columns, features, inputs, shares)

    def strengths(self) -> npt.NDArray[np.float64]:
        """Return (features,) the gains of the splits at each; none before the first round."""
        ensemble = self.ensemble()
        return np.zeros(0) if ensemble is None else ensemble.gains()

    def _ready(self) -> TreeScorer | None:
        """Return the trees, ready to score; None before the first round."""
        if self._scorer is None:
            with _JOINING:
                if self._scorer is None and (raw := self.raw) is not None:
                    self._scorer = TreeScorer(raw, self.n_outputs, self._decoded)
                    self._decoded = None  # of no further use, and larger than the trees laid out
        return self._scorer

    def use_threads(self, n_jobs: int) -> None:
        """Predict on ``n_jobs`` threads from now on."""
        if n_jobs != self.learner.n_jobs:
            self.learner = replace(self.learner, n_jobs=n_jobs)
            if self._ensemble is not None:
                self._ensemble.use_threads(n_jobs)

    def scores(self, X: Any, n_rows: int, n_rounds: int | None = None) -> Array32:
        """Return (rows, outputs) of the first ``n_rounds`` rounds, by default all."""
        scorer = self._ready()
        if scorer is None or not n_rows or n_rounds == 0:
            return np.zeros((n_rows, self.n_outputs), dtype=np.float32)
        return scorer.scores(X, self.learner.n_jobs, n_rounds)


_PER_NODE: dict[str, tuple[str, type[np.generic]]] = {
    "left": ("left_children", np.int32),
    "right": ("right_children", np.int32),
    "features": ("split_indices", np.int32),
    "values": ("split_conditions", np.float32),
    "missing_left": ("default_left", np.uint8),
}
"""By the core's name of an array: XGBoost's name, and the type."""


class TreeScorer:
    """All rounds, laid out to be walked by the core, with the same bits as XGBoost's scores.

    XGBoost makes a matrix of every input, which for one sentence takes as long as the walks.
    Nothing changes after construction: any number of threads may score.

    ``raw`` is XGBoost's binary format, which `crfx.potentials.tree_format` has checked or XGBoost
    has written; ``decoded`` is the same where it is decoded already.  O(nodes).
    """

    def __init__(self, raw: bytes, n_outputs: int, decoded: dict[str, Any] | None = None) -> None:
        learner = (ubjson.decode(raw) if decoded is None else decoded)["learner"]
        part = learner["gradient_booster"]["model"]
        self.n_outputs = n_outputs
        self._bounds = np.asarray(part["iteration_indptr"], np.int64)
        self._native = _core.BoostedTrees(
            **_arrays(part),
            n_features=int(learner["learner_model_param"]["num_feature"]),
            n_outputs=n_outputs,
        )

    def scores(self, X: Any, n_jobs: int, n_rounds: int | None = None) -> Array32:
        """Return (rows, outputs): the sums of the trees of the first ``n_rounds`` rounds.

        X is an array, CSR matrix or data frame; NaN and absent entries are missing.
        O(rows * trees * depth).
        """
        last = len(self._bounds) - 1
        if n_rounds is not None:
            last = min(n_rounds, last)
        scores = np.empty((X.shape[0], self.n_outputs), np.float32)
        self._native.score(plain_rows(X), int(self._bounds[last]), scores.reshape(-1), n_jobs)
        return scores


def _arrays(part: dict[str, Any]) -> dict[str, Any]:
    """Return the trees of XGBoost's format one after the other, as the core takes them."""
    trees = part["trees"]
    sizes = [len(tree["left_children"]) for tree in trees]
    starts = np.cumsum([0, *sizes]).astype(np.int64)
    arrays = {
        name: _joined([tree[xgboost_name] for tree in trees], dtype)
        for name, (xgboost_name, dtype) in _PER_NODE.items()
    }
    arrays["missing_left"] = (arrays["missing_left"] == 1).astype(np.uint8)  # as XGBoost reads it
    outputs = np.asarray(part["tree_info"], np.int32)
    return {"starts": starts, "outputs": outputs, **arrays, **_sets(trees, starts)}


def _sets(trees: list[dict[str, Any]], starts: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return the sets of categories that go right, by node."""
    sets = np.full(starts[-1], -1, np.int32)
    category_sets: list[Any] = []
    for tree, start in zip(trees, starts, strict=False):
        if not len(tree["categories_nodes"]):
            continue
        begins, sizes = tree["categories_segments"], tree["categories_sizes"]
        for node, begin, size in zip(tree["categories_nodes"], begins, sizes, strict=True):
            sets[start + node] = len(category_sets)
            category_sets.append(tree["categories"][begin : begin + size])
    set_starts = np.cumsum([0, *map(len, category_sets)]).astype(np.int64)
    categories = _joined(category_sets, np.int32)
    return {"sets": sets, "set_starts": set_starts, "categories": categories}


def _joined(parts: list[Any], dtype: type[np.generic]) -> npt.NDArray[Any]:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)
