"""Training that may be interrupted: what is kept, and how it goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crfx.report.counting import counted_in, rounds_argument

if TYPE_CHECKING:
    from crfx.trainers.callbacks import Progress

SECONDS_BETWEEN_CHECKPOINTS = 30.0


def checkpoint_path(output: Path) -> Path:
    """Where a model is kept that is still in training."""
    return output.with_name(f"{output.name.removesuffix('.crfx')}.checkpoint.crfx")


def rounds_done(model: Any) -> int:
    """How many rounds, iterations or sweeps a model has had."""
    return int(model.n_rounds_ if hasattr(model, "n_rounds_") else model.n_iter_)


def check_same_settings(model: Any, start: Any) -> None:
    """Raise ValueError where a run that was interrupted had other arguments."""
    before = start.get_params(deep=False)
    for name, value in model.get_params(deep=False).items():
        if name not in ("n_jobs", "verbose") and before[name] != value:
            raise ValueError(
                f"--resume: {name} is {value!r}, but the run that was interrupted had "
                f"{before[name]!r}; use --init-model to go on otherwise"
            )


@dataclass(eq=False)
class Run:
    """One training of a model, kept in ``checkpoint`` while it lasts.

    ``done`` rounds of those that the model's arguments ask for were done by an earlier run.
    """

    model: Any
    checkpoint: Path
    done: int = 0

    def __post_init__(self) -> None:
        self._asked: int = getattr(self.model, rounds_argument(self.model))

    def fit(self, **arguments: Any) -> None:
        """Train; what Ctrl-C leaves is kept, and told how to go on with."""
        from crfx.trainers.callbacks import Checkpoint

        if self.done and self.done >= self._asked:
            self.model = arguments["init_model"]  # nothing is left to do
            return
        saves = Checkpoint(self.checkpoint, every=1, seconds=SECONDS_BETWEEN_CHECKPOINTS)
        # Unread as yet by the estimator, which says what is wrong with it.
        left = self._asked - self.done if self.done else self._asked

        def keep(progress: Progress) -> bool:
            nonlocal left
            left -= 1
            with self._asking_for(self._asked):
                saves(progress)
            return left == 0

        try:
            with self._asking_for(left):
                self.model.fit(**arguments, callbacks=[keep])
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._kept()) from None

    def save(self, output: Path) -> None:
        """Write the model; the checkpoint has served."""
        try:
            self.model.save(output)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._kept()) from None
        with suppress(FileNotFoundError):
            self.checkpoint.unlink()

    @contextmanager
    def _asking_for(self, n_rounds: int) -> Iterator[None]:
        """Let the model have that many rounds for a while; files are to say what was asked for.

        Only where they are all the same: sweeps are planned (burn-in, steps) by how many there are,
        and are ended by a callback instead.
        """
        if not hasattr(self.model, "n_estimators"):
            yield
            return
        before, self.model.n_estimators = self.model.n_estimators, n_rounds
        try:
            yield
        finally:
            self.model.n_estimators = before

    def _kept(self) -> str:
        """Keep what there is; how to go on from there."""
        from crfx.estimators.loading import load

        with suppress(ValueError):  # in pieces, by the interruption: then an older one stays
            self._keep()
        if not self.checkpoint.is_file():
            return "interrupted before anything was learned"
        found = load(self.checkpoint)
        return (
            f"interrupted after {rounds_done(found)} {counted_in(found)}, kept in "
            f"{self.checkpoint}; the same command with --resume goes on from there"
        )

    def _keep(self) -> None:
        """Save the model as it is; ValueError where a file of it could not be read again."""
        from crfx.estimators.loading import load

        if not hasattr(self.model, "model_"):
            return
        new = self.checkpoint.with_name(f".{self.checkpoint.name}")
        try:
            self.model.save(new)
            load(new)
            os.replace(new, self.checkpoint)
        finally:
            new.unlink(missing_ok=True)
