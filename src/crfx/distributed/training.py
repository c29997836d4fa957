"""One call of ``fit`` on a cluster, from the client: share out, train, recover.

Where a worker is lost, the others end, and training goes on from the last model that was kept: with
as many workers as before where one comes back in time, so that shares and sums are the same and so
is the model; else with those that are left.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from sklearn.utils import check_random_state

from crfx.distributed.attempt import SECONDS_BETWEEN_LOOKS, Attempt
from crfx.distributed.checkpoints import Kept
from crfx.distributed.losses import LOSSES, SchedulerLost, scheduler_answers, workers_there
from crfx.distributed.shares import Instances, Share
from crfx.distributed.worker import Job, Outcome
from crfx.estimators.base import rounds_argument, rounds_done
from crfx.messages import warn
from crfx.trainers.callbacks import Progress
from crfx.trainers.progress import ProgressBar

MOST_LOSSES = 5
"""In a row, without a model kept in between: then a run is given up."""


class NotKept(Exception):
    """A model could not be written, for a reason that is not to be taken for one of the cluster."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(reason)
        self.reason = reason


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
        self.kept = Kept.begin(
            self.options.checkpoint, self.options.resume, self._sent, self.data.fingerprint()
        )
        if self._sent.random_state is None:  # or every worker would draw one of its own
            self._sent.random_state = int(check_random_state(None).randint(2**31 - 1))
        self._bar: ProgressBar | None = None
        self._left_out: set[str] = set()
        self.record = Record()

    def fit(self) -> Any:
        """The trained estimator; raises what went wrong for a worker."""
        if self.estimator.verbose:
            asked = getattr(self.estimator, rounds_argument(self.estimator))
            self._bar = ProgressBar(asked or 0)
        try:
            outcomes = self._outcomes()
            if self._bar is not None and outcomes[0].estimator is not None:
                done = outcomes[0].estimator
                self._bar(Progress(rounds_done(done), done.history_))
        except NotKept as failed:
            raise failed.reason from None
        finally:
            if self._bar is not None:
                self._bar.close()
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
        self.kept.forget()
        self.record.bytes_by_round = outcomes[0].bytes_by_round
        for text, category in dict.fromkeys(told for own in outcomes for told in own.warned):
            warn(text, category)
        return outcomes[0].estimator

    def _outcomes(self) -> list[Outcome]:
        """Try until no worker is lost."""
        wanted, losses = len(self._addresses()), 0
        while True:
            before = self.kept.n_rounds
            outcomes = self._attempted(wanted)
            is_lost = any(own.is_lost for own in outcomes) or not outcomes
            if not is_lost or any(own.error is not None for own in outcomes):
                return outcomes
            self.record.n_losses += 1
            losses = 1 if self.kept.n_rounds > before else losses + 1
            if losses > MOST_LOSSES:
                raise RuntimeError(self._told(f"workers were lost {losses} times in a row"))
            warn(f"a worker was lost: training goes on from round {self.kept.n_rounds}")

    def _attempted(self, wanted: int) -> list[Outcome]:
        """How one attempt ended; nothing where a worker was gone before it began."""
        addresses = self._workers(wanted)
        shares = self.data.shares(len(addresses))
        watched: list[Share | None] = [None] * len(shares)
        if self.watched is not None:
            nothing = Share(dict, [{"X": [], target_of(self.estimator): []}])
            watched = [*self.watched.shares(len(shares))]
            watched += [nothing] * (len(shares) - len(watched))  # nothing is left for these
        name = f"crfx-{uuid.uuid4().hex}"
        options, shows = self.options, self._bar is not None
        job = Job(name, self._sent, self.common, options.every, options.seconds, shows)
        used = addresses[: len(shares)]
        attempt = Attempt(self.client, name, used, self._hear, self._restart)
        try:
            found = attempt.outcomes(job, self.kept.model, shares, watched)
        except LOSSES as error:
            if not scheduler_answers(self.client):
                raise SchedulerLost(self._told(str(SchedulerLost()))) from error
            found = []
        except BaseException:
            attempt.end()
            raise
        attempt.end()
        return found

    def _told(self, what: str) -> str:
        """With where to go on."""
        if self.kept.path is None:
            return f"{what}; with checkpoint= a model on disk would be left to go on from"
        if self.kept.model is None:
            return f"{what}, before a model was kept: begin anew, or let every and seconds be less"
        return (
            f"{what}; the model after {self.kept.n_rounds} rounds is in {self.kept.path}: the same "
            "call with resume=True goes on from there"
        )

    def _addresses(self) -> list[str]:
        """Of the workers that may train, in an order that stays."""
        try:
            there = workers_there(self.client, self.options.workers)
        except SchedulerLost as lost:
            raise SchedulerLost(self._told(str(lost))) from lost
        return [address for address in there if address not in self._left_out]

    def _workers(self, wanted: int) -> list[str]:
        """As many as there were, if they come back in time; else those there are."""
        end = time.monotonic() + self.options.wait
        while len(found := self._addresses()) < max(wanted, 1) and time.monotonic() < end:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        if not found:
            raise RuntimeError(self._told("the cluster has no workers"))
        return found[:wanted] if wanted else found

    def _restart(self, addresses: list[str]) -> None:
        """Start workers anew that do not end; those that nobody starts anew are left out."""
        try:
            self.client.restart_workers(addresses, raise_for_error=False)
        except ValueError:  # they have no nanny
            self._left_out.update(addresses)

    def _hear(self, kind: str, n_rounds: int, told: Any) -> None:
        """From the first worker."""
        if kind == "checkpoint":
            try:
                self.kept.keep(n_rounds, bytes(told))
            except OSError as error:
                raise NotKept(error) from error
        elif self._bar is not None:
            self._bar(Progress(n_rounds, {name: [value] for name, value in told.items()}))


def target_of(estimator: Any) -> str:
    """What ``fit`` calls that which is to be learned."""
    return "relevance" if "relevance" in signature(type(estimator).fit).parameters else "y"
