"""Cross-validation by numbered folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def held_out(folds: NDArray[np.int64], k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the instances outside a fold, to train on, and those inside, to test on.

    Parameters
    ----------
    folds : (instances,) int array
        The fold of each instance.
    k : int
        The fold to test on.

    Returns
    -------
    Two int arrays, the numbers of the instances

    Examples
    --------
    >>> held_out(np.array([0, 1, 2, 1]), 1)
    (array([0, 2]), array([1, 3]))
    """
    if k not in folds:
        raise ValueError(f"there is no fold {k}: folds are {np.unique(folds).tolist()}")
    return np.flatnonzero(folds != k), np.flatnonzero(folds == k)
