"""Training that can be interrupted and resumed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SECONDS_BETWEEN_CHECKPOINTS = 30.0


def checkpoint_path(output: Path) -> Path:
    """Return the path of the checkpoint of a model."""
    return output.with_name(f"{output.name.removesuffix('.crfx')}.checkpoint.crfx")


def interrupted_run(output: Path) -> Path:
    """Return the checkpoint of an interrupted run; raise FileNotFoundError if there is none."""
    path = checkpoint_path(output)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no {path}: nothing was interrupted, so leave out --resume"
        )
    return path


class Run:
    """The training of a model, with a checkpoint until the model is saved in ``output``.

    ``start`` is the model of an interrupted run that is resumed, otherwise None.
    """

    def __init__(self, model: Any, output: Path, start: Any = None) -> None:
        from crfx.estimators.session import check_same_settings

        self.model, self.output, self.start = model, output, start
        self.checkpoint = checkpoint_path(output)
        if start is not None:
            try:
                check_same_settings(model, start)
            except ValueError as error:
                raise ValueError(
                    f"--resume: {error}; use --init-model to go on otherwise"
                ) from None

    def fit(self, **arguments: Any) -> None:
        """Train; after Ctrl-C the model is kept, and the message says how to resume."""
        from crfx.estimators.session import resumed
        from crfx.trainers.callbacks import Checkpoint

        saves = Checkpoint(self.checkpoint, every=1, seconds=SECONDS_BETWEEN_CHECKPOINTS)
        with self._kept_if_interrupted():
            self.model = resumed(self.model, arguments, self.start, saves)

    def save(self) -> None:
        """Write the model and remove the checkpoint."""
        with self._kept_if_interrupted():
            self.model.save(self.output)
        with suppress(FileNotFoundError):
            self.checkpoint.unlink()

    @contextmanager
    def _kept_if_interrupted(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._kept()) from None

    def _kept(self) -> str:
        """Keep the interrupted model and return the message that says how to resume."""
        from crfx.estimators.base import counted_in, rounds_done
        from crfx.estimators.registry import load

        with suppress(ValueError):  # the model may be inconsistent: the last checkpoint stays
            self._keep()
        if not self.checkpoint.is_file():
            return "interrupted before anything was learned"
        kept = load(self.checkpoint)
        return (
            f"interrupted after {rounds_done(kept)} {counted_in(kept)}, kept in "
            f"{self.checkpoint}; the same command with --resume goes on from there"
        )

    def _keep(self) -> None:
        """Save the model as it is; raise ValueError if the file cannot be read again."""
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
