"""A structured SVM for orders (Tsochantaridis et al. 2005), with 1 - NDCG as margin.

An order y scores sum_i a(y_i) f_i with f = w.x and a(rank) = log 2 / log(1 + rank), as in
`RankingCRF`.  The hinge of a query is the greatest margin by which an order is too good,

    max_y [loss(y) + score(y)] - score of the truth,

where documents of equal relevance stand in all orders at once: the truth's score is their mean.
The loss is 1 - N sum_i a(y_i) gain_i: with the same discount a as the score, so the most violated
order sorts by f_i - N gain_i, and no assignment problem is left.  Minimised, with l2 |w|^2, by
subgradient steps of size 1 / (2 l2 t) (Pegasos), whose second half is averaged.
"""

from __future__ import annotations

import numpy as np

from crfx.io.letor import Rankings
from crfx.ndcg import Gain, gain_of
from reproduce.rankers.base import Array64, Fitted, Given, linear, query_of, with_levels


class Hinge:
    """The summed hinges of the queries of a part, as a function of their scores."""

    def __init__(self, part: Rankings, gain: Gain) -> None:
        self.query = query_of(part)
        starts = np.cumsum(part.group) - part.group
        rank = np.arange(1, len(self.query) + 1) - starts[self.query]
        self._discount = 1 / np.log2(1 + rank)
        gains = gain_of(part.relevance, gain)
        best = np.bincount(self.query, self._by_rank(gains) * gains)
        self._worth = gains / best[self.query]
        self._truth = self._mean_over_ties(part.relevance)

    def __call__(self, scores: Array64) -> tuple[float, Array64]:
        """Value and a subgradient in the scores.  O(n log n)."""
        wrong = self._by_rank(scores - self._worth)
        n_queries = int(self.query[-1]) + 1
        value = n_queries + wrong @ (scores - self._worth) - self._truth @ scores
        return float(value), wrong - self._truth

    def _by_rank(self, scores: Array64) -> Array64:
        """Return the discount of every document if scores order each query."""
        discounts = np.empty(len(scores))
        discounts[np.lexsort((-scores, self.query))] = self._discount
        return discounts

    def _mean_over_ties(self, relevance: Array64) -> Array64:
        """Return the mean discount of the documents of a query with equal relevance."""
        pairs = np.stack([self.query, relevance], axis=1)
        _, tie = np.unique(pairs, axis=0, return_inverse=True)
        tie = tie.reshape(-1)
        means = np.bincount(tie, self._by_rank(relevance)) / np.bincount(tie)
        return np.asarray(means[tie])


def fit(data: Given, l2: float = 1.0, steps: int = 2000, gain: Gain = "linear") -> Fitted:
    """Take the steps; O(n (d + log n)) each."""
    if not l2 > 0:
        raise ValueError(f"l2 is {l2}: it must be above 0")
    part = with_levels(data.train)
    hinge, X = Hinge(part, gain), np.asarray(part.X, np.float64)
    weights, total = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for step in range(1, steps + 1):
        slope = hinge(X @ weights)[1] @ X + 2 * l2 * weights
        weights = weights - slope / (2 * l2 * step)
        total += weights * (step > steps // 2)
    return linear(total / (steps - steps // 2), rounds=steps)
