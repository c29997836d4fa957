"""What a worker of the cluster does: join the others, train on its share, tell how it stands."""

from __future__ import annotations

import pickle
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crfx.distributed.collective import Collective, member, tracker
from crfx.distributed.kept_memory import kept_memory
from crfx.distributed.shares import Share
from crfx.estimators.registry import load
from crfx.estimators.resuming import resumed
from crfx.messages import collected_warnings
from crfx.trainers.callbacks import Progress
from crfx.workers import WorkerLost

SECONDS_BETWEEN_LOOKS = 1.0
"""Between two looks whether training is still wanted."""
SECONDS_TO_PUT = 5.0
"""Then a model is not kept: others wait for the client already."""

_TRACKERS: dict[str, ExitStack] = {}
"""Of the runs whose workers find each other through this process."""


@dataclass(frozen=True)
class Job:
    """What all workers of a run are told.

    ``common`` are arguments of ``fit`` that do not tell of instances.  The model is sent to the
    client every ``every`` rounds, not before ``seconds`` have passed.
    """

    run: str
    estimator: Any
    common: dict[str, Any]
    every: int
    seconds: float
    tells_progress: bool


@dataclass
class Outcome:
    """How training ended for one worker: with a model, that of the first; with an error; or with
    another worker lost.  ``bytes_by_round``: how many it had summed after each.
    """

    estimator: Any = None
    error: BaseException | None = None
    is_lost: bool = False
    bytes_by_round: list[int] = field(default_factory=list)
    warned: list[tuple[str, type[Warning]]] = field(default_factory=list)


def open_tracker(run: str, n_workers: int, dask_worker: Any) -> dict[str, Any]:
    """Let workers find each other through this one: it is one of those that they must reach."""
    address = urlsplit(dask_worker.address)
    host = address.hostname if address.scheme in ("tcp", "tls", "ws", "wss") else "127.0.0.1"
    with ExitStack() as stack:
        found = stack.enter_context(tracker(n_workers, str(host)))
        _TRACKERS[run] = stack.pop_all()
    return found


def close_tracker(run: str) -> None:
    """Workers that still look for each other give up."""
    if (stack := _TRACKERS.pop(run, None)) is not None:
        stack.close()


def train(
    number: int,
    meeting: dict[str, Any],
    job: Job,
    checkpoint: bytes | None,
    share: tuple[Callable[..., dict[str, Any]], list[Any]],
    watched: tuple[Callable[..., dict[str, Any]], list[Any]] | None,
) -> Outcome:
    """Train as worker ``number`` on a share of the instances; errors are brought home."""
    outcome = Outcome()
    with collected_warnings() as told, kept_memory():
        try:
            with member(meeting, number) as communicator:
                # Read here: where that fails, the others notice.
                arguments = _arguments(job, share, watched)
                fitted = _fitted(communicator, job, checkpoint, arguments, outcome)
                outcome.estimator = fitted if number == 0 else None
        except WorkerLost:
            outcome.is_lost = True
        except BaseException as error:
            outcome.error = _portable(error)
    outcome.warned = told
    return outcome


def _portable(error: BaseException) -> BaseException:
    """The error, or one that tells the same where it cannot travel."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:  # whatever its class does in there
        pass
    return RuntimeError("".join(traceback.format_exception(error)))


def _arguments(job: Job, share: Any, watched: Any) -> dict[str, Any]:
    found = {**job.common, **_loaded(share)}
    if watched is not None:
        found["eval_set"] = _loaded(watched)
    return found


def _loaded(share: Any) -> dict[str, Any]:
    own = Share(*share)
    return own.load(*own.given)


def _fitted(
    communicator: Collective,
    job: Job,
    checkpoint: bytes | None,
    arguments: dict[str, Any],
    outcome: Outcome,
) -> Any:
    from distributed import get_worker

    # One of its own: workers may be threads of one process.
    estimator = type(job.estimator)(**job.estimator.get_params(deep=False))
    asked = estimator.n_jobs
    if asked is None:
        estimator.set_params(n_jobs=get_worker().state.nthreads)
    report = _Reporter(job) if communicator.rank == 0 else _nothing

    def keep(progress: Progress) -> None:
        outcome.bytes_by_round.append(communicator.n_bytes)
        report(progress)

    start = None if checkpoint is None else model_of(checkpoint)
    found = resumed(estimator, arguments, start, keep)
    return found.set_params(n_jobs=asked)


def _nothing(progress: Progress) -> None:
    """The first worker reports for all."""


class _Reporter:
    """Sends the model to the client now and then, and ends where nobody waits for it."""

    def __init__(self, job: Job) -> None:
        from distributed import Queue, get_worker

        self.job, self.queue, self._worker = job, Queue(job.run), get_worker()
        self._task = self._worker.get_current_task()
        self._looked = self._sent = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._looked >= SECONDS_BETWEEN_LOOKS:
            self._looked = now
            if not self._is_wanted():
                raise WorkerLost("nobody waits for this training any more")
            if self.job.tells_progress:
                last = {name: values[-1] for name, values in progress.history.items() if values}
                self._put("progress", progress.n_rounds, last)
        if progress.n_rounds % self.job.every or now - self._sent < self.job.seconds:
            return
        assert progress.save is not None
        with tempfile.TemporaryDirectory(prefix="crfx-") as folder:
            path = Path(folder) / "model.crfx"
            progress.save(path)
            self._put("checkpoint", progress.n_rounds, path.read_bytes())
        self._sent = time.monotonic()

    def _is_wanted(self) -> bool:
        """Dask cancels what a client waited for that is gone, or has given up."""
        task = self._worker.state.tasks.get(self._task)
        return task is not None and task.state not in ("cancelled", "released", "forgotten")

    def _put(self, kind: str, n_rounds: int, told: Any) -> None:
        with suppress(TimeoutError):
            self.queue.put([kind, n_rounds, told], timeout=SECONDS_TO_PUT)


def model_of(checkpoint: bytes) -> Any:
    """The estimator of a model file that is held in memory."""
    with tempfile.TemporaryDirectory(prefix="crfx-") as folder:
        path = Path(folder) / "model.crfx"
        path.write_bytes(checkpoint)
        return load(path)
