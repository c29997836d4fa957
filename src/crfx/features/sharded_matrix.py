"""Features that stay on disk and are read a chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np


class ShardedMatrix:
    """(rows, features) in chunks, one after the other; ``load(k)`` reads chunk k.

    It has a shape like other matrices, and no entries: who wants them asks for one chunk after the
    other, and lets each go before the next.
    """

    ndim = 2

    def __init__(self, lengths: Sequence[int], n_columns: int, load: Callable[[int], Any]) -> None:
        self.borders = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self.shape = int(self.borders[-1]), n_columns
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

    def chunk(self, number: int) -> Any:
        """(rows of the chunk, features), read anew: an array, a CSR matrix or a data frame."""
        return self._load(number)

    def chunks(self) -> Iterator[tuple[slice, Any]]:
        """All of them, with their rows, in order."""
        for number in range(self.n_chunks):
            yield self.rows(number), self.chunk(number)
