"""Features that stay on disk, for functions with parameters: read again for scores and gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crfx.features.matrix import Matrix
from crfx.scores import FloatArray

Array64 = npt.NDArray[np.float64]


class Prepared(Protocol):
    """Features of some rows, in the form that training needs again and again."""

    def scores(self, values: FloatArray) -> FloatArray:
        """(rows, outputs), of the dtype of the parameters."""
        ...

    def gradient(self, slope: FloatArray) -> Array64:
        """(parameters,) from slopes (rows, outputs)."""
        ...


class ShardedFeatures:
    """Scores and gradient chunk by chunk: one chunk, ``prepare`` d, is in memory at a time.

    It is read for the scores and again for the gradient, but for the last, from which the gradient
    goes backwards.  With ``looks_back`` the gradient of a chunk is of the scores asked for last,
    which are found anew.
    """

    def __init__(
        self,
        X: Matrix,
        prepare: Callable[[Any], Prepared],
        n_outputs: int,
        *,
        looks_back: bool,
    ) -> None:
        self._X, self._prepare, self._n_outputs = X, prepare, n_outputs
        self._looks_back = looks_back
        self._values: npt.NDArray[Any] | None = None
        self._kept: tuple[int, Prepared] | None = None

    def scores(self, values: FloatArray) -> FloatArray:
        """(rows, outputs), of the dtype of the parameters."""
        found = np.empty((self._X.shape[0], self._n_outputs), values.dtype)
        for number in range(self._X.n_chunks):
            found[self._X.rows(number)] = self._chunk(number).scores(values)
        self._values = values.copy() if self._looks_back else None
        return found

    def gradient(self, slope: FloatArray) -> Array64:
        """(parameters,); sums over chunks are formed in float64."""
        total: Array64 | None = None
        for number in reversed(range(self._X.n_chunks)):
            is_kept = self._kept is not None and self._kept[0] == number
            chunk = self._chunk(number)
            if self._looks_back and not is_kept:
                assert self._values is not None, "scores come first"
                chunk.scores(self._values)
            own = chunk.gradient(slope[self._X.rows(number)])
            total = own if total is None else total + own
        assert total is not None
        return total

    def _chunk(self, number: int) -> Prepared:
        if self._kept is None or self._kept[0] != number:
            self._kept = None  # before the next is read
            self._kept = number, self._prepare(self._X.chunk(number))
        return self._kept[1]
