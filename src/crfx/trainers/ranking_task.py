"""What a ranking scorer learns: the objective of subsets drawn from queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.objectives.ranking import RankingObjective
from crfx.scores import IntArray
from crfx.trainers.subsets import Drawn, Subsets
from crfx.workers import Workers

Array64 = npt.NDArray[np.float64]


class OfSubsets(NamedTuple):
    """Value, weight of the queries, gradient and curvature of the documents drawn.

    ``effective`` is the sum over the ``n_sampled`` subsets that were sampled of their effective
    number of samples.
    """

    value: float
    weight: float
    gradient: Array64
    curvature: Array64 | None
    effective: float
    n_sampled: float

    def of_all(self, communicator: Workers) -> OfSubsets:
        """Return it with the numbers of all workers; documents keep their slopes.  32 bytes."""
        numbers = np.array([self.value, self.weight, self.effective, self.n_sampled])
        value, weight, effective, n_sampled = map(float, communicator.sum(numbers))
        return self._replace(value=value, weight=weight, effective=effective, n_sampled=n_sampled)

    def notes(self) -> dict[str, float]:
        """Return for the history the mean effective number of samples, if any were drawn."""
        return {"effective_samples": self.effective / self.n_sampled} if self.n_sampled else {}


class Before(NamedTuple):
    """The numbers of queries, and of their documents, that workers before this one have."""

    queries: int = 0
    documents: int = 0

    @classmethod
    def of(cls, communicator: Workers, batch: Batch) -> Before:
        """Return what comes before a batch; every worker has one."""
        counts = communicator.gather((batch.n_instances, batch.n_rows))
        return cls.those_of(counts[: communicator.rank])

    @classmethod
    def those_of(cls, counts: Sequence[tuple[int, int]]) -> Before:
        """Return it from the numbers of queries and documents of each worker before."""
        return cls(*(sum(column) for column in zip(*counts, strict=True)))


@dataclass(frozen=True, eq=False)
class RankingTask:
    """Gains of all documents, weights of all queries, and ``n_subsets`` of a query per visit.

    A query counts as the mean of its subsets, times its weight.  ``before`` are the queries of
    other workers: what is drawn of a query does not depend on who has it.
    """

    objective: RankingObjective
    subsets: Subsets
    gains: Array64
    weights: Array64
    n_subsets: int
    n_jobs: int | None
    before: Before = field(default_factory=Before)

    @property
    def queries(self) -> IntArray:
        """Those that can be learned from."""
        return self.subsets.learnable

    def draw(
        self, seed: Sequence[int], queries: IntArray | None = None, before: Before | None = None
    ) -> Drawn:
        """Draw subsets of each query that can be learned from, or of some of them; ``n_subsets`` of
        each, one after the other.

        There is one stream of random numbers for all workers, of which each takes its own part:
        the subsets of some queries come after those of the queries ``before``, drawn as well.
        """
        asked = self.queries if queries is None else queries
        skipped = self.before if before is None else before
        stream = np.random.PCG64(list(seed)).advance(self.n_subsets * skipped.documents)
        return self.subsets.draw(
            np.repeat(asked, self.n_subsets),
            np.random.Generator(stream),
            first=self.n_subsets * skipped.queries,
        )

    def evaluate(
        self, scores: npt.NDArray[Any], drawn: Drawn, *, seed: int, curvature: bool = False
    ) -> OfSubsets:
        """Return the sum over subsets, at the scores of their documents."""
        evaluation = self.objective.evaluate(
            scores,
            self.gains[drawn.rows],
            drawn.offsets,
            curvature=curvature,
            seed=seed,
            first=drawn.first,
            n_jobs=self.n_jobs,
        )
        weight = self.weights[drawn.query] / self.n_subsets
        by_document = np.repeat(weight, np.diff(drawn.offsets))
        sampled = evaluation.effective[evaluation.effective > 0]
        return OfSubsets(
            float(evaluation.value @ weight),
            float(self.weights[drawn.query].sum()) / self.n_subsets,
            evaluation.gradient * by_document,
            None if evaluation.curvature is None else evaluation.curvature * by_document,
            float(sampled.sum()),
            float(sampled.size),
        )
