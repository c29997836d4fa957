"""Sliding windows over numeric features: every position with its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.errors import BadInstance

IntArray = npt.NDArray[np.integer[Any]]


def windows(
    instances: Sequence[npt.ArrayLike], left: int, right: int, outside: float = float("nan")
) -> list[npt.NDArray[np.float32]]:
    """Return the features of each position together with those of its neighbours.

    Parameters
    ----------
    instances : list of (length, features) arrays
    left, right : int
        The number of neighbours before and after a position.
    outside : float, default NaN
        The value for places beyond the ends of an instance; NaN is missing.

    Returns
    -------
    list of (length, (left + 1 + right) * features) arrays of float32

    Examples
    --------
    >>> windows([[[1.0], [2.0]], [[3.0]]], 1, 1, outside=0)[0]
    array([[0., 1., 2.],
           [1., 2., 0.]], dtype=float32)
    """
    arrays = [np.asarray(instance, dtype=np.float32) for instance in instances]
    if not arrays:
        return []
    for number, array in enumerate(arrays):
        if array.ndim != 2 or array.shape[1] != arrays[0].shape[1]:
            raise BadInstance(
                number,
                f"it has shape {array.shape}, which must be (positions, features), with equally "
                "many features everywhere",
            )
    wide = windowed(np.concatenate(arrays), [len(x) for x in arrays], left, right, outside)
    return np.split(wide, np.cumsum([len(x) for x in arrays])[:-1])


def windowed(
    X: npt.NDArray[Any],
    lengths: Sequence[int],
    left: int,
    right: int,
    outside: float = float("nan"),
) -> npt.NDArray[np.float32]:
    """Return the `windows` of one stacked matrix.

    Parameters
    ----------
    X : (rows, features) array
        Instances, one after the other.
    lengths : list of int
        The number of rows of each instance.
    left, right, outside
        As in `windows`.

    Returns
    -------
    (rows, (left + 1 + right) * features) array of float32

    Examples
    --------
    >>> windowed(np.array([[1.0], [2.0], [3.0]]), [2, 1], 1, 0, outside=0).tolist()
    [[0.0, 1.0], [1.0, 2.0], [0.0, 3.0]]
    """
    if left < 0 or right < 0:
        raise ValueError(f"the window is ({left}, {right}): count neighbours from 0")
    wide = np.full((len(X), left + 1 + right, X.shape[1]), outside, dtype=np.float32)
    for place, (neighbour, is_inside) in enumerate(neighbours(lengths, left, right)):
        wide[is_inside, place] = X[neighbour[is_inside]]
    return wide.reshape(len(X), wide.shape[1] * wide.shape[2])


def neighbours(
    lengths: Sequence[int] | IntArray, left: int, right: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
    """Yield, for each shift from -left to right, the rows that far away and whether they count.

    A row counts as a neighbour inside its instance only; ``lengths`` are those of the instances.
    """
    ends = np.cumsum(lengths)
    first, last = np.repeat(ends - lengths, lengths), np.repeat(ends, lengths)
    for shift in range(-left, right + 1):
        neighbour = np.arange(len(first)) + shift
        yield neighbour, (neighbour >= first) & (neighbour < last)
