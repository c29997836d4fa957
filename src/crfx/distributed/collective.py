"""XGBoost's collective as a communicator: the workers that grow trees together sum the rest too."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.potentials.xgboost_learner import plain_errors
from crfx.workers import joined

SECONDS_TO_WAIT = 7 * 24 * 3600
"""For other workers, who may read files, or judge by a slow metric.  Of the dead Dask tells."""


class Collective:
    """The communicator of this thread, which XGBoost holds; see `member`.

    ``n_bytes`` counts what was summed, without what XGBoost tells for itself.
    """

    def __init__(self) -> None:
        from xgboost import collective

        self.rank, self.size = collective.get_rank(), collective.get_world_size()
        self.n_bytes = 0

    def sum(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """O(bytes) on the wire of each worker, in a ring."""
        from xgboost import collective

        return self._reduced(array, collective.Op.SUM)

    def gather(self, value: Any) -> list[Any]:
        """Every worker writes into its own part of one array: two messages, O(bytes of all)."""
        from xgboost import collective

        own = np.frombuffer(pickle.dumps(value), np.uint8)
        sizes = np.zeros(self.size, np.int64)
        sizes[self.rank] = len(own)
        sizes = self._reduced(sizes, collective.Op.SUM)
        ends = np.cumsum(sizes)
        parts = np.zeros(ends[-1], np.uint8)
        parts[ends[self.rank] - len(own) : ends[self.rank]] = own
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
def member(arguments: dict[str, Any], number: int) -> Iterator[Collective]:
    """Be worker ``number`` of those that a tracker brings together, in this thread."""
    import xgboost
    from xgboost import collective

    with xgboost.config_context(verbosity=0), plain_errors():
        collective.init(
            **arguments,
            dmlc_task_id=f"{number:06d}",
            dmlc_retry=1,  # at the end a tracker that is gone would be looked for again and again
            dmlc_timeout=SECONDS_TO_WAIT,
        )
        try:
            communicator = Collective()
            with joined(communicator):
                yield communicator
        except BaseException:
            with suppress(xgboost.core.XGBoostError):  # the others may be gone: that is known
                collective.finalize()
            raise
        collective.finalize()


@contextmanager
def tracker(n_workers: int, host: str) -> Iterator[dict[str, Any]]:
    """What workers need to be told to find each other."""
    import xgboost
    from xgboost.tracker import RabitTracker

    with xgboost.config_context(verbosity=0):
        found = RabitTracker(n_workers=n_workers, host_ip=host, sortby="task")
        found.start()
        try:
            yield dict(found.worker_args())
        finally:
            _forget(found)


def _forget(found: Any) -> None:
    """XGBoost complains of a tracker whose workers went away: that is told by their results."""
    import xgboost

    with suppress(xgboost.core.XGBoostError):
        found.free()
