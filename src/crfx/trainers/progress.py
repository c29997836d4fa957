"""A progress bar on a terminal, and nothing in a pipe."""

from __future__ import annotations

import sys
from typing import Any

from crfx.trainers.callbacks import Progress


class ProgressBar:
    """Shows rounds, the objective and the metric of the evaluation set, on standard error."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, progress: Progress) -> None:
        """Move on by a round."""
        if not sys.stderr.isatty():
            return
        if self._bar is None:
            self._open()
        values = [
            f"{name} {progress.history[name][-1]:.4g}"
            for name in ("objective", "eval_metric")
            if progress.history.get(name)
        ]
        self._bar.update(self._task, completed=progress.n_rounds, description=", ".join(values))

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
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()
