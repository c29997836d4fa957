"""Sweeps of several workers: each over its own instances, then all take the mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crfx.trainers.sgd import Descent
from crfx.workers import ALONE, Workers, current

MEETINGS = 10
"""Of workers, in a sweep: with fewer they learn worse than one alone, with more hardly better."""


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


def averaged(parameters: Averageable, weight: float, communicator: Workers) -> None:
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


@dataclass(eq=False)
class Sweepers:
    """Workers that sweep over instances of their own, and meet ``MEETINGS`` times in a sweep.

    They go on with the mean of their parameters, and a part of the way on which it has moved from
    meeting to meeting: what each of them has learned would count for a W-th among W workers, and
    with momentum 1 - 1 / W it counts in full (Chen and Huo 2016, "Scalable training of deep
    learning machines by incremental block training with intra-block parallel optimization and
    blockwise model-update filtering").  Where shares differ, W is the inverse of the sum of their
    squares.

    ``counts`` are the numbers of instances by worker; ``velocity`` (parameters,) is how the mean
    moved when they last met, None before.  16 bytes per parameter and meeting on the wire, and 16 a
    parameter in memory.
    """

    counts: Sequence[int]
    communicator: Workers = ALONE
    velocity: npt.NDArray[Any] | None = None

    @classmethod
    def who_have(cls, n_own: int, velocity: npt.NDArray[Any] | None = None) -> Sweepers:
        """All that train together here and now, this one with so many instances."""
        return cls(current().gather(n_own), current(), velocity)

    @property
    def share(self) -> float:
        """Of all instances that this one has, and so of penalties, which are shared out."""
        return self.counts[self.communicator.rank] / max(sum(self.counts), 1)

    def own_seed(self, seed: int) -> int:
        """A seed of draws that are to differ by worker; the first keeps the one there is."""
        return (seed + self.communicator.rank) % (2**31 - 1)

    def told(self, find: Callable[[], float]) -> float:
        """What the first worker that has instances finds."""
        finder = next((rank for rank, n in enumerate(self.counts) if n), 0)
        own = find() if self.communicator.rank == finder else None
        found: float = self.communicator.gather(own)[finder]
        return found

    def sweep(
        self, descent: Descent, number: int, parameters: Averageable, mini_batch: Any
    ) -> None:
        """One pass over the instances, after which all have the same parameters."""
        if self.communicator.size == 1:
            descent.sweep(number, parameters, mini_batch)
            return
        before = _values(parameters)
        for _ in descent.sweep_in_parts(number, MEETINGS, parameters, mini_batch):
            before = self._meet(parameters, before)

    def agree_on(self, arrays: Sequence[npt.NDArray[np.float32]]) -> None:
        """Let the arrays of all be their mean, in one message."""
        if self.communicator.size == 1:
            return
        own = np.concatenate([array.reshape(-1) for array in arrays]).astype(np.float64)
        mean = self.communicator.sum(self.share * own)
        borders = np.cumsum([array.size for array in arrays])[:-1]
        for array, part in zip(arrays, np.split(mean, borders), strict=True):
            array[...] = part.reshape(array.shape)

    def _meet(self, parameters: Averageable, before: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Go on from the mean, and beyond; returns where."""
        averaged(parameters, self.counts[self.communicator.rank], self.communicator)
        numbers, arrays = parameters.state()
        values = arrays["values"]
        if self.velocity is not None:
            values = values + self._momentum * self.velocity
            parameters.restore(numbers, {**arrays, "values": values})
            values = _values(parameters)  # as they are kept
        self.velocity = values - before
        return values.copy()

    @property
    def _momentum(self) -> float:
        n_all = max(sum(self.counts), 1)
        return 1 - sum((n / n_all) ** 2 for n in self.counts)


def _values(parameters: Averageable) -> npt.NDArray[Any]:
    return parameters.state()[1]["values"].copy()
