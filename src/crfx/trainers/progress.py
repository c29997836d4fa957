"""How far training is: a bar with the time left on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from crfx.trainers.callbacks import Progress

SECONDS_BETWEEN_LINES = 10.0


class ProgressBar:
    """Shows rounds, the objective and the metric of the evaluation set, on standard error."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._bar: Any = None
        self._task: Any = None
        self._told = self._last = ""
        self._begin = time.monotonic()
        self._next = self._begin + SECONDS_BETWEEN_LINES

    def __call__(self, progress: Progress) -> None:
        """Move on by a round."""
        values = ", ".join(
            f"{name} {progress.history[name][-1]:.6g}"
            for name in ("objective", "eval_metric")
            if progress.history.get(name)
        )
        if not sys.stderr.isatty():
            self._last = f"{progress.n_rounds}/{self._total}: {values}"
            if time.monotonic() >= self._next:
                self._tell()
            return
        if self._bar is None:
            self._open()
        self._bar.update(self._task, completed=progress.n_rounds, description=values)

    def _tell(self) -> None:
        """Print one line, for a file or a pipe."""
        seconds = time.monotonic() - self._begin
        print(f"{self._last}, {seconds:.0f} s", file=sys.stderr, flush=True)
        self._told, self._next = self._last, time.monotonic() + SECONDS_BETWEEN_LINES

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        text = TextColumn("{task.description}")
        self._bar = RichProgress(*columns, text, console=Console(stderr=True))
        self._bar.start()
        self._task = self._bar.add_task("", total=self._total)

    def close(self) -> None:
        """Leave the terminal as it was; say where it ended."""
        if self._bar is not None:
            self._bar.stop()
        elif self._last != self._told:
            self._tell()
