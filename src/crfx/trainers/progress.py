"""Progress of training: a bar with the time left on a terminal, now and then a line elsewhere.

Lines go to the logger "crfx", at level INFO, if the program has set up logging for that level, and
to standard error otherwise.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

from crfx.trainers.callbacks import Progress

SECONDS_BETWEEN_LINES = 10.0
LOGGER = logging.getLogger("crfx")


class ProgressBar:
    """Display of rounds, the objective and the metric of the evaluation set."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._bar: Any = None
        self._task: Any = None
        self._written = self._last = ""
        self._begin = time.monotonic()
        self._next = self._begin + SECONDS_BETWEEN_LINES

    def __call__(self, progress: Progress) -> None:
        """Show the progress after another round."""
        values = ", ".join(
            f"{name} {progress.history[name][-1]:.6g}"
            for name in ("objective", "eval_metric")
            if progress.history.get(name)
        )
        if not sys.stderr.isatty():
            self._last = f"{progress.n_rounds}/{self._total}: {values}"
            if time.monotonic() >= self._next:
                self._write_line()
            return
        if self._bar is None:
            self._open()
        self._bar.update(self._task, completed=progress.n_rounds, description=values)

    def _write_line(self) -> None:
        """Write one line, for a file or a pipe."""
        line = f"{self._last}, {time.monotonic() - self._begin:.0f} s"
        if LOGGER.isEnabledFor(logging.INFO) and LOGGER.hasHandlers():
            LOGGER.info(line)
        else:
            print(line, file=sys.stderr, flush=True)
        self._written, self._next = self._last, time.monotonic() + SECONDS_BETWEEN_LINES

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
        """Close the bar, or write a last line."""
        if self._bar is not None:
            self._bar.stop()
        elif self._last != self._written:
            self._write_line()
