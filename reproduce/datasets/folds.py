"""Random folds, for data sets without official folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def random_folds(n_instances: int, n_folds: int, seed: int) -> NDArray[np.int64]:
    """Deal the instances into folds of nearly equal size, the same for the same seed.

    >>> random_folds(5, n_folds=2, seed=0)
    array([0, 0, 1, 0, 1])
    """
    if not 2 <= n_folds <= n_instances:
        raise ValueError(f"n_folds must be 2 to {n_instances}, got {n_folds}")
    return np.random.default_rng(seed).permutation(np.arange(n_instances) % n_folds)
