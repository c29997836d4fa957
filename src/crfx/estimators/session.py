"""A session: one call of ``fit``, from the model it starts from to the last round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from crfx.estimators.base import Estimator, counter_of, fitted, rounds_done
from crfx.estimators.labelling import LabellingEstimator
from crfx.features.columns import Columns
from crfx.inference.problem import Problem
from crfx.inputs import weights
from crfx.inputs.label_codes import find_classes, named_classes, read_classes
from crfx.inputs.training_set import Start, TrainingSet, Watched
from crfx.model.building import check_table_size
from crfx.model.continuing import with_labels
from crfx.model.model import Model
from crfx.model.ranking_model import RankingModel
from crfx.objectives import registry as objectives
from crfx.objectives import task_loss
from crfx.structures.constraints import to_plain as plain_constraints
from crfx.threads import one_blas_thread, thread_count
from crfx.trainers.base import ResumableTrainer, RowTrainer, Trainer, TrainingState
from crfx.trainers.callbacks import Callback, History
from crfx.trainers.monitor import METRIC, Metric, Monitor
from crfx.trainers.progress import ProgressBar
from crfx.workers import current

# Where training starts ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WarmStart:
    """The argument ``init_model`` with the labels of ``classes`` added; without it, no estimator.

    ``classes`` are the labels that the argument names beside those of y and of the estimator.
    """

    estimator: Any = None
    classes: Any = None

    @property
    def known(self) -> Start:
        """The model, classes and columns that reading the training set needs."""
        return start_of(self.estimator)

    @property
    def n_rounds(self) -> int:
        """The number of rounds that it has had."""
        return rounds_done(self.estimator)

    def is_a(self, kind: type[Estimator]) -> bool:
        """Return whether it is an estimator of a kind."""
        return isinstance(self.estimator, kind)

    def base_model(self) -> Model | None:
        """Return its model as one that other scores are added to."""
        return None if self.estimator is None else self.estimator._predictor.base_model()

    def history(self, eval_metric: Any) -> History:
        """Return its history up to its last round; without entries of another metric."""
        same_metric = self.estimator.eval_metric == eval_metric
        return {
            name: list(entries[: self.n_rounds])
            for name, entries in self.estimator.history_.items()
            if same_metric or name != METRIC
        }


def read_warm_start(init_model: Any, classes: Any, constraints: Any) -> WarmStart:
    """Read the arguments ``init_model`` and ``classes`` of a labelling estimator."""
    if init_model is None:
        return WarmStart(None, classes)
    start = fitted(init_model, LabellingEstimator)
    classes = named_classes(classes, start.classes_, constraints)
    return WarmStart(with_classes(start, classes), classes)


def start_of(estimator: Any) -> Start:
    """Return what is known of a fitted estimator that training starts from; None: nothing."""
    if estimator is None:
        return Start()
    return Start(estimator.model_, estimator.classes_, estimator.columns_)


def with_classes(start: LabellingEstimator, classes: Any) -> LabellingEstimator:
    """Return a copy of a fitted estimator that knows these labels too, if it does not already."""
    before = start.classes_.tolist()
    if classes is None or not set(read_classes(classes)) - set(before):
        return start
    distinct, model = find_classes([*before, *read_classes(classes)]), start.model_
    place_of = {label: code for code, label in enumerate(distinct.tolist())}
    codes = np.array([place_of[label] for label in before])
    has_tables = model.edge_family is not None or start.constraints is not None
    check_table_size(model.order, len(distinct), model.n_types, has_tables=has_tables)
    wider = copy(start)
    wider.classes_, wider.model_ = distinct, with_labels(model, codes, len(distinct))
    wider._take_labels(start, codes)
    return wider


# The rounds ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class Session:
    """The rounds of a call of ``fit``; the one place that writes fitted attributes in training."""

    estimator: Any
    callbacks: Sequence[Callback]

    def run(self, trainer: RowTrainer, metric: Metric | None, *, can_restore: bool = True) -> None:
        """Run all rounds and return to the best one; ``can_restore``: see `run_rounds`."""
        estimator = self.estimator
        try:
            best = run_rounds(estimator, trainer, metric, self.callbacks, can_restore=can_restore)
        except BaseException:
            trainer.abandon(rounds_done(estimator))
            raise
        finally:
            trainer.release()
        setattr(estimator, counter_of(estimator), best)


@contextmanager
def fitting(
    estimator: Any,
    data: TrainingSet,
    model: Model,
    further: WarmStart | None,
    callbacks: Sequence[Callback],
) -> Iterator[Session]:
    """Give an estimator a model to train; restore its attributes if nothing is learned.

    ``further`` is the start whose rounds are continued; None: there are none yet.
    """
    first = 0 if further is None else further.n_rounds
    with as_before_unless(lambda: rounds_done(estimator) > first, estimator):
        estimator.classes_, estimator.columns_, estimator.model_ = data.classes, data.columns, model
        estimator.n_rounds_ = first
        estimator.history_ = {} if further is None else further.history(estimator.eval_metric)
        estimator._to_go = estimator._rounds_here
        model.use_threads(thread_count(estimator.n_jobs))
        yield Session(estimator, callbacks)
        estimator._to_go = None


@contextmanager
def fitting_ranking(
    estimator: Any,
    columns: Columns,
    model: RankingModel,
    further: Any,
    callbacks: Sequence[Callback],
) -> Iterator[Session]:
    """Give a RankingCRF a model to train; restore its attributes if nothing is learned.

    ``further`` is the fitted estimator whose rounds are continued; None: there are none yet.
    """
    start = WarmStart(further)
    first = 0 if further is None else start.n_rounds
    with as_before_unless(lambda: rounds_done(estimator) > first, estimator):
        estimator.columns_, estimator.model_, estimator.n_rounds_ = columns, model, first
        estimator.history_ = {} if further is None else start.history(estimator.eval_metric)
        training = None if further is None else further._training
        estimator._training = None if training is None else training.frozen()
        estimator._to_go = estimator._rounds_here
        model.use_threads(thread_count(estimator.n_jobs))
        yield Session(estimator, callbacks)
        estimator.best_iteration_, estimator._to_go = max(estimator.n_rounds_ - 1, 0), None


@contextmanager
def as_before_unless(learned: Callable[[], bool], estimator: Any) -> Iterator[None]:
    """Leave the estimator as if never called if fitting fails before anything is learned."""
    arguments = estimator.get_params(deep=False)
    before = {name: value for name, value in vars(estimator).items() if name not in arguments}
    try:
        yield
    except BaseException:
        if not learned():
            for name in [name for name in vars(estimator) if name not in arguments]:
                delattr(estimator, name)
            for name, value in before.items():
                setattr(estimator, name, value)
        raise


def run_rounds(
    estimator: Estimator,
    trainer: Trainer,
    metric: Metric | None,
    callbacks: Sequence[Callback],
    *,
    can_restore: bool = True,
) -> int:
    """Run all rounds of a trainer and return to the best one; return its number.

    Counts, history and ``best_iteration_`` of the estimator follow every round, so that a callback
    can save it.  ``can_restore``: the best of the rounds that were there before can be restored.
    """
    counter, n_done = counter_of(estimator), rounds_done(estimator)
    monitor = Monitor(
        estimator.history_, metric, estimator.early_stopping_rounds, callbacks, estimator.save
    )
    if monitor.take_over(n_done, can_restore=can_restore):
        trainer.mark()
    if estimator.verbose and current().rank == 0:
        bar = ProgressBar(n_done + estimator._rounds_here)
        monitor.callbacks = [*callbacks, bar]
    else:
        bar = None
    try:
        with closing(trainer.rounds()) as rounds:
            for record in () if monitor.is_over else rounds:
                measured = monitor.measured(record)
                # Together, and after all that takes time: counts agree wherever it is interrupted.
                n_done += 1
                setattr(estimator, counter, n_done)
                estimator.best_iteration_ = n_done - 1
                estimator._count_down()
                stops = monitor.note(measured, n_done, trainer.mark)
                estimator.best_iteration_ = monitor.best_round(n_done) - 1
                if stops:
                    break
    finally:
        if bar is not None:
            bar.close()
    best = monitor.best_round(n_done)
    if monitor.stops_early:
        trainer.keep_best(best)
    estimator.best_iteration_ = max(best - 1, 0)
    return best


# Parameters --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ParameterSession:
    """The rounds of a call of ``fit`` that trains parameters; ``resumed`` is where it resumes."""

    estimator: Any
    data: TrainingSet
    callbacks: Sequence[Callback]
    resumed: TrainingState | None

    def run(
        self, trainer: ResumableTrainer, watched: Watched | None, *, keeps_state: bool = False
    ) -> None:
        """Run all rounds and return to the best one.

        An interrupted training leaves its state to the estimator; with ``keeps_state`` one that has
        ended does so too, for a longer one.
        """
        estimator = self.estimator

        def problem() -> Problem:
            assert watched is not None
            is_loss = estimator.eval_metric == "loss"
            model = estimator.model_ if is_loss else estimator._predictor.base_model()
            return cast("Model", model).problem(watched.batch)

        metric, can_restore = estimator._metric(watched, self.data.truth, problem), False
        if self.resumed is not None:
            trainer.restore(self.resumed)
            can_restore = self.resumed.best is not None
        estimator._training = trainer
        try:
            run_rounds(estimator, trainer, metric, self.callbacks, can_restore=can_restore)
            state = trainer.state() if keeps_state else None
            estimator._training = None if state is None else state.ended()
            estimator._to_go = None
        except BaseException:  # also where the user interrupts: it may go on from there
            estimator._training = trainer.state()
            raise


@contextmanager
def fitting_parameters(
    estimator: Any,
    data: TrainingSet,
    model: Model,
    resumed: Any,
    callbacks: Sequence[Callback],
) -> Iterator[ParameterSession]:
    """Let an estimator have a model in training, and what it had before if nothing is learned.

    ``resumed`` is the fitted estimator whose training resumes; None: a new one begins.
    """
    n_done, state = 0, state_of(resumed)
    history: History = {"objective": [], "seconds": []}
    if resumed is not None:
        n_done = resumed.n_iter_
        history = {name: list(entries) for name, entries in resumed.history_.items()}
    n_before = len(history["seconds"])
    with as_before_unless(lambda: len(estimator.history_["seconds"]) > n_before, estimator):
        estimator.classes_, estimator.columns_, estimator.model_ = data.classes, data.columns, model
        estimator.n_iter_, estimator.history_ = n_done, history
        estimator.best_iteration_ = max(n_done - 1, 0)
        estimator._training, estimator._to_go = None, estimator._rounds_here
        model.use_threads(thread_count(estimator.n_jobs))
        with one_blas_thread():
            yield ParameterSession(estimator, data, callbacks, state)


def state_of(estimator: Any) -> TrainingState | None:
    """Return where the training of parameters stands or stood; None if that is not kept."""
    training = None if estimator is None else estimator._training
    return None if training is None else training.state()


def resumed_from(start: Any, estimator: Any, arguments: Sequence[str] = ()) -> Any:
    """Return ``start`` if an estimator can resume its training; else None.

    They must have the same trainer and the same objective; ``arguments`` are those of the objective
    that only some estimators have.
    """
    state = state_of(start)
    if state is None or state.trainer != estimator.trainer:
        return None
    return start if _lowered(start, arguments) == _lowered(estimator, arguments) else None


def _lowered(estimator: Any, arguments: Sequence[str]) -> tuple[Any, ...]:
    return (
        objectives.to_plain(estimator.objective),
        task_loss.to_plain(estimator.task_loss),
        estimator._penalty,
        weights.to_plain(estimator.class_weight),
        plain_constraints(estimator.constraints),
        *(getattr(estimator, name) for name in arguments),
    )
