"""Orders of the documents of a query: which rank counts how much, and the best order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crfx.scores import IntArray

Array64 = npt.NDArray[np.float64]


def rank_weights(n: int) -> Array64:
    """Return NDCG's discounts of ranks 1 to n, log 2 / log(1 + rank) (Volkovs et al. 2011, sec. 6).

    >>> rank_weights(3).round(3)
    array([1.   , 0.631, 0.5  ])
    """
    return np.asarray(np.log(2.0) / np.log(np.arange(2, n + 2)))


def best_orders(scores: npt.ArrayLike, offsets: IntArray) -> list[IntArray]:
    """Return the documents of every query, counted within it, best first; ties keep their order.

    Any weights that fall with the rank have this best order (Eq. 14).

    >>> [order.tolist() for order in best_orders([0.1, 0.7, 0.4, 2.0, 3.0], np.array([0, 3, 5]))]
    [[1, 2, 0], [1, 0]]
    """
    parts = np.split(np.asarray(scores, np.float64), offsets[1:-1])
    return [np.argsort(-part, kind="stable") for part in parts[: len(offsets) - 1]]
