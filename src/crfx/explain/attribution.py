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
    """Read the argument ``positions``, whole numbers from 0 to ``length`` - 1; None: all."""
    if positions is None:
        return np.arange(length)
    if isinstance(positions, int | np.integer) and not isinstance(positions, bool):
        positions = [positions]
    try:
        rows = np.asarray(positions)
    except ValueError:
        rows = np.zeros((0, 0))
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(
            f"positions is {shown(positions)}: pass whole numbers, counted from 0, or None for all"
        )
    outside = rows[(rows < 0) | (rows >= length)]
    if outside.size:
        raise ValueError(
            f"position {outside[0]} is not there: the instance has {length}, counted from 0"
        )
    return rows.astype(np.int64)


def _node_scores(model: Any, problem: Problem) -> FloatArray:
    """Return (rows, K) without what ``allowed`` forbids."""
    batch = problem.batch
    if batch.allowed is None:
        return problem.scores.node
    free = replace(batch, allowed=None)
    scores: FloatArray = model.scores(free, problem.structure).node
    return scores


def _messages(problem: Problem, from_before: FloatArray) -> dict[str, Array64]:
    """Return messages by side, (rows, K), centred, without the scores ``from_before``."""
    sides = ("before", "after") if problem.batch.parents is None else ("parent", "children")
    before, after = side_messages(problem)
    return {sides[0]: _centred(before - from_before), sides[1]: _centred(after)}


def _centred(messages: Array64) -> Array64:
    """Return messages whose finite entries have a mean of 0 in every row."""
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
    """The explanation of the ``rows`` of a batch, given the labels ``codes`` (all rows,) of
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
        """The methods that share scores out among features."""
        methods = []
        for model in self.model.layers:
            methods.append(model.node.method)
            if model.edge_family == "linear":
                methods.append(WEIGHT_TIMES_VALUE)
        return ", ".join(dict.fromkeys(methods))

    def before(self, row: int) -> IntArray:
        """Return the codes of the labels before a row, oldest first; none if no edge ends there."""
        codes: IntArray = self._before[row]
        return codes if (codes >= 0).all() else codes[:0]

    def scores_by_labels_before(self) -> FloatArray:
        """Return (all rows, K): the scores of trees that see the labels before (TreeCRF's).

        They count as scores of the position; 0 without such trees, or without labels before.
        """
        scores: FloatArray = np.zeros((self.batch.n_rows, self.model.n_labels), np.float32)
        for model in self.model.layers:
            scores = scores + model.node.scores_after(self.batch, self.structure, self._before)
        return scores

    def alone_given(self, row: int) -> list[Any]:
        """Return the labels before a row if scores of the position take them as given."""
        takes = any(model.node.takes_labels for model in self.model.layers)
        return [self.labels[code] for code in self.before(row)] if takes else []

    def nodes(self, names: Names) -> list[Terms]:
        """Return the terms of every row by label, `scores_by_labels_before` included."""
        parts = [
            model.node.explained_rows(self.batch, self.rows, self._before, names, self.labels)
            for model in self.model.layers
        ]
        return [_sum(terms) for terms in zip(*parts, strict=True)]

    def edges(self, names: Names) -> list[Terms | None]:
        """Return for every row at which an edge ends that depends on features: the score of every
        label after the labels before.
        """
        by_row: dict[int, Terms] = {}
        for model in self.model.layers:
            if model.edge_family not in ("linear", "trees"):
                continue
            for row, terms in self._edges_of(model, names):
                by_row[row] = terms if row not in by_row else by_row[row].plus(terms)
        return [by_row.get(int(row)) for row in self.rows]

    def _edges_of(self, model: Model, names: Names) -> Iterable[tuple[int, Terms]]:
        rows = np.array([row for row in self.rows if len(self.before(row))], dtype=np.int64)
        types = self.batch.edge_types
        for kind in range(model.n_types or 1):
            rows_of_type = (
                rows if types is None or model.n_types is None else rows[types[rows] == kind]
            )
            explained = _explained_edges(model, kind, take_rows(self.batch.X, rows_of_type), names)
            for row, terms in zip(rows_of_type.tolist(), explained, strict=True):
                yield row, terms.take(self._outputs(row))

    def _outputs(self, row: int) -> npt.NDArray[np.int64]:
        """Return the entries of a flat table for the labels before and every label."""
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
    """Return the terms of edges of one type by table entry; linear ones have a constant base."""
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
