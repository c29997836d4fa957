"""L-BFGS and rounds of feature induction in turn, for a LinearCRF."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.estimators.linear_assembly import is_observed, linear_functions
from crfx.estimators.model_parameters import get_weights, set_weights
from crfx.estimators.parameter_rounds import ParameterRounds, Steps
from crfx.features.conjunctions import Conjunctions, canonical
from crfx.features.matrix import take_rows
from crfx.inference.sum_product import summed
from crfx.inputs.training_set import TrainingSet
from crfx.model.model import Model
from crfx.potentials.linear import LinearFunction
from crfx.potentials.numbers import as_numbers
from crfx.potentials.weight_pattern import WeightPattern
from crfx.trainers import lbfgs
from crfx.trainers.base import TrainingState
from crfx.trainers.induction import FeatureInduction, Positions, choose
from crfx.trainers.parametric import ParametricObjective
from crfx.workers import current

if TYPE_CHECKING:
    from crfx.estimators.linear import LinearCRF

Array64 = npt.NDArray[np.float64]


def check_inducible(X: Any) -> None:
    """Raise ValueError where conjunctions of the columns of X cannot be chosen."""
    if current().size > 1:
        raise ValueError(
            "feature_induction compares pairs of features over all positions, which several "
            "workers do not see: leave it out, or train on one worker"
        )
    if not sparse.issparse(X):
        raise ValueError(
            "feature_induction needs sparse features (CSR, dicts, texts or a Template): where X is "
            "dense every column occurs with every other at every position, which suggests nothing"
        )


class Inducer:
    """Trains the model of an estimator, and adds conjunctions to it in between."""

    def __init__(
        self,
        crf: LinearCRF,
        given: TrainingSet,
        settings: FeatureInduction,
        trainer: ParameterRounds,
    ) -> None:
        self.crf, self.given, self.settings, self.trainer = crf, given, settings, trainer
        self._taken_up = crf._taken_up
        self._n_induced = 0 if self._taken_up is None else int(self._taken_up.numbers["induced"])
        self._rows = np.flatnonzero(given.truth.labels >= 0)
        self._X = canonical(take_rows(as_numbers(given.batch.X), self._rows))

    def steps(self) -> Steps:
        """Yield the weights after every iteration; the model has their features."""
        model, settings = self.crf.model_, self.settings
        if self.crf._limit == 0:  # it was to end, and was cut off before it could
            return get_weights(model)
        while self._n_induced < settings.rounds:
            whole = self.crf._objective(model, self.given)
            most = min(settings.iterations, self.crf.max_iter)
            set_weights(model, (yield from self._descend(whole, most, is_last=False)))
            more = self._chosen(whole)
            if not len(more):
                self._n_induced = settings.rounds
                break
            self._widen(model, more)
            self._n_induced += 1
        whole = self.crf._objective(model, self.given)
        return (yield from self._descend(whole, self.crf.max_iter))

    def _descend(
        self, whole: ParametricObjective, max_iter: int, *, is_last: bool = True
    ) -> lbfgs.Iterations:
        crf, start = self.crf, get_weights(self.crf.model_)
        before, self._taken_up = self._taken_up, None
        course, n_first = lbfgs.course_of(before), crf.n_iter_
        if before is not None:
            course.left = max_iter - int(before.numbers["in_round"])
            n_first -= max_iter - course.left

        def live() -> TrainingState:
            state = lbfgs.lbfgs_state(course, crf.n_iter_)
            counts = {"induced": self._n_induced, "in_round": crf.n_iter_ - n_first}
            numbers = state.numbers | {name: float(own) for name, own in counts.items()}
            return replace(state, numbers=numbers).with_best(self.trainer.best)

        crf._live = live
        return lbfgs.descend(
            whole.rounded(),
            start,
            max_iter=max_iter,
            tol=crf.tol,
            l1=crf.l1,
            finer=whole.finer().rounded() if is_last else None,
            course=course,
            is_last=is_last,
        )

    def _chosen(self, whole: ParametricObjective) -> Conjunctions:
        """New conjunctions, by the marginals of the model as it is."""
        crf, truth = self.crf, self.given.truth
        p = summed(whole.problem(get_weights(crf.model_)), None, None, n_jobs=crf.n_jobs).node
        weights = truth.position_weights
        at = Positions(
            np.clip(p[self._rows].astype(np.float64), 0.0, 1.0),
            truth.labels[self._rows],
            np.ones(len(self._rows)) if weights is None else weights[self._rows],
            crf.l1,
            crf._penalty,
            is_observed(crf, self._X),
        )
        known = linear_functions(crf.model_)[0].conjunctions or Conjunctions.of([])
        return choose(self._X, known, at, self.settings)[0]

    def _widen(self, model: Model, more: Conjunctions) -> None:
        """Let the nodes of the model have more conjunctions, whose weights are 0."""
        node, truth = linear_functions(model)[0], self.given.truth
        if node.pattern.outputs is None:
            pattern = WeightPattern.all(len(more), node.n_outputs)
        else:
            codes = truth.taught_labels[self._rows]
            pattern = WeightPattern.observed(more.of_matrix(self._X), codes, node.n_outputs)
        conjunctions = more if node.conjunctions is None else node.conjunctions.joined(more)
        model.node = LinearFunction(
            node.pattern.followed_by(pattern),
            np.concatenate([node.weights, np.zeros(pattern.n_weights)]),
            conjunctions,
        )
        model.node.use_threads(node.n_jobs)
        if self.trainer.best is not None:  # those of nodes come first
            places = np.full(pattern.n_weights, len(node.weights))
            self.trainer.best = np.insert(self.trainer.best, places, 0.0)
