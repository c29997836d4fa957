"""ListNet (Cao, Qin, Liu, Tsai and Li 2007): the probability of each document to be first.

With P(i) proportional to exp(relevance) and Q(i) to exp(score) within a query, the sum over queries
of the cross-entropy -sum_i P(i) log Q(i), plus l2 |w|^2.  It is convex in the weights of a linear
score, and minimised by L-BFGS rather than by the paper's steps.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reproduce.rankers.base import Array64, Fitted, Given, linear, query_of, with_levels


def fit(data: Given, l2: float = 1.0, max_iter: int = 200) -> Fitted:
    """Minimise; O(n d) an iteration."""
    from scipy.optimize import minimize

    part = with_levels(data.train)
    X, query = np.asarray(part.X, np.float64), query_of(part)
    target = softmax(part.relevance, query)[0]

    def value_and_slope(weights: Array64) -> tuple[float, Array64]:
        value, slope = cross_entropy(X @ weights, target, query)
        return value + l2 * float(weights @ weights), slope @ X + 2 * l2 * weights

    solution = minimize(
        value_and_slope,
        np.zeros(X.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter},
    )
    return linear(solution.x, rounds=int(solution.nit))


def cross_entropy(
    scores: Array64, target: Array64, query: npt.NDArray[np.int64]
) -> tuple[float, Array64]:
    """Summed over queries, and its gradient in the scores."""
    q, log_q = softmax(scores, query)
    return -float(target @ log_q), q - target


def softmax(scores: Array64, query: npt.NDArray[np.int64]) -> tuple[Array64, Array64]:
    """Return the softmax of every document within its query, and its logarithm."""
    most = np.full(query[-1] + 1, -np.inf)
    np.maximum.at(most, query, scores)
    shifted = scores - most[query]
    log_q = shifted - np.log(np.bincount(query, np.exp(shifted)))[query]
    return np.exp(log_q), log_q
