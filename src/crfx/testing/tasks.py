"""Small labelled tasks, to train on in a moment."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def make_task(
    seed: int = 0, n_instances: int = 30, n_labels: int = 3
) -> tuple[list[npt.NDArray[np.float32]], list[list[str]]]:
    """Make a small labelled task, to train on in a moment.

    Labels never fall along an instance and are seen through noise, so that edges help.

    Parameters
    ----------
    seed : int, default 0
    n_instances : int, default 30
    n_labels : int, default 3

    Returns
    -------
    X : list of (length, 4) arrays of float32
    y : list of lists of "L0", "L1", ...

    Examples
    --------
    >>> X, y = make_task(n_instances=3)
    >>> [len(instance) for instance in X], y[1]
    ([6, 5, 4], ['L1', 'L2', 'L2', 'L2', 'L2'])
    """
    random = np.random.default_rng(seed)
    X, y = [], []
    for length in random.integers(1, 8, n_instances):
        labels = np.sort(random.integers(n_labels, size=length))
        X.append((random.normal(size=(length, 4)) + labels[:, None]).astype(np.float32))
        y.append([f"L{label}" for label in labels])
    return X, y
