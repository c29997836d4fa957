"""The available workers of a Dask cluster, and the errors that report lost ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

LOSSES = (OSError, KeyError, RuntimeError, CancelledError)
"""Errors of calls to lost workers or to the scheduler; Dask has no single one for them."""
MOST_LOSSES = 5
"""Losses in a row after which a training or prediction fails."""
SECONDS_TO_ANSWER = 10.0
"""Seconds to wait for the scheduler before it counts as lost."""
SECONDS_BETWEEN_LOOKS = 0.2


class SchedulerLost(RuntimeError):
    """The scheduler of the cluster does not answer, or the client is closed."""

    def __init__(self, message: str = "the scheduler does not answer") -> None:
        super().__init__(message)


def scheduler_answers(client: Any) -> bool:
    """Return whether the cluster of a client still answers."""
    if client.scheduler is None:  # the client was closed
        return False
    try:
        client.sync(client.scheduler.identity, callback_timeout=SECONDS_TO_ANSWER)
    except (OSError, RuntimeError):
        return False
    return True


def available_workers(client: Any, chosen: list[str] | None) -> list[str]:
    """Return the addresses of available workers, of the ``chosen`` ones or all, in fixed order."""
    if client.scheduler is None:
        raise SchedulerLost("the client is closed")
    try:
        there = set(client.nthreads())
    except (OSError, RuntimeError) as error:
        raise SchedulerLost from error
    return sorted(there) if chosen is None else [each for each in chosen if each in there]


def awaited(find: Callable[[], list[str]], n_wanted: int, seconds: float) -> list[str]:
    """Return the result of ``find`` once it has as many workers, or after some seconds."""
    end = time.monotonic() + seconds
    while len(addresses := find()) < n_wanted and time.monotonic() < end:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return addresses
