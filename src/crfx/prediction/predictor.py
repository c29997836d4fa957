"""Predictors: from the scores of a model to labels and their probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.inference.max_product import best_labels, most_together
from crfx.inference.problem import Problem
from crfx.inference.results import SumProduct
from crfx.inference.sum_product import summed
from crfx.model.flat_parameters import copied, get_weights, set_weights
from crfx.model.model import Model
from crfx.scores import FloatArray, IntArray
from crfx.threads import thread_count

MOST_SCORES = 2**26
"""Edge scores that prediction holds at a time, unless one instance has more: 256 MiB."""


class Predictor(Protocol):
    """What an estimator predicts with."""

    @property
    def model(self) -> Model:
        """The fitted model."""
        ...

    @property
    def decoded(self) -> Model:
        """The model whose scores `decode` takes: the fitted one, or with other scores."""
        ...

    def labels(self, batch: Batch, n_rounds: int | None = None) -> IntArray:
        """Return the label codes (rows,) of a batch."""
        ...

    def decode(self, problem: Problem) -> IntArray:
        """Return the label codes (rows,) for scores that are there already."""
        ...

    def marginals(self, batch: Batch, n_rounds: int | None = None) -> FloatArray:
        """Return (rows, labels): the probability of every label."""
        ...

    def scored(self) -> Scored:
        """Return what labellings have probabilities by; raise ValueError if they have none."""
        ...

    def base_model(self) -> Model:
        """Return the model whose scores can be the base of another model, or raise ValueError."""
        ...


@dataclass(frozen=True, eq=False)
class Scored:
    """Predictions from the scores of ``model``.

    ``decoder`` is "viterbi" (the best labelling) or "marginal" (the best label of each position).
    With "joint" the best labelling is that of ``joint``, a model with other scores, while
    probabilities are those of ``model``.
    """

    model: Model
    decoder: str | None = "viterbi"
    n_jobs: int | None = None
    joint: Model | None = None

    @property
    def decoded(self) -> Model:
        """The model whose scores are decoded."""
        return self.model if self.joint is None else self.joint

    def labels(self, batch: Batch, n_rounds: int | None = None) -> IntArray:
        """Return the label codes (rows,) of a batch."""
        problems = scored_parts(self.decoded, batch, n_rounds, self.n_jobs)
        return stacked(map(self.decode, problems))

    def decode(self, problem: Problem) -> IntArray:
        """Return the label codes (rows,) for scores that are there already."""
        if self.decoder == "marginal":
            return self.best_together(self.sums(problem).node, problem)
        if self.decoder not in ("viterbi", "joint"):
            raise ValueError(f'decode is {self.decoder!r}: choose "viterbi" or "marginal"')
        return best_labels(problem, self.n_jobs)[0]

    def marginals(self, batch: Batch, n_rounds: int | None = None) -> FloatArray:
        """Return (rows, labels): the probability of every label."""
        return stacked(self.sums(problem).node for problem in self.problems(batch, n_rounds))

    def scored(self) -> Scored:
        """Return this predictor: its labellings have probabilities."""
        return self

    def base_model(self) -> Model:
        """Return the model whose scores another one may add to: those that are decoded."""
        return self.decoded

    def problems(
        self, batch: Batch, n_rounds: int | None = None, *, table_per_row: bool = False
    ) -> Iterator[Problem]:
        """Yield the instances with their scores, as many at a time as fit into memory well.

        ``table_per_row``: more than the scores of edges is needed for every row.
        """
        return scored_parts(self.model, batch, n_rounds, self.n_jobs, table_per_row=table_per_row)

    def problem(self, batch: Batch, n_rounds: int | None = None) -> Problem:
        """Return all instances with their scores."""
        self.model.use_threads(thread_count(self.n_jobs))
        return self.model.problem(batch, n_rounds)

    def sums(self, problem: Problem, edges: str | None = None) -> SumProduct:
        """Return log Z and marginals, those of ``edges`` on request."""
        return summed(problem, edges, None, n_jobs=self.n_jobs)

    def labels_of(self, problem: Problem, n_rounds: int | None = None) -> IntArray:
        """Return what `labels` returns for the instances of ``problem``, scored by ``model``."""
        return self.decode(problem) if self.joint is None else self.labels(problem.batch, n_rounds)

    def best_together(self, shares: FloatArray, problem: Problem) -> IntArray:
        """Return (rows,) the labels of largest ``shares`` (rows, K) that constraints allow."""
        if self.model.mask is None:
            codes: IntArray = shares.argmax(axis=1)
            return codes
        return most_together(shares, problem, self.model.mask, self.n_jobs)


@dataclass(frozen=True, eq=False)
class Voted:
    """Predictions by votes on every label, one for each of several parameters of a model.

    This is conditional herding (Gelfand et al. 2010).
    """

    by_scores: Scored
    votes: list[npt.NDArray[np.float32]]
    """Flat parameters; where there are none, those of the model vote."""

    @property
    def model(self) -> Model:
        """The fitted model."""
        return self.by_scores.model

    @property
    def decoded(self) -> Model:
        """The fitted model; its features are what is voted on."""
        return self.by_scores.decoded

    def labels(self, batch: Batch, n_rounds: int | None = None) -> IntArray:
        """Return the label codes (rows,) of a batch."""
        return stacked(map(self.decode, self._problems(batch, n_rounds)))

    def decode(self, problem: Problem) -> IntArray:
        """Return the label codes (rows,) for the features of ``problem``."""
        if not self.votes:
            return self.by_scores.decode(problem)
        return self.by_scores.best_together(self._shares(problem.batch), problem)

    def marginals(self, batch: Batch, n_rounds: int | None = None) -> FloatArray:
        """Return (rows, labels): the share of votes for every label."""
        return stacked(self._shares(problem.batch) for problem in self._problems(batch, n_rounds))

    def scored(self) -> Scored:
        """Raise ValueError: labellings have no probabilities."""
        raise ValueError(
            "with herding sweeps vote on labels, and there are no probabilities of labellings: "
            "predict, predict_marginals and score are what it has"
        )

    def base_model(self) -> Model:
        """Raise ValueError: votes are no scores."""
        raise ValueError("init_model votes (herding): it has no scores to stand on")

    def _problems(self, batch: Batch, n_rounds: int | None) -> Any:
        return scored_parts(self.decoded, batch, n_rounds, self.by_scores.n_jobs)

    def _shares(self, batch: Batch) -> npt.NDArray[np.float32]:
        model = self.decoded
        model.use_threads(thread_count(self.by_scores.n_jobs))
        counts = np.zeros((batch.n_rows, model.n_labels), np.float32)
        rows, voter = np.arange(batch.n_rows), copied(model)
        voters: list[npt.NDArray[Any]] = self.votes or [get_weights(model)]
        for values in voters:
            set_weights(voter, values)
            counts[rows, self.by_scores.decode(voter.problem(batch))] += 1
        return counts / np.float32(len(voters))


def scored_parts(
    model: Model,
    batch: Batch,
    n_rounds: int | None,
    n_jobs: int | None,
    *,
    table_per_row: bool = False,
) -> Iterator[Problem]:
    """Yield the instances with their scores, as many at a time as fit into memory well.

    These are those of a chunk of features that stay on disk, and fewer where every edge has a
    table of its own.
    """
    model.use_threads(thread_count(n_jobs))
    for chunk in batch.loaded():
        if table_per_row or model.sharing == "each":
            parts = chunk.parts(max(1, MOST_SCORES // int(np.prod(model.table))))
        else:
            parts = [chunk]
        for part in parts:
            yield model.problem(part, n_rounds)


def stacked(arrays: Iterable[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the arrays one after the other; a single one is not copied."""
    parts = list(arrays)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
