"""Features that stay on disk and are read a chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]


class ShardedMatrix:
    """(rows, features) in chunks, one after the other; ``load(k)`` reads chunk k.

    It has a shape like other matrices, and no entries: who wants them asks for one chunk after the
    other, and lets each go before the next.  ``like`` is a matrix of the same kind and columns
    without rows: it tells whether chunks are arrays, CSR matrices or data frames.  ``names`` are
    those of the chunks, for messages.
    """

    ndim = 2

    def __init__(
        self,
        lengths: Sequence[int],
        like: Any,
        load: Callable[[int], Any],
        names: Sequence[str] = (),
    ) -> None:
        self.lengths = list(lengths)
        self.borders = np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])
        self.shape = int(self.borders[-1]), int(like.shape[1])
        self.like = like
        self.names = list(names)
        self._load = load

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_chunks(self) -> int:
        """How many there are."""
        return len(self.borders) - 1

    def rows(self, number: int) -> slice:
        """The rows of a chunk."""
        return slice(int(self.borders[number]), int(self.borders[number + 1]))

    def name_of(self, row: int) -> str | None:
        """What the chunk of a row is called; None: chunks have no names."""
        if not self.names:
            return None
        return self.names[int(np.searchsorted(self.borders, row, side="right")) - 1]

    def chunk(self, number: int) -> Any:
        """(rows of the chunk, features), read anew: an array, a CSR matrix or a data frame."""
        return self._load(number)

    def chunks(self) -> Iterator[tuple[slice, Any]]:
        """All of them, with their rows, in order."""
        for number in range(self.n_chunks):
            yield self.rows(number), self.chunk(number)

    def mapped(self, change: Callable[[Any], Any]) -> ShardedMatrix:
        """The same with every chunk changed when it is read; rows stay, columns may be others."""
        return ShardedMatrix(
            self.lengths, change(self.like), lambda number: change(self._load(number)), self.names
        )

    def taken(self, rows: IntArray, take: Callable[[Any, IntArray], Any]) -> ShardedMatrix:
        """Some rows, rising, cut out of every chunk by ``take`` when it is read."""
        if (np.diff(rows) <= 0).any():
            raise ValueError("rows of a matrix that stays on disk are taken in their order")
        cuts = np.searchsorted(rows, self.borders)
        own = [rows[cuts[k] : cuts[k + 1]] - self.borders[k] for k in range(self.n_chunks)]

        def load(number: int) -> Any:
            if not len(own[number]):
                return self.like
            found = self._load(number)
            return found if len(own[number]) == found.shape[0] else take(found, own[number])

        return ShardedMatrix([len(part) for part in own], self.like, load, self.names)
