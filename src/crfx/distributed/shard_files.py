"""Shards as instances of workers: each reads some of the files, whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crfx.distributed.shares import Share, borders, digest
from crfx.io.shards import ShardFeatures, ShardLabels, Shards


@dataclass(frozen=True, eq=False)
class Files:
    """Arguments of which X is `Shards.X`; workers must find the files under the same paths.

    ``ranks``: labels are relevance, and lengths groups.  ``stays``: features stay on disk there
    too, and are read a file at a time.
    """

    arguments: dict[str, Any]
    ranks: bool = False
    stays: bool = False

    def fingerprint(self) -> str:
        """Of names and sizes of the files."""
        shards = self.arguments["X"].shards
        for path in shards.paths:
            if not path.is_file():
                raise ValueError(f"{path}: there is no such file")
        return digest([(path.name, path.stat().st_size) for path in shards.paths])

    def shares(self, n_workers: int) -> list[Share]:
        """Consecutive files, of about the same number of rows."""
        given = {name: value for name, value in self.arguments.items() if value is not None}
        shards: Shards = given.pop("X").shards
        labels = [given.pop(name, None) for name in ("y", "relevance")]
        for own in labels:
            if own is not None and not isinstance(own, ShardLabels):
                raise ValueError("X is of shards: pass their labels too, fit(shards.X, shards.y)")
            if own is not None and own.shards.paths != shards.paths:
                raise ValueError("X and the labels are of different shards: pass those of the same")
        shards = shards.absolute()  # workers may be in another folder
        if given:
            raise ValueError(f"{next(iter(given))} is given beside shards, which have their own")
        sizes = [shards[number : number + 1].n_rows for number in range(len(shards))]
        cuts = borders(np.array(sizes), n_workers)
        has_labels = any(own is not None for own in labels)
        return [
            Share(
                opened if self.stays else loaded,
                [shards[begin:end], has_labels, self.ranks],
                shards[:begin].n_instances if begin else 0,
            )
            for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
        ]


def is_sharded(arguments: dict[str, Any]) -> bool:
    """Whether features lie in shards."""
    return isinstance(arguments.get("X"), ShardFeatures)


def loaded(shards: Shards, has_labels: bool, ranks: bool) -> dict[str, Any]:
    """All that the files hold, in memory."""
    found = shards.load()
    if not has_labels:
        found.pop("y", None)
    if ranks:
        names = {"y": "relevance", "lengths": "group"}
        found = {names.get(name, name): value for name, value in found.items()}
    return found


def opened(shards: Shards, has_labels: bool, ranks: bool) -> dict[str, Any]:
    """Features on disk."""
    label = {"relevance" if ranks else "y": shards.y} if has_labels else {}
    return {"X": shards.X, **label}
