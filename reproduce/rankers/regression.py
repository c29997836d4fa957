"""Least squares: the score of a document is its expected relevance.

min over w, b of sum (w.x + b - r)^2 + l2 |w|^2, over all documents of all queries alike.
"""

from __future__ import annotations

import numpy as np

from reproduce.rankers.base import Fitted, Given, linear


def fit(data: Given, l2: float = 0.0) -> Fitted:
    """Solve; of equal minima the one of least norm.  O(n d^2)."""
    if l2 < 0:
        raise ValueError(f"l2 is {l2}: it must be 0 or more")
    X, relevance = np.asarray(data.train.X, np.float64), data.train.relevance
    centred, target = X - X.mean(axis=0), relevance - relevance.mean()
    penalty = np.sqrt(l2) * np.eye(X.shape[1])
    stacked = np.concatenate([centred, penalty])
    wanted = np.concatenate([target, np.zeros(len(penalty))])
    return linear(np.linalg.lstsq(stacked, wanted, rcond=None)[0], rounds=1)
