"""Training that may be interrupted: what is kept, and how it goes on."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS_BETWEEN_CHECKPOINTS = 30.0


def checkpoint_path(output: Path) -> Path:
    """Where a model is kept that is still in training."""
    return output.with_name(f"{output.name.removesuffix('.crfx')}.checkpoint.crfx")


def check_same_settings(model: Any, start: Any) -> None:
    """Raise ValueError where a run that was interrupted had other arguments."""
    from crfx.estimators.resuming import check_same_settings

    try:
        check_same_settings(model, start)
    except ValueError as error:
        raise ValueError(f"--resume: {error}; use --init-model to go on otherwise") from None


@dataclass(eq=False)
class Run:
    """One training of a model, kept in ``checkpoint`` while it lasts.

    ``start`` is what an earlier run has kept, to be finished; None: it begins.
    """

    model: Any
    checkpoint: Path
    start: Any = None

    def fit(self, **arguments: Any) -> None:
        """Train; what Ctrl-C leaves is kept, and told how to go on with."""
        from crfx.estimators.resuming import resumed
        from crfx.trainers.callbacks import Checkpoint

        saves = Checkpoint(self.checkpoint, every=1, seconds=SECONDS_BETWEEN_CHECKPOINTS)
        try:
            self.model = resumed(self.model, arguments, self.start, saves)
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

    def _kept(self) -> str:
        """Keep what there is; how to go on from there."""
        from crfx.estimators.base import counted_in, rounds_done
        from crfx.estimators.registry import load

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
        from crfx.estimators.registry import load

        if not hasattr(self.model, "model_"):
            return
        new = self.checkpoint.with_name(f".{self.checkpoint.name}")
        try:
            self.model.save(new)
            load(new)
            os.replace(new, self.checkpoint)
        finally:
            new.unlink(missing_ok=True)
