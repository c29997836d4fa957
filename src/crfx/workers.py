"""Workers that train one model together: sums over all of them, and values from each.

All workers run the same training, each on instances of its own.  What depends on all instances, a
gradient of shared tables or the set of labels, is summed or gathered here and is then the same for
each of them, bit by bit, so that they take the same decisions.  By default there is one worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from crfx.errors import BadInstance, located
from crfx.messages import untold

Result = TypeVar("Result")
Told = TypeVar("Told")


class WorkerLost(ConnectionError):
    """Another worker does not answer: it has ended or failed."""


class Workers(Protocol):
    """One of ``size`` workers, the one with number ``rank``.

    Every worker must make every call: the others wait for a worker that does not.
    """

    rank: int
    size: int

    def sum(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Add up the arrays of all workers, of one shape and of float32, float64 or int64."""
        ...

    def gather(self, value: Any) -> list[Any]:
        """Return a value from each worker, in their order; any that can be pickled."""
        ...


class Alone:
    """The only worker."""

    rank, size = 0, 1

    def sum(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the array itself."""
        return array

    def gather(self, value: Any) -> list[Any]:
        """Return the value itself."""
        return [value]


ALONE = Alone()
_CURRENT: ContextVar[Workers] = ContextVar("workers", default=ALONE)


def current() -> Workers:
    """Return the workers that train together in this context."""
    return _CURRENT.get()


@contextmanager
def joined(workers: Workers) -> Iterator[None]:
    """Train together during the context.  The first worker warns for all, which see the same."""
    before = _CURRENT.set(workers)
    try:
        with untold(workers.rank > 0):
            yield
    finally:
        _CURRENT.reset(before)


def sums(workers: Workers, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return the sums of several arrays, by name, in one message per kind of number."""
    if workers.size == 1:
        return dict(arrays)
    found: dict[str, npt.NDArray[Any]] = {}
    for dtype in sorted({array.dtype for array in arrays.values()}, key=str):
        own = {name: array for name, array in arrays.items() if array.dtype == dtype}
        total = workers.sum(np.concatenate([array.reshape(-1) for array in own.values()]))
        borders = np.cumsum([array.size for array in own.values()])[:-1]
        for (name, array), part in zip(own.items(), np.split(total, borders), strict=True):
            found[name] = part.reshape(array.shape)
    return {name: found[name] for name in arrays}


def total(workers: Workers, number: float) -> float:
    """Return the sum of one number over all workers."""
    return float(workers.sum(np.array([number], np.float64))[0])


def count(workers: Workers, number: int) -> int:
    """Return the sum of one whole number over all workers."""
    return int(workers.sum(np.array([number], np.int64))[0])


def place(workers: Workers, n_own: Any) -> tuple[Any, Any]:
    """Return how many things all workers have together, and how many those before this one have.

    ``n_own`` is the number of things of this worker, or an array of such numbers.
    """
    counts = workers.gather(n_own)
    return sum(counts), sum(counts[: workers.rank])


def agreed(
    work: Callable[[], Result], tell: Callable[[Result], tuple[int, Told]]
) -> tuple[Result, list[Told]]:
    """Run ``work`` on the own instances; return its result and what every worker tells of its own.

    ``tell`` returns the number of instances and anything else that the others need.  If ``work``
    raises ValueError anywhere, all workers raise the error of the first such worker, in which
    instances have their numbers among those of all workers; if it is about no instance, it names
    the worker.
    """
    workers = current()
    if workers.size == 1:
        result = work()
        return result, [tell(result)[1]]
    error: BadInstance | str | None = None
    own = None
    try:
        result = work()
        own = tell(result)
    except ValueError as raised:
        bad = located(raised)
        error = bad if isinstance(bad, BadInstance) else str(bad)
    answers = workers.gather((error, own))
    errors = [error for error, _ in answers]
    for rank, error in enumerate(errors):
        if isinstance(error, BadInstance):
            raise error.after(sum(answer[0] for _, answer in answers[:rank])) from None
        if error is not None:
            is_everywhere = all(other == error for other in errors)
            raise ValueError(error if is_everywhere else f"worker {rank}: {error}") from None
    return result, [answer for _, (_, answer) in answers]
