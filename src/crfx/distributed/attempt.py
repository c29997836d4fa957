"""One attempt at a training on the workers of a cluster: until it ends, or a worker is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from crfx.distributed.shares import Share
from crfx.distributed.worker import Job, Outcome, close_tracker, open_tracker, train

SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_END = 15.0
"""How long workers may take to notice that another is lost.  XGBoost may wait for the dead for
ever: then they are started anew."""
MOST_MESSAGES = 2
"""That wait for the client: of models that are kept the newest will do."""


class Attempt:
    """Has a task for each of the workers at ``addresses``.

    ``hear`` (kind, rounds, what) is called with what the first worker tells, ``restart`` with the
    addresses of workers that do not end.
    """

    def __init__(
        self,
        client: Any,
        name: str,
        addresses: list[str],
        hear: Callable[[str, int, Any], None],
        restart: Callable[[list[str]], None],
    ) -> None:
        from distributed import Queue

        self.client, self.name, self.addresses = client, name, addresses
        self.hear, self.restart = hear, restart
        self.queue = Queue(name, client=client, maxsize=MOST_MESSAGES)
        self._futures: list[Any] = []

    def outcomes(
        self, job: Job, checkpoint: bytes | None, shares: list[Share], watched: list[Share | None]
    ) -> list[Outcome]:
        """How it ended for each worker.  KeyError, OSError: one was gone before it began."""
        meeting = self._at_first(open_tracker, len(shares))
        for number, (share, other) in enumerate(zip(shares, watched, strict=True)):
            where = self.addresses[number]
            told = [self._sent(each, where) for each in (job, checkpoint)]
            own = self._placed(share, where)
            others = None if other is None else self._placed(other, where)
            self._futures.append(
                self.client.submit(
                    train, number, meeting, *told, own, others, workers=[where], pure=False
                )
            )
        return self._heard()

    def end(self) -> None:
        """Let no worker go on, nor wait for others."""
        with suppress(Exception):  # who does not answer is gone
            self.client.cancel(self._futures, force=True)
            self.queue.close()
            self._give_up_meeting(set(self.client.nthreads()))

    def _at_first(self, work: Any, *arguments: Any) -> Any:
        """Call a function in the process of the first worker, beside what that is busy with."""
        first = self.addresses[0]
        return self.client.run(work, self.name, *arguments, workers=[first])[first]

    def _sent(self, value: Any, address: str) -> Any:
        # In a list: Dask would take a dict or a list apart.
        return self.client.scatter([value], workers=[address], hash=False)[0]

    def _placed(self, share: Share, address: str) -> tuple[Any, list[Any]]:
        """A share whose data lie with the worker: what the client holds is sent there."""
        given = [
            each if _holds_futures(each) else self._sent(each, address) for each in share.given
        ]
        return share.load, given

    def _heard(self) -> list[Outcome]:
        """Those of whom nothing is heard are lost.

        Once one has failed, the others are waited for a little: theirs may be the reason.
        """
        found: dict[int, Outcome] = {}
        end = None
        while len(found) < len(self._futures):
            self._take_messages()
            for number, future in enumerate(self._futures):
                if number not in found and future.done():
                    found[number] = _outcome(future)
            there = set(self.client.nthreads())
            silent = {own for number, own in enumerate(self.addresses) if number not in found}
            failed = any(own.is_lost or own.error is not None for own in found.values())
            if failed or silent - there:
                if end is None:
                    end = time.monotonic() + SECONDS_TO_END
                    self._give_up_meeting(there)
                if not silent & there:
                    break
                if time.monotonic() > end:
                    self.restart(sorted(silent & there))
                    break
            time.sleep(SECONDS_BETWEEN_LOOKS)
        self._take_messages()
        return [found.get(number, Outcome(is_lost=True)) for number in range(len(self._futures))]

    def _give_up_meeting(self, there: set[str]) -> None:
        """Workers that still look for each other will not find all."""
        if self.addresses[0] in there:  # the dead would be waited for
            with suppress(Exception):
                self._at_first(close_tracker)

    def _take_messages(self) -> None:
        while self.queue.qsize():
            self.hear(*self.queue.get())


def _outcome(future: Any) -> Outcome:
    if future.status == "finished":
        found: Outcome = future.result()
        return found
    if future.status == "error":
        return Outcome(error=future.exception())
    return Outcome(is_lost=True)  # cancelled, with a worker that held what it needs


def _holds_futures(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_futures(each) for each in value.values())
    if isinstance(value, list):
        return bool(value) and _holds_futures(value[0])
    return hasattr(value, "key") and hasattr(value, "client")
