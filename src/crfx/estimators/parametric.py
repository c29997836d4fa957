"""What estimators share whose parameters follow a gradient: reading, watching, the objective."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from crfx.estimators.base import fitted
from crfx.estimators.labelling import LabellingEstimator
from crfx.estimators.model_parameters import base_scores, parameter_blocks
from crfx.estimators.parameter_rounds import ParameterRounds, Steps
from crfx.estimators.placement import placed
from crfx.estimators.session import as_before_unless, run_rounds, start_of, with_classes
from crfx.estimators.training_state import TrainingState, course_of, lbfgs_state
from crfx.features.words import Numbering
from crfx.inference.problem import Problem
from crfx.inputs import weights
from crfx.inputs.label_codes import named_classes
from crfx.inputs.passed import Passed
from crfx.inputs.training_set import (
    EvalMetric,
    InputSettings,
    TrainingSet,
    Watched,
    read_eval_set,
    read_training_set,
)
from crfx.inputs.weights import ClassWeight
from crfx.model.model import Model
from crfx.objectives import registry, task_loss
from crfx.objectives.base import Objective
from crfx.objectives.registry import ObjectiveSettings
from crfx.objectives.truth import Truth
from crfx.structures.constraints import to_plain
from crfx.threads import one_blas_thread, thread_count
from crfx.trainers import lbfgs
from crfx.trainers.callbacks import Callback, History, listed_callbacks
from crfx.trainers.monitor import Metric
from crfx.trainers.parametric import ParametricObjective
from crfx.trainers.shared_evaluation import agreed_objective
from crfx.workers import current


class ParametricEstimator(LabellingEstimator):
    """Trains the parameters of ``model_`` by one of four trainers."""

    _usual_l2: ClassVar[dict[str, float]]
    trainer: str
    l2: float | None
    max_iter: int
    tol: float
    sweeps: int
    margin: float
    order: int
    early_stopping_rounds: int | None
    verbose: int
    min_count: int
    n_hashed: int | None
    objective: Any
    task_loss: Any
    class_weight: ClassWeight
    constraints: Any
    eval_metric: EvalMetric
    n_iter_: int
    _state: TrainingState | None = None
    """Where its training stood when it was cut off, or what it takes to make it longer."""
    _live: Callable[[], TrainingState] | None = None
    """Where it stands, while it lasts."""
    _taken_up: TrainingState | None = None
    """Where it began, while it lasts; None: at the parameters of the model."""

    @placed
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        init_model: LabellingEstimator | str | os.PathLike[str] | None = None,
        classes: Any = None,
        callbacks: Sequence[Callback] | None = None,
        allowed: Any = None,
    ) -> Any:
        """Train.

        The arguments are those of `GBCRF.fit`; features that are missing (NaN, or absent from CSR)
        count as 0.  An ``init_model`` of the same kind and shape is where the parameters start;
        any other stays fixed underneath.
        """
        self._check_parameters()
        start = None
        if init_model is not None:
            start = fitted(init_model, LabellingEstimator)
            classes = named_classes(classes, start.classes_, self.constraints)
            start = with_classes(start, classes)
        goes_on = start is not None and self._can_go_on(start)
        grows = goes_on and self._grows(start)
        passed = Passed(X, y, lengths, parents, edge_types, sample_weight, allowed)
        given = self._read(passed, start, grows, classes)
        self._check_training(given)
        callbacks = listed_callbacks(callbacks)
        model = self._begin(given, start, goes_on)
        model.mask = given.mask
        left = start._left() if goes_on and start is not None else None
        watched = read_eval_set(eval_set, given, model, self._eval_settings)
        n_before = 0
        with as_before_unless(lambda: len(self.history_["seconds"]) > n_before, self):
            self.classes_, self.columns_, self.model_ = given.classes, given.columns, model
            self.n_iter_, self.best_iteration_ = 0, 0
            self.history_: History = {"objective": [], "seconds": []}
            self._goes_on_with(left)
            n_before = len(self.history_["seconds"])
            self._to_go = self._rounds_here
            metric = self._metric(watched, given.truth, lambda: self._watched_problem(watched))
            with one_blas_thread():
                self._train(given, metric, callbacks)
        return self

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise ValueError at the first argument that makes no sense."""

    def _check_training(self, given: TrainingSet) -> None:
        """Raise ValueError where the arguments do not suit the data."""

    @abstractmethod
    def _can_go_on(self, start: LabellingEstimator) -> bool:
        """Whether the parameters of another estimator are those to be trained."""

    def _grows(self, start: Any) -> bool:
        """Whether one that is trained on may get new features."""
        return False

    @abstractmethod
    def _begin(self, given: TrainingSet, start: LabellingEstimator | None, goes_on: bool) -> Model:
        """The model to train; with the parameters of ``init_model`` where that is trained on."""

    def _goes_on_with(self, left: Any) -> None:
        """Take up what ``init_model`` has left, see `_left`; None: begin anew."""
        self._live, self._state, self._taken_up = None, None, None
        if left is None:
            return
        self._state = state = left["state"]
        if state is not None and state.trainer == self.trainer and left["lowers"] == self._lowers:
            self._taken_up = state
            self.n_iter_, self.history_ = left["n_iter"], left["history"]
            self.best_iteration_ = max(self.n_iter_ - 1, 0)

    @property
    def _lowers(self) -> tuple[Any, ...]:
        """What is lowered: steps towards something else are no guide."""
        loss = task_loss.to_plain(self.task_loss)
        class_weight = weights.to_plain(self.class_weight)
        constraints = to_plain(self.constraints)
        return registry.to_plain(self.objective), loss, self._penalty, class_weight, constraints

    def _left(self) -> dict[str, Any]:
        """What a training leaves to the one that goes on."""
        return {
            "lowers": self._lowers,
            "state": self._training_state(),
            "n_iter": self.n_iter_,
            "history": {name: list(entries) for name, entries in self.history_.items()},
        }

    def _training_state(self) -> TrainingState | None:
        """Where the training stands or stood."""
        return self._state if self._live is None else self._live()

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, also of one that is in training."""
        found: dict[str, Any] = dict(super().__getstate__())
        if found.get("_live") is not None:
            state = self._training_state()
            assert state is not None
            found |= {"_live": None, "_state": state.copied()}
        return found

    @abstractmethod
    def _steps(self, given: TrainingSet, trainer: ParameterRounds) -> Steps:
        """Train the parameters of ``model_``, an iteration or epoch at a time."""

    @property
    def _penalty(self) -> float:
        """The L2 penalty: where none is given, the one that suits the trainer."""
        return self._usual_l2[self.trainer] if self.l2 is None else self.l2

    def _read(
        self,
        passed: Passed,
        start: LabellingEstimator | None,
        grows: bool,
        classes: Any = None,
    ) -> TrainingSet:
        """Read and check the arguments of ``fit``."""
        keeps_names = start is not None and not grows and self._can_go_on(start)
        numbering = Numbering(1 if keeps_names else self.min_count, self.n_hashed)
        settings = InputSettings(
            self.order, self.constraints, self.class_weight, numbering, grows, classes
        )
        return read_training_set(passed, settings, start_of(start))

    def _train(self, given: TrainingSet, metric: Metric | None, callbacks: list[Callback]) -> None:
        self.model_.use_threads(thread_count(self.n_jobs))
        best = None if self._taken_up is None else self._taken_up.best
        trainer = ParameterRounds(self.model_, lambda own: self._steps(given, own), best)
        try:
            run_rounds(self, trainer, metric, callbacks, can_restore=best is not None)
            self._state, self._to_go = self._kept_state(), None
        except BaseException:  # also where the user interrupts: it may go on from there
            self._state = self._training_state()
            raise
        finally:
            self._live, self._taken_up = None, None

    def _watched_problem(self, watched: Watched | None) -> Problem:
        """Score the evaluation set; metrics that compare labels need what is decoded."""
        assert watched is not None
        model = self.model_ if self.eval_metric == "loss" else self._predictor.base_model()
        return model.problem(watched.batch)

    def _kept_state(self) -> TrainingState | None:
        """What a training that has come to its end keeps, for one that makes it longer."""
        return None

    def _by_lbfgs(
        self,
        whole: ParametricObjective,
        start: npt.NDArray[np.float64],
        trainer: ParameterRounds,
        *,
        l1: float = 0.0,
        is_fresh: bool | None = None,
    ) -> Steps:
        """L-BFGS, on the course that was taken up."""
        course, before = course_of(self._taken_up), self.n_iter_
        n_before = 0 if self._taken_up is None else self._taken_up.n_done
        course.left = self._limit

        def live() -> TrainingState:
            state = lbfgs_state(course, n_before + self.n_iter_ - before)
            return state.with_best(trainer.best)

        self._live = live
        return lbfgs.descend(
            whole.rounded(),
            start,
            max_iter=self.max_iter,
            tol=self.tol,
            l1=l1,
            finer=whole.finer().rounded(),
            course=course,
            is_fresh=is_fresh,
        )

    def _objective(self, model: Model, given: TrainingSet) -> ParametricObjective:
        batch, truth = given.batch, given.truth
        return ParametricObjective(
            agreed_objective(lambda: self._loss(truth), batch),
            parameter_blocks(model, batch, self._free(model, given))[0],
            batch,
            truth.structure,
            model.sharing,
            self._penalty,
            base_scores(model, batch),
            current(),
        )

    def _free(self, model: Model, given: TrainingSet) -> dict[str, npt.NDArray[np.bool_]] | None:
        """The entries of tables that have weights; None: all."""
        return None

    def _loss(self, truth: Truth) -> Objective:
        return ObjectiveSettings.of(vars(self)).bind_for_trainer(truth)
