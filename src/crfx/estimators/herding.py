"""Conditional herding: every sweep votes on the labels (Gelfand et al. 2010)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.estimators.model_parameters import copied, get_weights, set_weights
from crfx.inference.problem import Problem
from crfx.model.model import Model
from crfx.prediction.predictor import Scored, scored_parts, stacked
from crfx.scores import FloatArray, IntArray
from crfx.threads import thread_count
from crfx.trainers.parametric import grown


@dataclass(eq=False)
class Votes:
    """The parameters at the end of each sweep, flat."""

    sweeps: list[npt.NDArray[np.float32]] = field(default_factory=list)

    def grown(self, origin: IntArray) -> Votes:
        """With more parameters, 0 so far."""
        return Votes([grown(values, origin) for values in self.sweeps])


@dataclass(frozen=True, eq=False)
class Voted:
    """Predictions by votes on every label: one for each of several parameters of a model."""

    by_scores: Scored
    votes: list[npt.NDArray[np.float32]]
    """Flat parameters; where there are none, those of the model vote."""

    @property
    def model(self) -> Model:
        """The fitted model."""
        return self.by_scores.model

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
        return scored_parts(self.by_scores.base_model(), batch, n_rounds, self.by_scores.n_jobs)

    def _shares(self, batch: Batch) -> npt.NDArray[np.float32]:
        model = self.by_scores.base_model()
        model.use_threads(thread_count(self.by_scores.n_jobs))
        counts = np.zeros((batch.n_rows, model.n_labels), np.float32)
        rows, voter = np.arange(batch.n_rows), copied(model)
        voters: list[npt.NDArray[Any]] = self.votes or [get_weights(model)]
        for values in voters:
            set_weights(voter, values)
            counts[rows, self.by_scores.decode(voter.problem(batch))] += 1
        return counts / np.float32(len(voters))
