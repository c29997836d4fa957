"""Cross-validation by numbered folds: each instance belongs to one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def held_out(folds: NDArray[np.int64], k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the instances outside fold `k`, to train on, and those inside, to test on.

    >>> held_out(np.array([0, 1, 2, 1]), 1)
    (array([0, 2]), array([1, 3]))
    """
    if k not in folds:
        raise ValueError(f"there is no fold {k}: folds are {np.unique(folds).tolist()}")
    return np.flatnonzero(folds != k), np.flatnonzero(folds == k)


def random_folds(n_instances: int, n_folds: int, seed: int) -> NDArray[np.int64]:
    """Deal the instances into folds of nearly equal size, the same for the same seed.

    >>> random_folds(5, n_folds=2, seed=0)
    array([0, 0, 1, 0, 1])
    """
    if not 2 <= n_folds <= n_instances:
        raise ValueError(f"n_folds must be 2 to {n_instances}, got {n_folds}")
    return np.random.default_rng(seed).permutation(np.arange(n_instances) % n_folds)
