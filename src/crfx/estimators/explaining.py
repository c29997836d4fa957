"""Why a model labels one instance as it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.base import check_fitted
from crfx.estimators.confidence import ConfidentEstimator
from crfx.estimators.explained_parts import ExplainedParts
from crfx.estimators.importance import Importance, labelling_importance
from crfx.estimators.inputs import one_instance
from crfx.explanation import ExplainedEdge, ExplainedPosition, Explanation
from crfx.inference.neighbours import side_messages
from crfx.inference.problem import Problem
from crfx.messages import shown
from crfx.scores import FloatArray, IntArray
from crfx.terms import Terms

Array64 = npt.NDArray[np.float64]


class ExplainingEstimator(ConfidentEstimator):
    """Scores as sums over features, probabilities with and without neighbours."""

    def explain(
        self,
        X_i: Any,
        *,
        parents: Any = None,
        edge_types: Any = None,
        allowed: Any = None,
        positions: Any = None,
    ) -> Explanation:
        """Why one instance is labelled as it is: a `crfx.explanation.Explanation`.

        ``X_i``, ``parents``, ``edge_types`` and ``allowed`` are of one instance: what lists given
        to ``predict`` hold once per instance.  ``positions`` are those to be explained, from 0 on;
        None: all.  Scores and probabilities are those of `predict_marginals`.  O(length *
        labels^(order+1)) for the messages, in NumPy; docs/explaining.md names the methods and what
        they cost.

        >>> from crfx import LinearCRF
        >>> crf = LinearCRF().fit([[["hot"], ["cold"]], [["cold"]]], [["sun", "rain"], ["rain"]])
        >>> found = crf.explain([["hot"], ["cold"]])
        >>> found.method, found.predicted.tolist()
        ('weight × value', ['sun', 'rain'])
        >>> found.positions[0].strongest(n=1)[0].feature
        'hot'
        """
        check_fitted(self)
        one = (
            one_instance(X_i, "explain"),
            None,
            _one(parents),
            _one(edge_types),
            None,
            _one(allowed),
        )
        _, problem = self._problem(*one)
        rows = checked_positions(positions, problem.batch.n_rows)
        codes = self._labelling(problem, None)
        parts = ExplainedParts(self.model_, problem.batch, rows, codes, self.classes_)
        return Explanation(
            method=parts.method,
            classes=self.classes_,
            predicted=self.classes_[codes],
            positions=self._explained(parts, problem),
        )

    def importance(self) -> Importance:
        """How much every feature matters over all, to nodes and to edges.

        Of trees the share of what their splits gained, of weights how far they part the labels,
        of tables the size of every transition's score.  Of the model's own: what lies underneath
        (``init_model``) is not counted.

        >>> from crfx import LinearCRF
        >>> crf = LinearCRF().fit([[["hot"], ["cold"]], [["cold"]]], [["sun", "rain"], ["rain"]])
        >>> found = crf.importance()
        >>> list(found.node), list(found.edge)
        (['cold', 'hot'], ['sun -> rain'])
        """
        check_fitted(self)
        return labelling_importance(self.model_, self.columns_.name_of(), self.classes_.tolist())

    def _explained(self, parts: ExplainedParts, problem: Problem) -> list[ExplainedPosition]:
        names, classes = self.columns_.name_of(), self.classes_
        given = parts.given_before()
        scores = _node_scores(self.model_, problem) + given
        messages, marginals = _messages(problem, given), self._marginals(problem)
        allowed = problem.batch.allowed
        found = []
        for row, node, edge in zip(parts.rows, parts.nodes(names), parts.edges(names), strict=True):
            free = None if allowed is None else allowed[row]
            found.append(
                ExplainedPosition(
                    **vars(node),
                    classes=classes,
                    score=scores[row].astype(np.float64),
                    position=int(row),
                    predicted=classes[parts.codes[row]],
                    marginal=marginals[row].astype(np.float64),
                    alone=_softmax(scores[row], free),
                    alone_given=parts.alone_given(int(row)),
                    allowed=free,
                    messages={side: own[row] for side, own in messages.items()},
                    edge=None if edge is None else self._explained_edge(parts, int(row), edge),
                )
            )
        return found

    def _explained_edge(self, parts: ExplainedParts, row: int, terms: Terms) -> ExplainedEdge:
        return ExplainedEdge(
            **vars(terms),
            classes=self.classes_,
            score=terms.base + terms.contributions.sum(axis=0),
            before=self.classes_[parts.before(row)].tolist(),
        )


def _one(given: Any) -> list[Any] | None:
    """What is given for one instance as a list of instances."""
    return None if given is None else [given]


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
