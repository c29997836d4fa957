"""What a fitted RankingCRF is: a function of the features, and perhaps another model below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.features.matrix import by_chunk
from crfx.potentials.linear import LinearFunction
from crfx.potentials.trees import BoostedTrees
from crfx.potentials.weight_pattern import WeightPattern
from crfx.terms import Names, Terms

Array64 = npt.NDArray[np.float64]


@dataclass(eq=False)
class RankingModel:
    """Scores of documents: those of ``function`` plus those of ``base``, which stays fixed."""

    function: LinearFunction | BoostedTrees
    base: RankingModel | None = None

    @property
    def scorer(self) -> str:
        """The name of the function in RankingCRF: "linear" or "trees"."""
        return self.function.kind

    def scores(self, X: Any) -> Array64:
        """Return (documents,) scores; of features on disk one chunk is in memory at a time."""
        return by_chunk(X, self._loaded_scores)

    def _loaded_scores(self, X: Any) -> Array64:
        scores = self.function.scores(X, X.shape[0])[:, 0].astype(np.float64)
        return scores + self.base_scores(X)

    def base_scores(self, X: Any) -> Array64:
        """Return (documents,) the scores of the base model, 0 without one."""
        return np.zeros(X.shape[0]) if self.base is None else self.base.scores(X)

    @property
    def method(self) -> str:
        """The method by which `explained` shares scores out among features."""
        below = [] if self.base is None else [self.base.method]
        return ", ".join(dict.fromkeys([self.function.method, *below]))

    def explained(self, X: Any, names: Names) -> Iterator[Terms]:
        """Return the score of every document as a sum over features."""
        terms = self.function.explained(X, names)
        if self.base is None:
            return terms
        pairs = zip(terms, self.base.explained(X, names), strict=True)
        return (first.plus(second) for first, second in pairs)

    def use_threads(self, n_jobs: int) -> None:
        """Score on so many threads from now on."""
        self.function.use_threads(n_jobs)
        if self.base is not None:
            self.base.use_threads(n_jobs)


def linear_function(weights: Array64) -> LinearFunction:
    """Return a function with one weight per feature."""
    return LinearFunction(WeightPattern.all(len(weights), 1), weights)
