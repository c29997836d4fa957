"""The last state of a training, on the client: in memory, or in a file that outlives all."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crfx.estimators.base import rounds_done
from crfx.estimators.registry import load
from crfx.estimators.session import check_same_settings
from crfx.io.whole_file import whole_file


@dataclass(eq=False)
class Kept:
    """A model file as bytes and after how many rounds it was made; None before the first.

    With a ``path`` it is written there too, whole or not at all; a small file beside it says of
    which instances it is.
    """

    path: Path | None = None
    model: bytes | None = None
    n_rounds: int = 0

    @classmethod
    def begin(
        cls, path: str | os.PathLike[str] | None, resume: bool, estimator: Any, of_data: str
    ) -> Kept:
        """At nothing, or where the file stands.  ``of_data`` is the same for the same instances.

        An estimator without a seed gets that of the training that it goes on with.
        """
        if path is None:
            if resume:
                raise ValueError("resume=True needs the checkpoint to resume from: pass its path")
            return cls()
        place = Path(path)
        if place.is_dir():
            raise IsADirectoryError(f"{place} is a folder: name a file in it to keep the model in")
        if not place.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {place.parent} to keep {place} in")
        found = cls(place)
        if place.exists():
            found._take_up(resume, estimator, of_data)
        with whole_file(found._about) as file:  # now, and not after an hour: can it be written?
            file.write(json.dumps({"instances": of_data}).encode())
        return found

    def _take_up(self, resume: bool, estimator: Any, of_data: str) -> None:
        place = self.path
        assert place is not None
        if not resume:
            raise FileExistsError(
                f"{place} is there already: pass resume=True to go on with it, or remove it"
            )
        before = load(place)
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
        about = json.loads(self._about.read_bytes()) if self._about.exists() else {}
        if about.get("instances", of_data) != of_data:
            raise ValueError(
                f"{place} is of other instances than those that are passed now; remove it to begin "
                "anew"
            )
        self.model, self.n_rounds = place.read_bytes(), rounds_done(before)

    @property
    def _about(self) -> Path:
        assert self.path is not None
        return self.path.with_name(f"{self.path.name}.json")

    def keep(self, n_rounds: int, model: bytes) -> None:
        """Take the place of what was kept before."""
        if self.path is not None:
            with whole_file(self.path) as file:
                file.write(model)
        self.model, self.n_rounds = model, n_rounds

    def forget(self) -> None:
        """Training has ended well: the files have served."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self._about.unlink(missing_ok=True)
