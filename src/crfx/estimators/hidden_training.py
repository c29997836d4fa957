"""How a HiddenUnitCRF is trained: pre-training, L-BFGS, sweeps, and going on where it stood."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.estimators.herding import Votes
from crfx.estimators.hidden_steps import PARAMETERS_AT_ONCE
from crfx.estimators.hidden_sweeps import Sweeps, block_rates
from crfx.estimators.model_parameters import get_weights, set_weights
from crfx.estimators.parameter_rounds import ParameterRounds, Steps
from crfx.model.model import Model
from crfx.objectives.base import Objective
from crfx.objectives.likelihood import likelihood_of
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.potentials.hidden_unit import HiddenUnitFunction
from crfx.potentials.numbers import as_numbers
from crfx.trainers.pretraining import contrastive_divergence
from crfx.workers import total

if TYPE_CHECKING:
    from crfx.estimators.hidden_unit import HiddenUnitCRF
    from crfx.inputs.training_set import TrainingSet

Array64 = npt.NDArray[np.float64]


class HiddenTraining:
    """One call of ``fit``."""

    def __init__(self, crf: HiddenUnitCRF, given: TrainingSet, trainer: ParameterRounds) -> None:
        self.crf, self.given, self.trainer = crf, given, trainer
        self.model = crf._training_model

    def steps(self) -> Steps:
        """Pre-train; then yield the parameters after every iteration or epoch."""
        if not self.crf.n_iter_ and self.crf._state is None and self.crf.pretrain is not None:
            self._pretrain()
        return (yield from self._by_lbfgs() if self.crf.trainer == "lbfgs" else self._by_sweeps())

    # L-BFGS ---------------------------------------------------------------------------------------

    def _by_lbfgs(self) -> Steps:
        crf = self.crf
        whole = crf._objective(self.model, self.given)
        self.trainer.objective = whole.objective
        is_fresh = crf._state is None and self.model.base is None
        return crf._by_lbfgs(whole, get_weights(self.model), self.trainer, is_fresh=is_fresh)

    # Sweeps ---------------------------------------------------------------------------------------

    def _by_sweeps(self) -> Steps:
        crf, before = self.crf, self.crf._taken_up
        done = 0 if before is None else before.n_done
        burn_in = crf.burn_in
        if burn_in is None:
            burn_in = crf.sweeps // (10 if crf._is_perceptron else 2)
        rates = block_rates(crf.block_steps, self.model, self.given)
        sweeps = Sweeps(self.model, self.given.truth, crf._loss, rates, crf, burn_in)
        sweeps.begin(self._step(sweeps), before)
        loss = self.trainer.objective = crf._loss(self.given.truth)
        weights: npt.NDArray[Any] | None = None  # those of the model: not held twice
        if crf.herding and crf._votes is None:
            crf._votes = Votes()
        for number in range(done, done + crf._rounds_here):
            sweeps.sweep(number)
            weights = sweeps.parameters.average()
            if crf._votes is not None and number >= burn_in:
                crf._votes.sweeps.append(np.array(sweeps.parameters.values, np.float32))
            crf._live = lambda n=number + 1: sweeps.state(n).with_best(self.trainer.best)
            set_weights(self.model, weights)
            own = loss.evaluate(self.model.problem(self.given.batch), ()).value
            value = total(sweeps.workers.communicator, own)
            yield weights, value + penalty(crf._penalty, weights)
        return get_weights(self.model) if weights is None else weights

    def _step(self, sweeps: Sweeps) -> float:
        if self.crf.step is not None:
            return self.crf.step
        if self.crf._taken_up is not None:
            return self.crf._taken_up.numbers["step"]
        return sweeps.good_step()

    # Pre-training ---------------------------------------------------------------------------------

    def _pretrain(self) -> None:
        node = self.crf.model_.node
        assert isinstance(node, HiddenUnitFunction)
        if self.crf.pretrain == "contrastive":
            self._by_contrast(node)
            return
        alone = Model(
            order=1,
            n_labels=self.model.n_labels,
            node=node,
            is_forest=self.model.is_forest,
            base=self.model.base,
            mask=self.model.mask,
        )
        n_jobs = self.crf.n_jobs

        def loss(truth: Truth) -> Objective:
            return likelihood_of(truth, n_jobs)

        n_sweeps = self.crf.pretrain_sweeps
        sweeps = Sweeps(alone, self.given.truth, loss, np.ones(7), self.crf, n_sweeps // 2)
        sweeps.begin(sweeps.good_step())
        for number in range(n_sweeps):
            sweeps.sweep(number)
        set_weights(alone, sweeps.parameters.average())

    def _by_contrast(self, node: HiddenUnitFunction) -> None:
        X = as_numbers(self.given.batch.X)
        if sparse.issparse(X):
            raise ValueError(
                'pretrain="contrastive" draws all features anew in every step: X must be dense'
            )
        given = self.given.truth.position_weights
        weights = np.ones(len(X), np.float32) if given is None else given.astype(np.float32)
        used = (self.given.truth.labels != UNKNOWN) & (weights > 0)
        contrastive_divergence(
            X[used],
            self.given.truth.labels[used],
            weights[used],
            node.shape,
            node.weights,
            self.crf.pretrain_sweeps,
            self.crf._seed,
        )


def penalty(l2: float, values: npt.NDArray[Any]) -> float:
    """l2 |w|^2, summed in float64."""
    if not l2:
        return 0.0
    parts = (
        values[begin : begin + PARAMETERS_AT_ONCE].astype(np.float64)
        for begin in range(0, len(values), PARAMETERS_AT_ONCE)
    )
    return l2 * sum(float(part @ part) for part in parts)
