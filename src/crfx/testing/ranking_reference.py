"""The reference of `crfx.objectives.ranking`: one query at a time, plain NumPy in log space.

Sums run over subsets of documents, as in the core; probabilities of pairs come from striking out
one document and one rank; the loss-scaled objective lists all permutations.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfx.objectives.ranking import RankingObjective
from crfx.structures.ranking import rank_weights

Array64 = npt.NDArray[np.float64]


class Reference(NamedTuple):
    """Value of a query, its gradient (m,), and the matrix (m, m) whose row sums of magnitudes are
    the curvature: the Hessian, but for expected loss the covariance of the model times the standard
    deviation of its loss.
    """

    value: float
    gradient: Array64
    covariance: Array64


def evaluate(objective: RankingObjective, scores: Array64, gains: Array64) -> Reference:
    """Evaluate one query: scores and gains (m,).  O(4^m m^2), loss-scaled O(m! m^2)."""
    m = len(scores)
    alpha = rank_weights(m)
    discount = alpha * (np.arange(m) < (objective.cut or m))
    ideal = float(np.sort(gains)[::-1] @ discount)
    base = float(ideal > 0)  # the loss is this less the sum of worth[i, y_i]
    worth = np.multiply.outer(gains, discount) / (ideal or 1.0)
    log_count, no_loss = order_probabilities(_truth_logs(discount, gains))
    if objective.name == "loss_scaled":
        return _loss_scaled(scores, base, worth, no_loss @ alpha)
    logs = np.multiply.outer(scores, alpha)
    if objective.name == "loss_augmented":
        logs = logs + objective.loss_weight * (base / m - worth)
    log_z, pairs = pair_probabilities(logs)
    at = np.einsum("irir->ir", pairs)
    mean = at @ alpha
    second = np.einsum("irjs,r,s->ij", pairs, alpha, alpha)
    covariance = second - np.outer(mean, mean)
    if objective.name == "expected_loss":
        expected = float((at * worth).sum())
        both = np.einsum("irjs,r,js->i", pairs, alpha, worth)
        variance = np.einsum("irjs,ir,js->", pairs, worth, worth) - expected**2
        scale = np.sqrt(max(float(variance), 0.0))
        return Reference(base - expected, expected * mean - both, scale * covariance)
    if objective.name == "kl":
        target = worth / objective.temperature
        log_q, q = order_probabilities(target)
        value = (q * target).sum() - log_q - scores @ (q @ alpha) + log_z
        return Reference(float(value), mean - q @ alpha, covariance)
    count = np.exp(log_count) if objective.truths == "sum" else 1.0
    value = count * (log_z - scores @ (no_loss @ alpha))
    return Reference(float(value), count * (mean - no_loss @ alpha), count * covariance)


def order_probabilities(logs: Array64) -> tuple[float, Array64]:
    """Return the log of the sum over permutations of exp(sum of logs[i, y_i]), and P(i has rank r).

    O(2^m m) sums over subsets s: ``forward[s]`` of giving them the first ranks, ``backward[s]`` of
    giving the other ranks to the others.
    """
    m = len(logs)
    subsets = range(2**m)
    forward, backward = np.full(2**m, -np.inf), np.full(2**m, -np.inf)
    forward[0] = backward[-1] = 0.0
    probabilities = np.zeros((m, m))
    for s in subsets:
        rank = s.bit_count()
        for i in range(m):
            if not s >> i & 1:
                more = s | 1 << i
                forward[more] = np.logaddexp(forward[more], forward[s] + logs[i, rank])
    for s in reversed(subsets):
        rank = s.bit_count()
        for i in range(m):
            if not s >> i & 1:
                rest = logs[i, rank] + backward[s | 1 << i]
                backward[s] = np.logaddexp(backward[s], rest)
                probabilities[i, rank] += np.exp(forward[s] + rest - forward[-1])
    return float(forward[-1]), probabilities


def pair_probabilities(logs: Array64) -> tuple[float, Array64]:
    """Return the log of the sum, and P(i has rank r, j has rank s) (m, m, m, m).  O(2^m m^3)."""
    m = len(logs)
    log_z, single = order_probabilities(logs)
    pairs = np.zeros((m, m, m, m))
    for i in range(m):
        for r in range(m):
            pairs[i, r, i, r] = single[i, r]
            if m > 1 and single[i, r] > 0:
                others, ranks = np.delete(np.arange(m), i), np.delete(np.arange(m), r)
                _, rest = order_probabilities(logs[np.ix_(others, ranks)])
                pairs[i, r][np.ix_(others, ranks)] = single[i, r] * rest
    return log_z, pairs


def _truth_logs(discount: Array64, gains: Array64) -> Array64:
    """Return (m, m) 0 where a document may have a rank in a permutation without loss, else -inf."""
    falling = np.sort(gains)[::-1]
    fits = (gains[:, None] == falling[None, :]) | (discount == 0)[None, :]
    return np.where(fits, 0.0, -np.inf)


def _loss_scaled(scores: Array64, base: float, worth: Array64, truth: Array64) -> Reference:
    m = len(scores)
    alpha, documents = rank_weights(m), np.arange(m)
    ranks = np.array(list(permutations(range(m))))  # of every document
    loss = base - worth[documents, ranks].sum(axis=1)
    moves = alpha[ranks] - truth
    logs = loss * (1.0 + moves @ scores)
    weights = np.exp(logs - logs.max())
    p = weights / weights.sum()
    pulled = loss[:, None] * moves
    gradient = p @ pulled
    covariance = (pulled * p[:, None]).T @ pulled - np.outer(gradient, gradient)
    return Reference(float(logs.max() + np.log(weights.sum())), gradient, covariance)
