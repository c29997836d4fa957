"""What a ranking scorer learns: the objective of subsets drawn from queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfx.objectives.ranking import RankingObjective
from crfx.scores import IntArray
from crfx.trainers.subsets import Drawn, Subsets

Array64 = npt.NDArray[np.float64]


class OfSubsets(NamedTuple):
    """Value, gradient and curvature of the documents drawn, mean effective number of samples.

    The last is 0 where nothing was sampled.
    """

    value: float
    gradient: Array64
    curvature: Array64 | None
    effective: float


@dataclass(frozen=True, eq=False)
class RankingTask:
    """Gains of all documents, weights of all queries, and ``n_subsets`` of a query per visit.

    A query counts as the mean of its subsets, times its weight.
    """

    objective: RankingObjective
    subsets: Subsets
    gains: Array64
    weights: Array64
    n_subsets: int
    n_jobs: int | None

    @property
    def queries(self) -> IntArray:
        """Those that can be learned from."""
        return self.subsets.learnable

    def draw(self, seed: Sequence[int], queries: IntArray | None = None) -> Drawn:
        """Subsets of each query that can be learned from, or of some of them; ``n_subsets`` of
        each, one after the other.
        """
        asked = self.queries if queries is None else queries
        random = np.random.default_rng(list(seed))
        return self.subsets.draw(np.repeat(asked, self.n_subsets), random)

    def evaluate(
        self, scores: npt.NDArray[Any], drawn: Drawn, *, seed: int, curvature: bool = False
    ) -> OfSubsets:
        """The sum over subsets, at the scores of their documents."""
        found = self.objective.evaluate(
            scores,
            self.gains[drawn.rows],
            drawn.offsets,
            curvature=curvature,
            seed=seed,
            n_jobs=self.n_jobs,
        )
        weight = self.weights[drawn.query] / self.n_subsets
        by_document = np.repeat(weight, np.diff(drawn.offsets))
        sampled = found.effective[found.effective > 0]
        return OfSubsets(
            float(found.value @ weight),
            found.gradient * by_document,
            None if found.curvature is None else found.curvature * by_document,
            float(sampled.mean()) if sampled.size else 0.0,
        )

    def weight(self, drawn: Drawn) -> float:
        """Of the queries drawn from."""
        return float(self.weights[drawn.query].sum()) / self.n_subsets
