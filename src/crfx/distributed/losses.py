"""How Dask tells that a worker, or the whole cluster, is gone."""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any

LOSSES = (OSError, KeyError, RuntimeError, CancelledError)
"""Raised by calls to workers or to the scheduler: Dask has no one error for these."""

SECONDS_TO_ANSWER = 10.0
"""Of the scheduler, before it is taken for dead."""


class SchedulerLost(RuntimeError):
    """The cluster is gone."""


def scheduler_answers(client: Any) -> bool:
    """Whether the cluster of a client is still there."""
    try:
        client.sync(client.scheduler.identity, callback_timeout=SECONDS_TO_ANSWER)
    except (OSError, RuntimeError):
        return False
    return True
