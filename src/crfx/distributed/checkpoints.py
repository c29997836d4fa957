"""The last state of a training, on the client: in memory, or in a file that outlives all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crfx.distributed.worker import model_of
from crfx.estimators.counting import rounds_done
from crfx.estimators.resuming import check_same_settings
from crfx.io.whole_file import whole_file


@dataclass(eq=False)
class Kept:
    """A model file as bytes and after how many rounds it was made; None before the first.

    With a ``path`` it is written there too, whole or not at all.
    """

    path: Path | None = None
    model: bytes | None = None
    n_rounds: int = 0

    @classmethod
    def begin(cls, path: str | os.PathLike[str] | None, resume: bool, estimator: Any) -> Kept:
        """At nothing, or where the file stands.

        An estimator without a seed gets that of the training that it goes on with.
        """
        if path is None:
            if resume:
                raise ValueError("resume=True needs the checkpoint to resume from: pass its path")
            return cls()
        place = Path(path)
        if not place.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {place.parent} to keep {place} in")
        if not place.exists():
            return cls(place)
        if not resume:
            raise FileExistsError(
                f"{place} is there already: pass resume=True to go on with it, or remove it"
            )
        model = place.read_bytes()
        before = model_of(model)
        if type(before) is not type(estimator):
            raise ValueError(
                f"{place} holds a {type(before).__name__}, not a {type(estimator).__name__}"
            )
        if estimator.random_state is None:
            estimator.random_state = before.random_state
        try:
            check_same_settings(estimator, before)
        except ValueError as error:
            raise ValueError(f"{place}: {error}; remove it to begin anew") from None
        return cls(place, model, rounds_done(before))

    def keep(self, n_rounds: int, model: bytes) -> None:
        """Take the place of what was kept before."""
        if self.path is not None:
            with whole_file(self.path) as file:
                file.write(model)
        self.model, self.n_rounds = model, n_rounds

    def forget(self) -> None:
        """Training has ended well: the file has served."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
