"""AdaRank (Xu and Li 2007): boosting of orders by single features, weighted by query.

In every round the feature k with the highest weighted NDCG over the queries is added,

    f += step x_k,   step = 1/2 log(sum_q P(q) (1 + E_k(q)) / sum_q P(q) (1 - E_k(q))),

and queries that f orders badly weigh more in the next, P(q) proportional to exp(-NDCG of f).  More
of the same feature mostly leaves the order of f, so P, as it is, and the paper's algorithm stands
still: as in public implementations, no feature is taken twice running.
"""

from __future__ import annotations

import numpy as np

from crfx.ndcg import ndcg_by_query
from reproduce.rankers.base import Array64, Fitted, Given, linear, with_levels

_ALMOST_ONE = 1 - 1e-12


def fit(data: Given, rounds: int = 300, cut: int = 5) -> Fitted:
    """Boost; the round that is best on validation is kept.  O(n log n) a round."""
    part = with_levels(data.train)
    X = np.asarray(part.X, np.float64)

    def quality(scores: Array64) -> Array64:
        return ndcg_by_query(part.relevance, scores, part.group, cuts=(cut,))[:, 0]

    of_feature = np.stack([quality(column) for column in X.T])
    weights, kept = np.zeros(X.shape[1]), (-np.inf, np.zeros(X.shape[1]), 0)
    P = np.full(len(part.group), 1 / len(part.group))
    judged = np.asarray(data.validation.X, np.float64)
    feature = -1
    for number in range(1, rounds + 1):
        weighted = of_feature @ P
        if feature >= 0 and len(weighted) > 1:
            weighted[feature] = -np.inf
        feature = int(np.argmax(weighted))
        reached = min(float(weighted[feature]), _ALMOST_ONE)
        weights[feature] += 0.5 * np.log((1 + reached) / (1 - reached))
        figure = data.judge(data.validation, judged @ weights)
        if figure > kept[0]:
            kept = (figure, weights.copy(), number)
        P = np.exp(-quality(X @ weights))
        P /= P.sum()
    return linear(kept[1], rounds=kept[2])
