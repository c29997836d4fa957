"""One call of ``fit`` on a cluster, from the client: share out, train, recover.

Where a worker is lost, the others end, and training goes on from the last model that was kept: with
as many workers as before where one comes back in time, so that shares and sums are the same and so
is the model; else with those that are left.
"""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from sklearn.utils import check_random_state

from crfx.distributed.checkpoints import Kept
from crfx.distributed.shares import Instances, Share
from crfx.distributed.worker import Job, Outcome, close_tracker, open_tracker, train
from crfx.estimators.counting import rounds_argument
from crfx.messages import warn
from crfx.trainers.callbacks import Progress
from crfx.trainers.progress import ProgressBar

MOST_LOSSES = 5
"""In a row, without a model kept in between: then a run is given up."""
SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_END = 15.0
"""How long workers may take to notice that another is lost.  XGBoost may wait for the dead for
ever: then they are started anew."""


class SchedulerLost(RuntimeError):
    """The cluster is gone."""


class Lost(Exception):
    """A worker is gone; training may go on without it or when it is back."""


@dataclass(eq=False)
class ClusterOptions:
    """How to train; see `crfx.distributed.cluster`."""

    workers: list[str] | None
    checkpoint: Any
    resume: bool
    every: int
    seconds: float
    wait: float


@dataclass
class Record:
    """What a training was like: how often workers were lost, and how many bytes the first worker
    had summed after each round since the last loss, without what XGBoost tells for itself.
    """

    n_losses: int = 0
    bytes_by_round: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Run:
    """One training.  ``data`` and ``watched`` are shared out; ``common`` goes to all workers."""

    client: Any
    options: ClusterOptions
    estimator: Any
    data: Instances
    watched: Instances | None
    common: dict[str, Any]

    def __post_init__(self) -> None:
        arguments = self.estimator.get_params(deep=False)
        self._sent = type(self.estimator)(**{**arguments, "verbose": 0})
        self.kept = Kept.begin(self.options.checkpoint, self.options.resume, self._sent)
        if self._sent.random_state is None:  # or every worker would draw one of its own
            self._sent.random_state = int(check_random_state(None).randint(2**31 - 1))
        self._bar: ProgressBar | None = None
        self._left_out: set[str] = set()
        self.record = Record()

    def fit(self) -> Any:
        """The trained estimator."""
        from distributed.comm import CommClosedError

        losses = 0
        if self.estimator.verbose:
            asked = getattr(self.estimator, rounds_argument(self.estimator))
            self._bar = ProgressBar(asked or 0)
        try:
            wanted = len(self._addresses())
            while True:
                before = self.kept.n_rounds
                try:
                    found = self._attempt(wanted)
                    break
                except Lost as lost:
                    self.record.n_losses += 1
                    losses = 1 if self.kept.n_rounds > before else losses + 1
                    if losses > MOST_LOSSES:
                        raise RuntimeError(self._told(f"{losses} workers were lost")) from lost
        except (CommClosedError, TimeoutError) as error:
            raise SchedulerLost(self._told("the scheduler does not answer")) from error
        finally:
            if self._bar is not None:
                self._bar.close()
        self.kept.forget()
        return found

    def _told(self, what: str) -> str:
        """With where to go on."""
        if self.kept.path is None or self.kept.model is None:
            return f"{what}, and no model was kept on disk: pass checkpoint= to cluster"
        return (
            f"{what}; the model after {self.kept.n_rounds} rounds is in {self.kept.path}: the same "
            "call with resume=True goes on from there"
        )

    def _addresses(self) -> list[str]:
        """Of the workers that may train, in an order that stays."""
        there = set(self.client.nthreads()) - self._left_out
        if self.options.workers is not None:
            return [address for address in self.options.workers if address in there]
        return sorted(there)

    def restart(self, addresses: list[str]) -> None:
        """Start workers anew that do not end; those that nobody starts anew are left out."""
        try:
            self.client.restart_workers(addresses, raise_for_error=False)
        except ValueError:  # they have no nanny
            self._left_out.update(addresses)

    def _workers(self, wanted: int) -> list[str]:
        """As many as there were, if they come back in time; else those there are."""
        end = time.monotonic() + self.options.wait
        while len(found := self._addresses()) < wanted and time.monotonic() < end:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        if not found:
            raise RuntimeError(self._told("there are no workers"))
        return found[:wanted]

    def _attempt(self, wanted: int) -> Any:
        addresses = self._workers(wanted)
        shares = self.data.shares(len(addresses))
        addresses = addresses[: len(shares)]
        watched: list[Share | None] = [None] * len(shares)
        if self.watched is not None:
            nothing = Share(dict, [{"X": [], target_of(self.estimator): []}])
            watched = [*self.watched.shares(len(shares))]
            watched += [nothing] * (len(shares) - len(watched))  # nothing is left for these
        name = f"crfx-{uuid.uuid4().hex}"
        job = Job(
            name,
            self._sent,
            self.common,
            self.options.every,
            self.options.seconds,
            self._bar is not None,
        )
        return _Attempt(self, name, addresses).fit(job, shares, watched)

    def message(self, kind: str, n_rounds: int, told: Any) -> None:
        """From the first worker."""
        if kind == "checkpoint":
            self.kept.keep(n_rounds, bytes(told))
        elif self._bar is not None:
            self._bar(Progress(n_rounds, {name: [value] for name, value in told.items()}))


def target_of(estimator: Any) -> str:
    """What ``fit`` calls that which is to be learned."""
    return "relevance" if "relevance" in signature(type(estimator).fit).parameters else "y"


class _Attempt:
    """Training until it ends or a worker is lost."""

    def __init__(self, run: Run, name: str, addresses: list[str]) -> None:
        from distributed import Event, Queue

        self.run, self.name, self.addresses, self.client = run, name, addresses, run.client
        self.queue = Queue(name, client=self.client)
        self.stop = Event(name, client=self.client)

    def fit(self, job: Job, shares: list[Share], watched: list[Any]) -> Any:
        """The trained estimator; raises `Lost`, or what went wrong for a worker."""
        from distributed.comm import CommClosedError

        futures: list[Any] = []
        try:
            meeting = self._at_first(open_tracker, len(shares))
            for number, (share, other) in enumerate(zip(shares, watched, strict=True)):
                where = self.addresses[number]
                told = [self._sent(each, where) for each in (job, self.run.kept.model)]
                own = self._placed(share, where)
                others = None if other is None else self._placed(other, where)
                futures.append(self._submitted(number, train, number, meeting, *told, own, others))
            found = self._result(self._outcomes(futures))
            self._end(futures)
            return found
        except (CommClosedError, TimeoutError):
            raise  # nobody is there who could be told
        except BaseException:
            self._end(futures)
            raise

    def _end(self, futures: list[Any]) -> None:
        """Let no worker go on, nor wait for others."""
        with suppress(Exception):  # who does not answer is gone
            self.stop.set()
            self.client.cancel(futures, force=True)
            self.queue.close()
            self._give_up_meeting(set(self.client.nthreads()))

    def _at_first(self, work: Any, *arguments: Any) -> Any:
        """Call a function in the process of the first worker, beside what that is busy with."""
        first = self.addresses[0]
        try:
            return self.client.run(work, self.name, *arguments, workers=[first])[first]
        except (OSError, KeyError) as error:
            raise Lost from error

    def _submitted(self, number: int, work: Any, *arguments: Any) -> Any:
        where = [self.addresses[number]]
        return self.client.submit(work, *arguments, workers=where, pure=False, retries=0)

    def _sent(self, value: Any, address: str) -> Any:
        # In a list: Dask would take a dict or a list apart.
        return self.client.scatter([value], workers=[address], hash=False)[0]

    def _placed(self, share: Share, address: str) -> tuple[Any, list[Any]]:
        """A share whose data lie with the worker: what the client holds is sent there."""
        given = [
            each if _holds_futures(each) else self._sent(each, address) for each in share.given
        ]
        return share.load, given

    def _outcomes(self, futures: list[Any]) -> list[Outcome]:
        """How it ended for each; those of whom nothing is heard are lost.

        Once one has failed, the others are waited for a little: theirs may be the reason.
        """
        found: dict[int, Outcome] = {}
        end = None
        while len(found) < len(futures):
            self._take_messages()
            for number, future in enumerate(futures):
                if number not in found and future.done():
                    found[number] = _outcome(future)
            there = set(self.client.nthreads())
            silent = {
                self.addresses[number] for number in range(len(futures)) if number not in found
            }
            failed = any(own.is_lost or own.error is not None for own in found.values())
            if failed or silent - there:
                if end is None:
                    end = time.monotonic() + SECONDS_TO_END
                    self._give_up_meeting(there)
                if not silent & there:
                    break
                if time.monotonic() > end:
                    self.run.restart(sorted(silent & there))
                    break
            time.sleep(SECONDS_BETWEEN_LOOKS)
        self._take_messages()
        return [found.get(number, Outcome(is_lost=True)) for number in range(len(futures))]

    def _give_up_meeting(self, there: set[str]) -> None:
        """Workers that still look for each other will not find all."""
        if self.addresses[0] in there:  # the dead would be waited for
            with suppress(Exception):
                self._at_first(close_tracker)

    def _take_messages(self) -> None:
        while self.queue.qsize():
            self.run.message(*self.queue.get())

    def _result(self, outcomes: list[Outcome]) -> Any:
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
        if any(outcome.is_lost for outcome in outcomes):
            raise Lost
        _warn_once(outcomes)
        self.run.record.bytes_by_round = outcomes[0].bytes_by_round
        return outcomes[0].estimator


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


def _warn_once(outcomes: list[Outcome]) -> None:
    """Warnings of all workers, each once."""
    for text, category in {each: None for outcome in outcomes for each in outcome.warned}:
        if not issubclass(category, DeprecationWarning | ResourceWarning):
            warn(text, category)
