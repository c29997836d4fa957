"""Callbacks: functions that follow a training and may stop it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from crfx.messages import shown
from crfx.workers import Workers, current

History = dict[str, list[float]]


@dataclass
class Progress:
    """The state of a training run after a round.

    ``history`` has one entry per round and name, and later rounds do not change it; ``save``
    writes the model as it is now to a file.
    """

    n_rounds: int
    history: History
    save: Callable[[str | os.PathLike[str]], None] | None = None


class Callback(Protocol):
    """Called after every round; True stops the run."""

    def __call__(self, progress: Progress) -> bool | None:
        """Follow the progress; return True to stop the run."""
        ...


@dataclass
class EarlyStopping:
    """Stops once the last of ``name`` has not improved for ``rounds`` rounds."""

    rounds: int
    name: str = "eval_metric"
    larger_is_better: bool = False
    best: float | None = field(default=None, init=False)
    best_round: int = field(default=0, init=False)

    def __call__(self, progress: Progress) -> bool:
        """Compare with the best so far."""
        return self.see(progress.history[self.name][-1], progress.n_rounds)

    def see(self, value: float, n_rounds: int) -> bool:
        """Note the value after so many rounds; return whether to stop.  NaN is never the best."""
        better = self.best is None or (
            value > self.best if self.larger_is_better else value < self.best
        )
        if better and not np.isnan(value):
            self.best, self.best_round = value, n_rounds
        return n_rounds - self.best_round >= self.rounds


@dataclass
class Checkpoint:
    """Saves the model every ``every`` rounds, whole or not at all; train on with ``init_model``.

    Not again before ``seconds`` have passed: saving a large model takes its time.
    """

    path: str | os.PathLike[str]
    every: int = 10
    seconds: float = 0.0
    _saved: float = field(default=-np.inf, init=False, repr=False)

    def __post_init__(self) -> None:
        whole = isinstance(self.every, int | np.integer) and not isinstance(self.every, bool)
        if not whole or self.every < 1:
            raise ValueError(f"every is {self.every}: it must be a whole number of 1 or more")
        if not self.seconds >= 0:
            raise ValueError(f"seconds is {self.seconds}: it must be 0 or more")
        folder = Path(self.path).parent
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder} to save {self.path} in")

    def __call__(self, progress: Progress) -> None:
        """Save if it is time."""
        now = time.monotonic()
        due = progress.n_rounds % self.every == 0 and now - self._saved >= self.seconds
        if due and progress.save is not None:
            progress.save(self.path)
            self._saved = time.monotonic()


def any_stops(callbacks: Sequence[Callback], progress: Progress) -> bool:
    """Call all of them; return whether one asks to stop."""
    answers = [callback(progress) for callback in callbacks]
    return any(answers)


@dataclass
class OnFirstWorker:
    """Callbacks that the first of several workers calls for all."""

    callbacks: Sequence[Callback]
    workers: Workers

    def __call__(self, progress: Progress) -> bool:
        """Return whether one of them asks to stop."""
        stops = self.workers.rank == 0 and any_stops(self.callbacks, progress)
        return bool(self.workers.gather(stops)[0])


def listed_callbacks(callbacks: Sequence[Callback] | None) -> list[Callback]:
    """Read the argument ``callbacks``; with several workers the first calls them for all."""
    listed, workers = checked_callbacks(callbacks), current()
    if workers.size == 1:
        return listed
    return [OnFirstWorker(listed, workers)] if workers.gather(bool(listed))[0] else []


def checked_callbacks(callbacks: Sequence[Callback] | None) -> list[Callback]:
    """Return the argument ``callbacks`` as a list; raise ValueError unless all are callable."""
    if callable(callbacks):
        raise ValueError("callbacks is one function: pass a list, [callback]")
    if callbacks is not None and not isinstance(callbacks, list | tuple):
        raise ValueError(f"callbacks is {shown(callbacks)}: pass a list of functions, or None")
    for each in callbacks or ():
        if not callable(each) or isinstance(each, type):
            raise ValueError(f"callbacks holds {shown(each)}, which is no function of the progress")
    return list(callbacks or ())
