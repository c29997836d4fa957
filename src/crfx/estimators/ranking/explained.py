"""Why the documents of a query are ordered as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfx.explanation import ExplainedPosition, Explanation
from crfx.features.matrix import take_rows
from crfx.model.ranking_model import RankingModel
from crfx.scores import IntArray
from crfx.structures.ranking import best_orders
from crfx.terms import Names

ONE_SCORE = np.array(["score"])


def explained_query(model: RankingModel, X: Any, rows: IntArray, names: Names) -> Explanation:
    """Some ``rows`` of the documents X of one query; ranks count from 1."""
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
