"""Which workers of a Dask cluster are there, and how Dask reports that some are gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

LOSSES = (OSError, KeyError, RuntimeError, CancelledError)
"""Raised by calls to workers or to the scheduler: Dask has no one error for these."""
MOST_LOSSES = 5
"""Failures in a row after which a training or prediction is given up."""
SECONDS_TO_ANSWER = 10.0
"""Seconds to wait for the scheduler before it counts as lost."""
SECONDS_BETWEEN_LOOKS = 0.2


class SchedulerLost(RuntimeError):
    """The cluster is gone."""

    def __init__(self, message: str = "the scheduler does not answer") -> None:
        super().__init__(message)


def scheduler_answers(client: Any) -> bool:
    """Return whether the cluster of a client is still there."""
    if client.scheduler is None:  # the client was closed
        return False
    try:
        client.sync(client.scheduler.identity, callback_timeout=SECONDS_TO_ANSWER)
    except (OSError, RuntimeError):
        return False
    return True


def available_workers(client: Any, chosen: list[str] | None) -> list[str]:
    """Return the addresses of the ``chosen`` workers (None: all) that are there, in fixed order."""
    if client.scheduler is None:
        raise SchedulerLost("the client is closed")
    try:
        there = set(client.nthreads())
    except (OSError, RuntimeError) as error:
        raise SchedulerLost from error
    return sorted(there) if chosen is None else [own for own in chosen if own in there]


def awaited(find: Callable[[], list[str]], n_wanted: int, seconds: float) -> list[str]:
    """Return what ``find`` returns once it finds as many workers, or when time is up."""
    end = time.monotonic() + seconds
    while len(addresses := find()) < n_wanted and time.monotonic() < end:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return addresses
