"""One call of ``fit`` on a cluster, seen from the client: share out, train, recover.

If a worker is lost, the others stop, and training resumes from the last checkpoint.  If a worker
comes back in time, the number of workers is the same, and so are shares, sums and the model;
otherwise training continues with the remaining workers.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import signature
from itertools import chain
from typing import Any

from sklearn.utils import check_random_state

from crfx.distributed.availability import (
    LOSSES,
    MOST_LOSSES,
    SECONDS_BETWEEN_LOOKS,
    SchedulerLost,
    available_workers,
    awaited,
    scheduler_answers,
)
from crfx.distributed.checkpoints import Kept
from crfx.distributed.shares import Instances, Share, holds_futures
from crfx.distributed.worker import Job, Outcome, close_tracker, open_tracker, train
from crfx.estimators.base import rounds_argument, rounds_done
from crfx.messages import warn
from crfx.trainers.callbacks import Progress
from crfx.trainers.progress import ProgressBar

SECONDS_TO_END = 15.0
"""Time for workers to notice that another is lost.  XGBoost may wait for it for ever: after this
time such workers are restarted."""
MOST_MESSAGES = 2
"""Limit for the queue to the client, which needs the newest checkpoint only."""


@dataclass
class Record:
    """Figures of a training: the number of losses of workers, and the bytes that the first worker
    had summed after each round since the last loss, without XGBoost's own messages.
    """

    n_losses: int = 0
    bytes_by_round: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Run:
    """One training on a cluster.

    ``data`` and ``watched`` are shared out; ``common`` are the arguments of ``fit`` that are the
    same for all workers.  The last six fields are arguments of `crfx.distributed.cluster`.
    """

    client: Any
    estimator: Any
    data: Instances
    watched: Instances | None
    common: dict[str, Any]
    workers: list[str] | None
    checkpoint: Any
    resume: bool
    every: int
    seconds: float
    wait: float

    def __post_init__(self) -> None:
        arguments = self.estimator.get_params(deep=False)
        self._sent = type(self.estimator)(**{**arguments, "verbose": 0})
        fingerprint = self.data.fingerprint()
        self.kept = Kept.begin(self.checkpoint, self.resume, self._sent, fingerprint)
        self._write_error: OSError | None = None
        if self._sent.random_state is None:  # every worker would draw its own seed otherwise
            self._sent.random_state = int(check_random_state(None).randint(2**31 - 1))
        self._bar: ProgressBar | None = None
        self._left_out: set[str] = set()
        self.record = Record()

    def fit(self) -> Any:
        """Return the trained estimator; raise the error of a worker that failed."""
        if self.estimator.verbose:
            n_rounds = getattr(self.estimator, rounds_argument(self.estimator))
            self._bar = ProgressBar(n_rounds or 0)
        try:
            outcomes = self._outcomes()
            if self._bar is not None and outcomes[0].estimator is not None:
                done = outcomes[0].estimator
                self._bar(Progress(rounds_done(done), done.history_))
        finally:
            if self._bar is not None:
                self._bar.close()
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
        self.kept.forget()
        self.record.bytes_by_round = outcomes[0].bytes_by_round
        for text, category in dict.fromkeys(chain(*(outcome.warned for outcome in outcomes))):
            warn(text, category)
        return outcomes[0].estimator

    def _outcomes(self) -> list[Outcome]:
        """Train until an attempt ends without the loss of a worker."""
        n_wanted, n_losses = len(self._addresses()), 0
        while True:
            before = self.kept.n_rounds
            outcomes = self._attempted(n_wanted)
            is_lost = any(outcome.is_lost for outcome in outcomes) or not outcomes
            if not is_lost or any(outcome.error is not None for outcome in outcomes):
                return outcomes
            self.record.n_losses += 1
            n_losses = 1 if self.kept.n_rounds > before else n_losses + 1
            if n_losses > MOST_LOSSES:
                raise RuntimeError(self._hint(f"workers were lost {n_losses} times in a row"))
            warn(f"a worker was lost: training goes on from round {self.kept.n_rounds}")

    def _attempted(self, n_wanted: int) -> list[Outcome]:
        """Return how an attempt ended for each worker; empty if a worker was lost at its start."""
        addresses = awaited(self._addresses, max(n_wanted, 1), self.wait)
        if not addresses:
            raise RuntimeError(self._hint("the cluster has no workers"))
        shares = self.data.shares(min(len(addresses), n_wanted or len(addresses)))
        watched: list[Share | None] = [None] * len(shares)
        if self.watched is not None:
            nothing = Share(dict, [{"X": [], target_of(self.estimator): []}])
            watched = [*self.watched.shares(len(shares))]
            watched += [nothing] * (len(shares) - len(watched))
        name = f"crfx-{uuid.uuid4().hex}"
        shows_progress = self._bar is not None
        job = Job(name, self._sent, self.common, self.every, self.seconds, shows_progress)
        attempt = Attempt(self.client, name, addresses[: len(shares)], self._receive, self._restart)
        try:
            outcomes = attempt.outcomes(job, self.kept.model, shares, watched)
        except BaseException as error:
            if not isinstance(error, LOSSES) or error is self._write_error:
                attempt.end()
                raise
            if not scheduler_answers(self.client):
                raise SchedulerLost(self._hint(str(SchedulerLost()))) from error
            outcomes = []
        attempt.end()
        return outcomes

    def _hint(self, problem: str) -> str:
        """Add to a message from where training can be resumed."""
        if self.kept.path is None:
            return f"{problem}; with checkpoint= a model on disk would be left to go on from"
        if self.kept.model is None:
            return (
                f"{problem}, before a model was kept: begin anew, or let every and seconds be less"
            )
        return (
            f"{problem}; the model after {self.kept.n_rounds} rounds is in {self.kept.path}: the "
            "same call with resume=True goes on from there"
        )

    def _addresses(self) -> list[str]:
        """Return the workers that may train, in fixed order."""
        try:
            there = available_workers(self.client, self.workers)
        except SchedulerLost as lost:
            raise SchedulerLost(self._hint(str(lost))) from lost
        return [address for address in there if address not in self._left_out]

    def _restart(self, addresses: list[str]) -> None:
        """Restart workers that do not end; exclude those that cannot be restarted."""
        try:
            self.client.restart_workers(addresses, raise_for_error=False)
        except ValueError:  # they have no nanny
            self._left_out.update(addresses)

    def _receive(self, kind: str, n_rounds: int, content: Any) -> None:
        """Handle a message of the first worker: a checkpoint, or progress."""
        if kind == "checkpoint":
            try:
                self.kept.keep(n_rounds, bytes(content))
            except OSError as error:
                self._write_error = error  # not a loss of the cluster
                raise
        elif self._bar is not None:
            self._bar(Progress(n_rounds, {name: [value] for name, value in content.items()}))


@dataclass(eq=False)
class Attempt:
    """One attempt at a training, until it ends or a worker is lost: one task per address.

    ``receive`` (kind, rounds, content) is called for messages of the first worker, ``restart`` with
    the addresses of workers that do not end.
    """

    client: Any
    name: str
    addresses: list[str]
    receive: Callable[[str, int, Any], None]
    restart: Callable[[list[str]], None]

    def __post_init__(self) -> None:
        from distributed import Queue

        self.queue = Queue(self.name, client=self.client, maxsize=MOST_MESSAGES)
        self._futures: list[Any] = []

    def outcomes(
        self, job: Job, checkpoint: bytes | None, shares: list[Share], watched: list[Share | None]
    ) -> list[Outcome]:
        """Return how training ended for each worker; raise one of `LOSSES` if one was lost."""
        meeting = self._at_first(open_tracker, len(shares))
        for number, (share, other) in enumerate(zip(shares, watched, strict=True)):
            where = self.addresses[number]
            sent = [self._sent(each, where) for each in (job, checkpoint)]
            placed = [
                None if part is None else self._placed(part, where) for part in (share, other)
            ]
            self._futures.append(
                self.client.submit(
                    train, number, meeting, *sent, *placed, workers=[where], pure=False
                )
            )
        return self._awaited_outcomes()

    def end(self) -> None:
        """Stop all workers, also those that wait for others."""
        with suppress(Exception):  # a worker that does not answer is gone
            self.client.cancel(self._futures, force=True)
            self.queue.close()
            self._close_meeting(set(self.client.nthreads()))

    def _at_first(self, work: Any, *arguments: Any) -> Any:
        """Call a function in the process of the first worker, while it may be training."""
        first = self.addresses[0]
        return self.client.run(work, self.name, *arguments, workers=[first])[first]

    def _sent(self, value: Any, address: str) -> Any:
        # In a list: Dask would take a dict or a list apart.
        return self.client.scatter([value], workers=[address], hash=False)[0]

    def _placed(self, share: Share, address: str) -> tuple[Any, list[Any]]:
        """Return a share whose data are sent to a worker, unless Dask holds them."""
        return share.load, [
            each if holds_futures(each) else self._sent(each, address) for each in share.data
        ]

    def _awaited_outcomes(self) -> list[Outcome]:
        """Wait for all workers; those that do not answer are lost.

        After a failure wait a little for the others, whose errors may be its cause.
        """
        outcomes: dict[int, Outcome] = {}
        end = None
        while len(outcomes) < len(self._futures):
            self._take_messages()
            for number, future in enumerate(self._futures):
                if number not in outcomes and future.done():
                    outcomes[number] = _outcome(future)
            there = set(self.client.nthreads())
            silent = {each for number, each in enumerate(self.addresses) if number not in outcomes}
            failed = any(each.is_lost or each.error is not None for each in outcomes.values())
            if failed or silent - there:
                if end is None:
                    end = time.monotonic() + SECONDS_TO_END
                    self._close_meeting(there)
                if not silent & there:
                    break
                if time.monotonic() > end:
                    self.restart(sorted(silent & there))
                    break
            time.sleep(SECONDS_BETWEEN_LOOKS)
        self._take_messages()
        lost = Outcome(is_lost=True)
        return [outcomes.get(number, lost) for number in range(len(self._futures))]

    def _close_meeting(self, there: set[str]) -> None:
        """Stop workers that are still looking for each other."""
        if self.addresses[0] in there:  # a call to a dead worker would wait
            with suppress(Exception):
                self._at_first(close_tracker)

    def _take_messages(self) -> None:
        while self.queue.qsize():
            self.receive(*self.queue.get())


def _outcome(future: Any) -> Outcome:
    if future.status == "finished":
        outcome: Outcome = future.result()
        return outcome
    if future.status == "error":
        return Outcome(error=future.exception())
    return Outcome(is_lost=True)  # cancelled, with a worker that held what it needs


def target_of(estimator: Any) -> str:
    """Return the name of the argument of ``fit`` that holds the labels."""
    return "relevance" if "relevance" in signature(type(estimator).fit).parameters else "y"
