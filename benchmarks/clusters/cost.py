"""A model of the cost of a round, fitted to measurements, and its predictions for larger runs.

seconds = row * rows / min(workers, cores) + worker * (workers - 1) + round: what is done per row is
shared by as many workers as there are cores, what is told grows with their number, and the rest is
done by each. The three are found by least squares on relative errors, none below zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls


def fitted(rows: list[dict[str, Any]], cores: int) -> dict[str, float]:
    """Return the coefficients and the largest relative error of their predictions."""
    seconds = np.array([row["seconds"] for row in rows])
    design = np.array([features(row["rows"], row["workers"], cores) for row in rows])
    coefficients, _ = nnls(design / seconds[:, None], np.ones(len(rows)))
    predicted = design @ coefficients
    return {
        "row": float(coefficients[0]),
        "worker": float(coefficients[1]),
        "round": float(coefficients[2]),
        "error": float(np.abs(predicted / seconds - 1).max()),
    }


def features(n_rows: float, n_workers: int, cores: int) -> tuple[float, float, float]:
    """Return the factors of the coefficients: rows per core, number of workers, one."""
    return n_rows / min(n_workers, cores), n_workers - 1.0, 1.0


def seconds(model: dict[str, float], n_rows: float, n_workers: int, cores: int) -> float:
    """Return the seconds of a round."""
    factors = features(n_rows, n_workers, cores)
    return float(np.dot(factors, [model["row"], model["worker"], model["round"]]))
