"""Sweeps of several workers: each over its own instances, then all take the mean."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crfx.trainers.communicator import Communicator


class Averageable(Protocol):
    """Parameters with a running average, such as `crfx.trainers.sgd.AveragedParameters`."""

    def state(self) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
        """Numbers ``product``, ``steps`` and ``n_counted``; arrays ``values`` and ``sum``, which is
        the average times ``n_counted``.
        """
        ...

    def restore(self, numbers: dict[str, float], arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Go on where `state` was taken."""
        ...


def averaged(parameters: Averageable, weight: float, communicator: Communicator) -> None:
    """Give all workers the mean of their parameters, and of what these were on average.

    A worker counts by its ``weight``, the number of its instances; one without any has weight 0.
    How many steps the average is over is a mean too, since workers may have taken more or fewer: so
    all of them go on from the same state, which a checkpoint of any of them holds.  One message, 16
    bytes per parameter.
    """
    if communicator.size == 1:
        return
    numbers, arrays = parameters.state()
    values, n_counted = arrays["values"], numbers["n_counted"]
    mean = arrays["sum"] / max(n_counted, 1.0)
    told = np.concatenate([values, mean, [n_counted, 1.0]], dtype=np.float64)
    told = communicator.sum(weight * told)
    told /= told[-1]
    common = float(round(told[-2]))
    values, mean = np.split(told[:-2], 2)
    # Shrinkages that are caught up with, as they are in a state, may be counted anew.
    parameters.restore(
        {"product": 1.0, "steps": 0.0, "n_counted": common},
        {"values": values, "sum": mean * common},
    )
