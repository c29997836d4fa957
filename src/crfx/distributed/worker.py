"""The task of a worker of the cluster: join the others, train on its share, report progress."""

from __future__ import annotations

import ctypes
import os
import pickle
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crfx.distributed.collective import CollectiveWorkers, member, tracker
from crfx.distributed.shares import Share
from crfx.estimators.registry import load
from crfx.estimators.session import resumed
from crfx.messages import collected_warnings
from crfx.trainers.callbacks import Progress
from crfx.workers import WorkerLost

SECONDS_BETWEEN_CHECKS = 1.0
"""Seconds between two checks whether the client still waits."""
SECONDS_TO_PUT = 5.0
"""Seconds after which a checkpoint is dropped, since others wait for the client already."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of settings in glibc's malloc.h."""
KEPT = 2**30
"""Bytes that may be kept, and the size above which arrays are given back."""
USUAL = 2**17
"""glibc's default for both."""

_TRACKERS: dict[str, ExitStack] = {}
"""Trackers of the runs whose workers find each other through this process."""


@dataclass(frozen=True)
class Job:
    """Settings of a run that all its workers get.

    ``common`` are the arguments of ``fit`` that do not describe instances.  A checkpoint is sent to
    the client every ``every`` rounds, but not more often than every ``seconds``.
    """

    run: str
    estimator: Any
    common: dict[str, Any]
    every: int
    seconds: float
    tells_progress: bool


@dataclass
class Outcome:
    """The end of training for one worker: with a model (the first worker only), with an error, or
    with the loss of another worker.  ``bytes_by_round`` are the bytes summed after each round.
    """

    estimator: Any = None
    error: BaseException | None = None
    is_lost: bool = False
    bytes_by_round: list[int] = field(default_factory=list)
    warned: list[tuple[str, type[Warning]]] = field(default_factory=list)


def open_tracker(run: str, n_workers: int, dask_worker: Any) -> dict[str, Any]:
    """Start a tracker here, by which workers find each other: they must reach this one anyway."""
    address = urlsplit(dask_worker.address)
    host = address.hostname if address.scheme in ("tcp", "tls", "ws", "wss") else "127.0.0.1"
    with ExitStack() as stack:
        arguments = stack.enter_context(tracker(n_workers, str(host)))
        _TRACKERS[run] = stack.pop_all()
    return arguments


def close_tracker(run: str) -> None:
    """Stop workers that are still looking for each other."""
    if (stack := _TRACKERS.pop(run, None)) is not None:
        stack.close()


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep freed memory within the block, then give it back; with glibc only.

    Dask makes the C library of its workers give memory back at once.  Training allocates the same
    large arrays in every round and would get every page from the system again: an iteration of
    `LinearCRF` takes a fifth longer.
    """
    library = ctypes.CDLL(None) if os.name == "posix" else None
    if library is None or not hasattr(library, "mallopt"):
        yield
        return
    library.mallopt(_TRIM_THRESHOLD, KEPT)
    library.mallopt(_MMAP_THRESHOLD, KEPT)
    try:
        yield
    finally:
        before = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
        library.mallopt(_TRIM_THRESHOLD, int(before) if before.isdigit() else USUAL)
        library.mallopt(_MMAP_THRESHOLD, USUAL)
        library.malloc_trim(0)


def train(
    number: int,
    meeting: dict[str, Any],
    job: Job,
    checkpoint: bytes | None,
    share: tuple[Callable[..., dict[str, Any]], list[Any]],
    watched: tuple[Callable[..., dict[str, Any]], list[Any]] | None,
) -> Outcome:
    """Train as worker ``number`` on a share of the instances; errors are returned, not raised."""
    outcome = Outcome()
    with collected_warnings() as outcome.warned, kept_memory():
        try:
            with member(meeting, number) as workers:
                # Read within the block, so that the others notice if it fails.
                arguments = {**job.common, **Share(*share).arguments()}
                if watched is not None:
                    arguments["eval_set"] = Share(*watched).arguments()
                fitted = _fitted(workers, job, checkpoint, arguments, outcome)
                outcome.estimator = fitted if number == 0 else None
        except WorkerLost:
            outcome.is_lost = True
        except BaseException as error:
            outcome.error = _portable(error)
    return outcome


def _portable(error: BaseException) -> BaseException:
    """Return the error, or one with the same text if it cannot be pickled."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:  # its class may do anything when it is pickled
        pass
    return RuntimeError("".join(traceback.format_exception(error)))


def _fitted(
    workers: CollectiveWorkers,
    job: Job,
    checkpoint: bytes | None,
    arguments: dict[str, Any],
    outcome: Outcome,
) -> Any:
    from distributed import get_worker

    # A copy: workers may be threads of one process.
    estimator = type(job.estimator)(**job.estimator.get_params(deep=False))
    n_jobs = estimator.n_jobs
    if n_jobs is None:
        estimator.set_params(n_jobs=get_worker().state.nthreads)
    reporter = _Reporter(job) if workers.rank == 0 else None

    def report(progress: Progress) -> None:
        outcome.bytes_by_round.append(workers.n_bytes)
        if reporter is not None:
            reporter(progress)

    start = None if checkpoint is None else model_of(checkpoint)
    return resumed(estimator, arguments, start, report).set_params(n_jobs=n_jobs)


class _Reporter:
    """Callback that sends checkpoints to the client and ends training if the client is gone."""

    def __init__(self, job: Job) -> None:
        from distributed import Queue, get_worker

        self.job, self.queue, self._worker = job, Queue(job.run), get_worker()
        self._task = self._worker.get_current_task()
        self._checked = self._sent = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._checked >= SECONDS_BETWEEN_CHECKS:
            self._checked = now
            # Dask cancels the tasks of a client that is gone or has given up.
            task = self._worker.state.tasks.get(self._task)
            if task is None or task.state in ("cancelled", "released", "forgotten"):
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

    def _put(self, kind: str, n_rounds: int, content: Any) -> None:
        with suppress(TimeoutError):
            self.queue.put([kind, n_rounds, content], timeout=SECONDS_TO_PUT)


def model_of(checkpoint: bytes) -> Any:
    """Return the estimator of a model file in memory."""
    with tempfile.TemporaryDirectory(prefix="crfx-") as folder:
        path = Path(folder) / "model.crfx"
        path.write_bytes(checkpoint)
        return load(path)
