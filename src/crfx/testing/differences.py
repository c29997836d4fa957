"""Central finite differences: the oracle for every gradient."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

STEP = 1e-5
"""Near the cube root of float64's precision, where rounding and truncation errors balance."""


def central_differences(
    function: Callable[[npt.NDArray[np.float64]], float],
    at: npt.ArrayLike,
    *,
    step: float = STEP,
) -> npt.NDArray[np.float64]:
    """Return the gradient of a scalar function of one array by finite differences.

    It is (f(x + h e_i) - f(x - h e_i)) / 2h for every entry i: 2 * size calls, an error of
    O(step^2).

    Parameters
    ----------
    function : callable (array) -> float
    at : array
        The point.  Entries that are not finite (-inf forbids a part) are left alone and get 0.
    step : float, default 1e-5
        The h of the formula.

    Returns
    -------
    array of float64, shaped like ``at``

    Examples
    --------
    >>> central_differences(lambda x: float((x**2).sum()), [1.0, -2.0]).round(6).tolist()
    [2.0, -4.0]
    """
    point = np.array(at, dtype=np.float64)
    gradient = np.zeros_like(point)
    for index in np.ndindex(point.shape):
        middle = point[index]
        if not np.isfinite(middle):
            continue
        point[index] = middle + step
        above = function(point.copy())
        point[index] = middle - step
        below = function(point.copy())
        point[index] = middle
        gradient[index] = (above - below) / (2.0 * step)
    return gradient
