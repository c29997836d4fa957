"""What inference gives back: records of arrays shaped like the scores they belong to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfx.scores import FloatArray, IntArray

IMPOSSIBLE = {np.dtype(np.float32): 1e-16, np.dtype(np.float64): 1e-30}
"""Events of smaller probability count as impossible where curvature is computed, by the dtype of
the scores: messages do not resolve them, and their rows of the Hessian are as small."""

KBest = list[list[tuple[IntArray, float]]]
"""Per instance the best labellings, best first: (labels (length,), score)."""


@dataclass(frozen=True, eq=False, slots=True)
class SumProduct:
    """Sums over all labellings.

    Attributes
    ----------
    log_z : (instances,) float64
        Log of the partition function; 0 for an empty instance.
    node : (rows, K)
        P(y_t = k), also the gradient of the sum of ``log_z`` in the node scores.
    edge : None, (K, ..., K), (types, K, ..., K) or (rows, K, ..., K)
        P(y_{t-n}, ..., y_t) summed over edges (per type, where tables are typed), or one per row,
        zero where no edge ends; None if not requested, or without edge scores.
    node_gamma : None, (rows,) or (rows, K)
        Factors with which gamma * diag(H) dominates H, the Hessian of ``log_z`` in the node
        scores; with a label axis where ``curvature="exact"``.  Events of probability below
        ``IMPOSSIBLE``, or that close to 1, get 2 there and are left out of the other kinds' rates.
        (float32 resolves no event rarer than about 1e-6 where messages contradict each other.)
    edge_gamma : None, (rows,) or (rows, K, ..., K)
        The same for edge scores, at the row where the edge ends; zero where none does.
    edge_curvature : None or shaped like summed edge marginals
        Sum over edges of edge_gamma * p * (1 - p); filled only where training asks for it.
    """

    log_z: FloatArray
    node: FloatArray
    edge: FloatArray | None = None
    node_gamma: FloatArray | None = None
    edge_gamma: FloatArray | None = None
    edge_curvature: FloatArray | None = None


@dataclass(frozen=True, eq=False, slots=True)
class MaxProduct:
    """Best labellings.

    Attributes
    ----------
    labels : (rows,) int32, or with k > 1 a list per instance of lists of (labels, score)
        The lists are sorted, best first, and hold distinct allowed labellings, at most k.
    scores : (instances,) float64
        The score of the best labelling of each instance; 0 for an empty one.
    """

    labels: IntArray | KBest
    scores: FloatArray


@dataclass(frozen=True, eq=False, slots=True)
class Expectation:
    """The expected cost of a labelling and its gradient.

    Attributes
    ----------
    value : (instances,) float64
        E[sum_t cost_t(y_t)].
    node : (rows, K)
        Gradient of the sum of ``value`` in the node scores: Cov(cost, 1[y_t = k]).
    edge : None or shaped like edge marginals
        Gradient in the edge scores, summed or one table per row.
    """

    value: FloatArray
    node: FloatArray
    edge: FloatArray | None = None
