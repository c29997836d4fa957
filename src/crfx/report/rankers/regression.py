"""Least squares: a document's score is the relevance one would expect.

min over w, b of sum (w.x + b - r)^2 + l2 |w|^2, over all documents of all queries alike.
"""

from __future__ import annotations

import numpy as np

from crfx.io.letor import Rankings
from crfx.report.rankers.base import Fitted, Judge, linear


def fit(
    train: Rankings, validation: Rankings, judge: Judge, n_jobs: int | None, l2: float = 0.0
) -> Fitted:
    """Solve; of equal minima the one of least norm.  O(n d^2)."""
    del validation, judge, n_jobs  # it takes no steps
    if l2 < 0:
        raise ValueError(f"l2 is {l2}: it must be 0 or more")
    X = np.asarray(train.X, np.float64)
    centred, target = X - X.mean(axis=0), train.relevance - train.relevance.mean()
    penalty = np.sqrt(l2) * np.eye(X.shape[1])
    stacked = np.concatenate([centred, penalty])
    wanted = np.concatenate([target, np.zeros(len(penalty))])
    return linear(np.linalg.lstsq(stacked, wanted, rcond=None)[0], rounds=1)
