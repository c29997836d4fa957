"""Workers joined by XGBoost's collective, which sums trees and everything else."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from crfx.potentials.xgboost_learner import plain_errors
from crfx.workers import WorkerLost, Workers, joined

Result = TypeVar("Result")

SECONDS_TO_WAIT = 7 * 24 * 3600
"""Seconds to wait for other workers, which may be reading files; Dask reports dead ones."""


class CollectiveWorkers:
    """The workers that this thread has joined, see `member`.

    ``n_bytes`` is the number of bytes summed, without XGBoost's own messages.
    """

    def __init__(self) -> None:
        from xgboost import collective

        self.rank, self.size = collective.get_rank(), collective.get_world_size()
        self.n_bytes = 0

    def sum(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Add up the arrays of all workers, in a ring: each sends O(bytes)."""
        from xgboost import collective

        return self._reduced(array, collective.Op.SUM)

    def gather(self, value: Any) -> list[Any]:
        """Return a value from each worker; each writes its part of one array: O(bytes of all)."""
        from xgboost import collective

        message = np.frombuffer(pickle.dumps(value), np.uint8)
        sizes = np.zeros(self.size, np.int64)
        sizes[self.rank] = len(message)
        ends = np.cumsum(self._reduced(sizes, collective.Op.SUM))
        parts = np.zeros(ends[-1], np.uint8)
        parts[ends[self.rank] - len(message) : ends[self.rank]] = message
        parts = self._reduced(parts, collective.Op.BITWISE_OR)
        return [pickle.loads(part.tobytes()) for part in np.split(parts, ends[:-1])]

    def _reduced(self, array: npt.NDArray[Any], how: Any) -> npt.NDArray[Any]:
        from xgboost import collective

        self.n_bytes += array.nbytes
        if not array.size:
            return array
        with plain_errors():
            return collective.allreduce(np.ascontiguousarray(array), how).reshape(array.shape)


@contextmanager
def member(arguments: dict[str, Any], number: int) -> Iterator[CollectiveWorkers]:
    """Join the workers of a tracker as worker ``number``, in this thread."""
    import xgboost
    from xgboost import collective

    with xgboost.config_context(verbosity=0), plain_errors():
        collective.init(
            **arguments,
            dmlc_task_id=f"{number:06d}",
            dmlc_retry=1,  # or it would look for a tracker that has ended again and again
            dmlc_timeout=SECONDS_TO_WAIT,
        )
        try:
            workers = CollectiveWorkers()
            with joined(workers):
                yield workers
        except BaseException:
            with suppress(xgboost.core.XGBoostError):  # the other workers may be gone
                collective.finalize()
            raise
        collective.finalize()


@contextmanager
def tracker(n_workers: int, host: str) -> Iterator[dict[str, Any]]:
    """Yield the arguments by which workers find each other."""
    import xgboost
    from xgboost.tracker import RabitTracker

    with xgboost.config_context(verbosity=0):
        rabit = RabitTracker(n_workers=n_workers, host_ip=host, sortby="task")
        rabit.start()
        try:
            yield dict(rabit.worker_args())
        finally:
            with suppress(xgboost.core.XGBoostError):  # workers are gone, as their results say
                rabit.free()


def together(n_workers: int, work: Callable[[Workers], Result]) -> list[Result]:
    """Run ``work`` in threads that train together, and return their results; for tests.

    If a thread fails, raise its error, not that of the others, which have lost a worker.

    >>> import numpy as np
    >>> together(3, lambda workers: int(workers.sum(np.array([workers.rank]))[0]))
    [3, 3, 3]
    """
    results: list[Any] = [None] * n_workers
    errors: list[BaseException | None] = [None] * n_workers

    def run(number: int, arguments: dict[str, Any]) -> None:
        try:
            with member(arguments, number) as workers:
                results[number] = work(workers)
        except BaseException as error:
            errors[number] = error

    with tracker(n_workers, "127.0.0.1") as arguments:
        threads = [
            threading.Thread(target=copy_context().run, args=(run, number, arguments))
            for number in range(n_workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for error in sorted(filter(None, errors), key=lambda each: isinstance(each, WorkerLost)):
        raise error
    return results
