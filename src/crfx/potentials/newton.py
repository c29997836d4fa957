"""Newton steps for functions linear in the features, as edge scores of boosting are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

Array32 = npt.NDArray[np.float32]
Array64 = npt.NDArray[np.float64]

CG_STEPS = 8
CG_TOLERANCE = 1e-3


def newton_step(
    X: Any,
    gradient: Array32,
    curvature: Array32,
    weights: Array32,
    l2: float,
    total: Callable[[Array64], Array64] = lambda array: array,
) -> Array32:
    """Minimise the quadratic model of an objective over functions linear in X.

    For every column m of ``gradient`` and ``curvature`` (rows, outputs), the change d_m of
    ``weights`` (features, outputs) that minimises
    sum_t g_tm f_t + h_tm f_t^2 / 2 + l2 / 2 |w_m + d_m|^2 with f = X d_m (Chen et al., Eq. 8).
    Conjugate gradients, all columns at once, preconditioned by the diagonal; any number of steps
    lowers the model, a few come close to its minimum.  O(steps * size of X * outputs).

    ``total`` adds the sums over the rows of other workers: 2 times (features, outputs) numbers,
    and (features, outputs) in every step.
    """
    slope, bends = total(np.stack([_transposed(X, gradient), _transposed(_squared(X), curvature)]))
    right = -(slope + l2 * weights)
    diagonal = bends + l2
    diagonal = np.where(diagonal > 0, diagonal, 1.0)
    step, residual = np.zeros_like(right), right
    direction = scaled = residual / diagonal
    energy = first = _columns(residual, scaled)
    for _ in range(CG_STEPS):
        image = total(_transposed(X, curvature * (X @ direction))) + l2 * direction
        bend = _columns(direction, image)
        length = np.divide(energy, bend, out=np.zeros_like(energy), where=bend > 0)
        step = step + length * direction
        residual = residual - length * image
        scaled = residual / diagonal
        next_energy = _columns(residual, scaled)
        if (next_energy <= CG_TOLERANCE**2 * first).all():
            break
        turn = np.divide(next_energy, energy, out=np.zeros_like(energy), where=energy > 0)
        direction, energy = scaled + turn * direction, next_energy
    return np.asarray(step, dtype=np.float32)


def _transposed(X: Any, y: Array32) -> Array64:
    return np.asarray(X.T @ y, dtype=np.float64)


def _squared(X: Any) -> Any:
    return X.multiply(X).tocsr() if sparse.issparse(X) else X * X


def _columns(x: Array64, y: Array64) -> Array64:
    return np.asarray(np.einsum("ij,ij->j", x, y))
