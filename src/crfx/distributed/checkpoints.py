"""The last checkpoint of a training on a cluster, in the client's memory or in a file."""

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
    """A model file as bytes and the number of its rounds; None before the first checkpoint.

    With a ``path`` it is also written there, whole or not at all; a small file beside it has the
    fingerprint of the instances.
    """

    path: Path | None = None
    model: bytes | None = None
    n_rounds: int = 0

    @classmethod
    def begin(
        cls, path: str | os.PathLike[str] | None, resume: bool, estimator: Any, fingerprint: str
    ) -> Kept:
        """Return an empty checkpoint, or with ``resume`` that of the file.

        ``fingerprint`` is the same for the same instances.  An estimator without a seed gets that
        of the training that it resumes.
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
        kept = cls(place)
        if place.exists():
            kept._read(place, resume, estimator, fingerprint)
        with whole_file(kept._about) as file:  # fails now, not after an hour, if it cannot write
            file.write(json.dumps({"instances": fingerprint}).encode())
        return kept

    def _read(self, place: Path, resume: bool, estimator: Any, fingerprint: str) -> None:
        """Read the file of an interrupted training; raise ValueError if it is another one."""
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
        if about.get("instances", fingerprint) != fingerprint:
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
        """Replace the checkpoint."""
        if self.path is not None:
            with whole_file(self.path) as file:
                file.write(model)
        self.model, self.n_rounds = model, n_rounds

    def forget(self) -> None:
        """Remove the files after a training has succeeded."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self._about.unlink(missing_ok=True)
