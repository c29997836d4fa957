"""How Dask tells that a worker, or the whole cluster, is gone; and which workers are there."""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any

LOSSES = (OSError, KeyError, RuntimeError, CancelledError)
"""Raised by calls to workers or to the scheduler: Dask has no one error for these."""

SECONDS_TO_ANSWER = 10.0
"""Of the scheduler, before it is taken for dead."""


class SchedulerLost(RuntimeError):
    """The cluster is gone."""

    def __init__(self, told: str = "the scheduler does not answer") -> None:
        super().__init__(told)


def scheduler_answers(client: Any) -> bool:
    """Whether the cluster of a client is still there."""
    if client.scheduler is None:  # the client was closed
        return False
    try:
        client.sync(client.scheduler.identity, callback_timeout=SECONDS_TO_ANSWER)
    except (OSError, RuntimeError):
        return False
    return True


def workers_there(client: Any, asked: list[str] | None) -> list[str]:
    """The addresses of those workers that were asked for and are there, in an order that stays.

    None asks for all.
    """
    if client.scheduler is None:
        raise SchedulerLost("the client is closed")
    try:
        there = set(client.nthreads())
    except (OSError, RuntimeError) as error:
        raise SchedulerLost from error
    return sorted(there) if asked is None else [own for own in asked if own in there]
