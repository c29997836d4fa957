"""A model of what a round costs, fitted to what was measured, and what it says of larger runs.

seconds = row * rows / min(workers, cores) + worker * (workers - 1) + round: what is done per row is
shared by as many workers as there are cores, what is told grows with their number, and the rest is
done by each. The three are found by least squares on relative errors, none below zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls


def fitted(rows: list[dict[str, Any]], cores: int) -> dict[str, float]:
    """The coefficients, and the largest relative error of what they say."""
    seconds = np.array([row["seconds"] for row in rows])
    design = np.array([features(row["rows"], row["workers"], cores) for row in rows])
    found, _ = nnls(design / seconds[:, None], np.ones(len(rows)))
    told = design @ found
    return {
        "row": float(found[0]),
        "worker": float(found[1]),
        "round": float(found[2]),
        "error": float(np.abs(told / seconds - 1).max()),
    }


def features(n_rows: float, n_workers: int, cores: int) -> tuple[float, float, float]:
    """What the coefficients are multiplied by: rows that a core has, workers to tell, one."""
    return n_rows / min(n_workers, cores), n_workers - 1.0, 1.0


def seconds(model: dict[str, float], n_rows: float, n_workers: int, cores: int) -> float:
    """Of a round."""
    told = features(n_rows, n_workers, cores)
    return float(np.dot(told, [model["row"], model["worker"], model["round"]]))
