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
Answer = TypeVar("Answer")


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
    totals: dict[str, npt.NDArray[Any]] = {}
    for dtype in sorted({array.dtype for array in arrays.values()}, key=str):
        same_dtype = {name: array for name, array in arrays.items() if array.dtype == dtype}
        total = workers.sum(np.concatenate([array.reshape(-1) for array in same_dtype.values()]))
        borders = np.cumsum([array.size for array in same_dtype.values()])[:-1]
        for (name, array), part in zip(same_dtype.items(), np.split(total, borders), strict=True):
            totals[name] = part.reshape(array.shape)
    return {name: totals[name] for name in arrays}


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
    work: Callable[[], Result], tell: Callable[[Result], tuple[int, Answer]]
) -> tuple[Result, list[Answer]]:
    """Run ``work`` on this worker's instances; return its result and the answers of all workers.

    ``tell`` returns the number of instances of this worker, and its answer: anything that the other
    workers need.  If ``work`` raises ValueError in some worker, all workers raise the error of the
    first such worker.  Instances in it are numbered among those of all workers; if it is about no
    instance, it names the worker.
    """
    workers = current()
    if workers.size == 1:
        result = work()
        return result, [tell(result)[1]]
    error: BadInstance | str | None = None
    answer = None
    try:
        result = work()
        answer = tell(result)
    except ValueError as raised:
        bad = located(raised)
        error = bad if isinstance(bad, BadInstance) else str(bad)
    answers = workers.gather((error, answer))
    errors = [error for error, _ in answers]
    for rank, error in enumerate(errors):
        if isinstance(error, BadInstance):
            raise error.after(sum(n for _, (n, _) in answers[:rank])) from None
        if error is not None:
            is_everywhere = all(other == error for other in errors)
            raise ValueError(error if is_everywhere else f"worker {rank}: {error}") from None
    return result, [shared for _, (_, shared) in answers]
