"""Attribution: the scores of one instance as sums over features, with and without neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.batch import Batch
from crfx.explanation import ExplainedEdge, ExplainedPosition, Explanation
from crfx.features.matrix import take_rows
from crfx.inference.problem import Problem
from crfx.inference.window_tree import side_messages
from crfx.messages import shown
from crfx.model.model import Model
from crfx.model.ranking_model import RankingModel
from crfx.potentials.linear import WEIGHT_TIMES_VALUE, weighted_terms
from crfx.potentials.numbers import with_constant
from crfx.prediction.predictor import Scored
from crfx.scores import FloatArray, IntArray
from crfx.structures import Chain, Forest
from crfx.structures.ranking import best_orders
from crfx.terms import Names, Terms

Array64 = npt.NDArray[np.float64]


def explained_labelling(
    predictor: Scored, batch: Batch, positions: Any, classes: npt.NDArray[Any], names: Names
) -> Explanation:
    """Return why some ``positions`` (None: all) of one instance are labelled as they are."""
    problem = predictor.problem(batch)
    rows = checked_positions(positions, batch.n_rows)
    codes = predictor.labels_of(problem)
    parts = ExplainedParts(predictor.model, batch, rows, codes, classes)
    from_before = parts.scores_by_labels_before()
    scores = _node_scores(predictor.model, problem) + from_before
    messages, marginals = _messages(problem, from_before), predictor.sums(problem).node
    explained = []
    for row, node, edge in zip(rows, parts.nodes(names), parts.edges(names), strict=True):
        allowed = None if batch.allowed is None else batch.allowed[row]
        explained.append(
            ExplainedPosition(
                **vars(node),
                classes=classes,
                score=scores[row].astype(np.float64),
                position=int(row),
                predicted=classes[codes[row]],
                marginal=marginals[row].astype(np.float64),
                alone=_softmax(scores[row], allowed),
                alone_given=parts.alone_given(int(row)),
                allowed=allowed,
                messages={side: message[row] for side, message in messages.items()},
                edge=None if edge is None else _explained_edge(parts, int(row), edge, classes),
            )
        )
    return Explanation(
        method=parts.method, classes=classes, predicted=classes[codes], positions=explained
    )


def _explained_edge(
    parts: ExplainedParts, row: int, terms: Terms, classes: npt.NDArray[Any]
) -> ExplainedEdge:
    return ExplainedEdge(
        **vars(terms),
        classes=classes,
        score=terms.base + terms.contributions.sum(axis=0),
        before=classes[parts.before(row)].tolist(),
    )


def checked_positions(positions: Any, length: int) -> IntArray:
    """The argument ``positions``, whole numbers from 0 to ``length`` - 1; None: all."""
    if positions is None:
        return np.arange(length)
    if isinstance(positions, int | np.integer) and not isinstance(positions, bool):
        positions = [positions]
    try:
        found = np.asarray(positions)
    except ValueError:
        found = np.zeros((0, 0))
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ValueError(
            f"positions is {shown(positions)}: pass whole numbers, counted from 0, or None for all"
        )
    outside = found[(found < 0) | (found >= length)]
    if outside.size:
        raise ValueError(
            f"position {outside[0]} is not there: the instance has {length}, counted from 0"
        )
    return found.astype(np.int64)


def _node_scores(model: Any, problem: Problem) -> FloatArray:
    """(rows, K) without what ``allowed`` forbids."""
    batch = problem.batch
    if batch.allowed is None:
        return problem.scores.node
    free = replace(batch, allowed=None)
    found: FloatArray = model.scores(free, problem.structure).node
    return found


def _messages(problem: Problem, given: FloatArray) -> dict[str, Array64]:
    """By side, (rows, K), centred; without what is ``given`` as scores of the position."""
    sides = ("before", "after") if problem.batch.parents is None else ("parent", "children")
    before, after = side_messages(problem)
    return {sides[0]: _centred(before - given), sides[1]: _centred(after)}


def _centred(messages: Array64) -> Array64:
    """With a mean of 0 over what is finite of every row."""
    finite = np.isfinite(messages)
    counts = np.maximum(finite.sum(axis=1, keepdims=True), 1)
    mean = np.where(finite, messages, 0.0).sum(axis=1, keepdims=True) / counts
    return np.asarray(messages - mean)


def _softmax(scores: FloatArray, allowed: npt.NDArray[np.bool_] | None) -> Array64:
    wide = scores.astype(np.float64)
    if allowed is not None:
        wide = np.where(allowed, wide, -np.inf)
    odds = np.exp(wide - wide.max())
    return np.asarray(odds / odds.sum())


class ExplainedParts:
    """What a model says about the ``rows`` of a batch, given the labels ``codes`` (all rows,) of
    ``classes``.
    """

    def __init__(
        self,
        model: Model,
        batch: Batch,
        rows: IntArray,
        codes: IntArray,
        classes: npt.NDArray[Any],
    ) -> None:
        self.model, self.batch, self.rows, self.codes = model, batch, rows, codes
        self.labels = classes.tolist()
        self.structure: Chain | Forest = model.structure(batch)
        self._before = np.full((batch.n_rows, self.structure.n_label_axes - 1), -1)
        edge_rows = self.structure.edge_rows(batch)
        self._before[edge_rows] = codes[self.structure.contexts(batch)]

    @property
    def method(self) -> str:
        """How scores are shared out among features."""
        found = []
        for model in self.model.layers:
            found.append(model.node.method)
            if model.edge_family == "linear":
                found.append(WEIGHT_TIMES_VALUE)
        return ", ".join(dict.fromkeys(found))

    def before(self, row: int) -> IntArray:
        """The codes of the labels before a row, oldest first; empty where no edge ends there."""
        found: IntArray = self._before[row]
        return found if (found >= 0).all() else found[:0]

    def scores_by_labels_before(self) -> FloatArray:
        """(all rows, K): what trees that see the labels before (TreeCRF's) say after these.

        Told as scores of the position; 0 where there are no such trees, or no labels before.
        """
        found: FloatArray = np.zeros((self.batch.n_rows, self.model.n_labels), np.float32)
        for model in self.model.layers:
            found = found + model.node.scores_after(self.batch, self.structure, self._before)
        return found

    def alone_given(self, row: int) -> list[Any]:
        """The labels before a row, where scores of the position take them as given."""
        takes = any(model.node.takes_labels for model in self.model.layers)
        return [self.labels[code] for code in self.before(row)] if takes else []

    def nodes(self, names: Names) -> list[Terms]:
        """Of every row, by label, `scores_by_labels_before` included."""
        parts = [
            model.node.explained_rows(self.batch, self.rows, self._before, names, self.labels)
            for model in self.model.layers
        ]
        return [_sum(own) for own in zip(*parts, strict=True)]

    def edges(self, names: Names) -> list[Terms | None]:
        """Of every row at which an edge ends whose score depends on features: the score of every
        label after the labels before.
        """
        found: dict[int, Terms] = {}
        for model in self.model.layers:
            if model.edge_family not in ("linear", "trees"):
                continue
            for row, terms in self._edges_of(model, names):
                found[row] = terms if row not in found else found[row].plus(terms)
        return [found.get(int(row)) for row in self.rows]

    def _edges_of(self, model: Model, names: Names) -> Iterable[tuple[int, Terms]]:
        rows = np.array([row for row in self.rows if len(self.before(row))], dtype=np.int64)
        types = self.batch.edge_types
        for kind in range(model.n_types or 1):
            own = rows if types is None or model.n_types is None else rows[types[rows] == kind]
            explained = _explained_edges(model, kind, take_rows(self.batch.X, own), names)
            for row, terms in zip(own.tolist(), explained, strict=True):
                yield row, terms.take(self._outputs(row))

    def _outputs(self, row: int) -> npt.NDArray[np.int64]:
        """The entries of a flat table for the labels before and every label."""
        n_labels, first = self.model.n_labels, 0
        for code in self.before(row):
            first = first * n_labels + int(code)
        return first * n_labels + np.arange(n_labels)


def _sum(parts: Iterable[Terms]) -> Terms:
    first, *others = parts
    for other in others:
        first = first.plus(other)
    return first


def _explained_edges(model: Model, kind: int, X: Any, names: Names) -> Iterable[Terms]:
    """Of edges of one type, by entry of a flat table; of linear ones a constant is the base."""
    if model.edge_family == "trees":
        assert model.edge_functions is not None
        return model.edge_functions[kind].explained(X, names)
    if model.edge_functions is not None:
        function: Any = model.edge_functions[kind]
        weights = sparse.csr_matrix(function.pattern.matrix(function.weights))
        constant = weights[-1].toarray()[0]
    else:
        assert model.edge is not None
        weights = model.edge.tables["weights"][kind]
        constant = weights[-1]
    return weighted_terms(with_constant(X)[:, :-1], weights[:-1], constant, names)


# Rankings -----------------------------------------------------------------------------------------

ONE_SCORE = np.array(["score"])


def explained_query(model: RankingModel, X: Any, rows: IntArray, names: Names) -> Explanation:
    """Explain some ``rows`` of the documents X of one query; ranks count from 1."""
    scores = model.scores(X)
    (order,) = best_orders(scores, np.array([0, len(scores)]))
    ranks = np.argsort(order) + 1
    explained = model.explained(take_rows(X, rows), names)
    return Explanation(
        method=model.method,
        classes=ONE_SCORE,
        predicted=ranks,
        positions=[
            ExplainedPosition(
                **vars(terms),
                classes=ONE_SCORE,
                score=scores[[row]],
                position=int(row),
                predicted=int(ranks[row]),
            )
            for row, terms in zip(rows, explained, strict=True)
        ],
    )
