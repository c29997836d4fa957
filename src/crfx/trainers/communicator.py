"""What workers tell each other that train one model together: sums, and a word from each.

All workers run the same training, each on instances of its own.  What depends on all instances, a
gradient of shared tables or the set of labels, is summed or gathered here and is then the same for
each of them, bit by bit, so that they take the same decisions.  By default there is one worker,
and nothing is told to anyone: trainers exist once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crfx.messages import untold
from crfx.potentials.xgboost_learner import WorkerLost

__all__ = [
    "ALONE",
    "Alone",
    "Communicator",
    "WorkerLost",
    "count",
    "current",
    "joined",
    "place",
    "sums",
    "total",
]


class Communicator(Protocol):
    """One of ``size`` workers, the one with number ``rank``.

    Every worker must come to every call: a worker that does not is waited for.
    """

    rank: int
    size: int

    def sum(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Add up the arrays of all workers, of one shape and of float32, float64 or int64."""
        ...

    def gather(self, value: Any) -> list[Any]:
        """A value from each worker, in their order; any that can be pickled."""
        ...


class Alone:
    """The only worker."""

    rank, size = 0, 1

    def sum(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The array itself."""
        return array

    def gather(self, value: Any) -> list[Any]:
        """The value itself."""
        return [value]


ALONE = Alone()
_CURRENT: ContextVar[Communicator] = ContextVar("communicator", default=ALONE)


def current() -> Communicator:
    """Who trains together here and now."""
    return _CURRENT.get()


@contextmanager
def joined(communicator: Communicator) -> Iterator[None]:
    """Train together, as long as it lasts.  The first worker warns for all, who see the same."""
    before = _CURRENT.set(communicator)
    try:
        with untold(communicator.rank > 0):
            yield
    finally:
        _CURRENT.reset(before)


def sums(
    communicator: Communicator, arrays: Mapping[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """The sums of several arrays, by name, in one message per kind of number."""
    if communicator.size == 1:
        return dict(arrays)
    found: dict[str, npt.NDArray[Any]] = {}
    for dtype in sorted({array.dtype for array in arrays.values()}, key=str):
        own = {name: array for name, array in arrays.items() if array.dtype == dtype}
        total = communicator.sum(np.concatenate([array.reshape(-1) for array in own.values()]))
        borders = np.cumsum([array.size for array in own.values()])[:-1]
        for (name, array), part in zip(own.items(), np.split(total, borders), strict=True):
            found[name] = part.reshape(array.shape)
    return {name: found[name] for name in arrays}


def total(communicator: Communicator, number: float) -> float:
    """The sum of one number."""
    return float(communicator.sum(np.array([number], np.float64))[0])


def count(communicator: Communicator, number: int) -> int:
    """The sum of one whole number."""
    return int(communicator.sum(np.array([number], np.int64))[0])


def place(communicator: Communicator, n_own: int) -> tuple[int, int]:
    """How many things all workers have, of which this one has ``n_own``, and where its own begin:
    those of the first worker come first.
    """
    counts = communicator.gather(n_own)
    return sum(counts), sum(counts[: communicator.rank])
