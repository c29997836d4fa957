"""Shared parts of rankers: lists of documents, and the evaluation of their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from crfx.io.letor import Rankings
from crfx.ndcg import Definition, Gain, mean_ndcg, ndcg_by_query

Array64 = npt.NDArray[np.float64]


class Fitted(NamedTuple):
    """A trained ranker: scores of documents (n, features) -> (n,), and its number of rounds."""

    scores: Callable[[npt.NDArray[np.float32]], Array64]
    rounds: int


@dataclass(frozen=True, slots=True)
class Judge:
    """A figure for scores: the mean of NDCG at some cuts, over the queries of a part."""

    cuts: tuple[int, ...] = (1, 2, 3, 4, 5)
    definition: Definition = "letor"
    gain: Gain = "linear"

    def __call__(self, part: Rankings, scores: Array64) -> float:
        """Return the figure; higher is better."""
        ndcg = ndcg_by_query(
            part.relevance,
            scores,
            part.group,
            cuts=self.cuts,
            definition=self.definition,
            gain=self.gain,
        )
        return float(mean_ndcg(ndcg).mean())


@dataclass(frozen=True, slots=True)
class Given:
    """The data of a ranker: a training part, and a validation part to choose among rounds."""

    train: Rankings
    validation: Rankings
    judge: Judge = field(default_factory=Judge)
    n_jobs: int | None = None


Ranker: TypeAlias = Callable[..., Fitted]
"""Trains: (given, **settings), the settings being its own."""


def linear(weights: Array64, rounds: int) -> Fitted:
    """Return a ranker that scores by weights (features,)."""
    return Fitted(lambda X: np.asarray(X, np.float64) @ weights, rounds)


def query_of(part: Rankings) -> npt.NDArray[np.int64]:
    """Return the number of the query of every document, from 0."""
    return np.repeat(np.arange(len(part.group)), part.group)


def with_levels(part: Rankings) -> Rankings:
    """Return the queries whose documents differ in relevance; others teach nothing."""
    starts = np.cumsum(part.group) - part.group
    least, most = (ufunc.reduceat(part.relevance, starts) for ufunc in (np.minimum, np.maximum))
    kept = least < most
    if not kept.any():
        raise ValueError("no query has documents of different relevance: there is nothing to learn")
    rows = np.repeat(kept, part.group)
    return Rankings(
        part.X[rows], part.relevance[rows], part.group[kept], part.query_ids[kept], None
    )
