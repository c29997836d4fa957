"""A session: one call of ``fit``, from the model it starts from to the last round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from crfx.estimators.arguments import table_of, usual_value
from crfx.estimators.base import Estimator, counter_of, fitted, rounds_done
from crfx.estimators.labelling import LabellingEstimator, base_model, with_classes
from crfx.inputs import weights
from crfx.inputs.label_codes import named_classes
from crfx.inputs.training_set import Start
from crfx.model.model import Model
from crfx.objectives import registry as objectives
from crfx.objectives import task_loss
from crfx.structures.constraints import to_plain as plain_constraints
from crfx.threads import thread_count
from crfx.trainers.base import Standing, Trainer, Training
from crfx.trainers.callbacks import Callback, History, Progress, any_stops, checked_callbacks
from crfx.trainers.monitor import METRIC, Metric, Monitor
from crfx.trainers.progress import ProgressBar
from crfx.workers import current

Kind = TypeVar("Kind", bound=Estimator)

# Where training starts ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Unfinished:
    """A checkpoint as ``init_model``: only the rounds that it still has to go are trained."""

    checkpoint: Estimator


@dataclass(frozen=True, eq=False)
class WarmStart:
    """The argument ``init_model`` with the labels of ``classes`` added; without it, no estimator.

    ``classes`` are the labels that the argument names beside those of y and of the estimator;
    ``to_go`` are the rounds left of an interrupted training, None of any other.
    """

    estimator: Any = None
    classes: Any = None
    to_go: int | None = None

    @property
    def known(self) -> Start:
        """The model, classes and columns that reading the training set needs."""
        return start_of(self.estimator)

    @property
    def model(self) -> Any:
        """Its model; None without an estimator."""
        return self.known.model

    @property
    def n_rounds(self) -> int:
        """The number of rounds that the estimator has had."""
        return 0 if self.estimator is None else rounds_done(self.estimator)

    @property
    def standing(self) -> Any:
        """The state of its training; None if the model is all there is."""
        return None if self.estimator is None else self.estimator.training_.frozen().standing

    def is_a(self, kind: type[Estimator]) -> bool:
        """Return whether it is an estimator of a kind."""
        return isinstance(self.estimator, kind)

    def base_model(self) -> Model | None:
        """Return its model as one that other scores are added to."""
        return None if self.estimator is None else base_model(self.estimator)

    def continued_if(self, is_continued: bool) -> WarmStart:
        """Return the start if its rounds are continued, else one without estimator: a base model
        adds its scores, not its rounds.
        """
        return self if is_continued else replace(self, estimator=None)


def read_warm_start(init_model: Any, classes: Any, constraints: Any) -> WarmStart:
    """Read the arguments ``init_model`` and ``classes`` of a labelling estimator."""
    start = read_init_model(init_model, LabellingEstimator)
    if start.estimator is None:
        return WarmStart(None, classes)
    classes = named_classes(classes, start.estimator.classes_, constraints)
    return replace(start, estimator=with_classes(start.estimator, classes), classes=classes)


def read_init_model(init_model: Any, kind: type[Estimator]) -> WarmStart:
    """Read the argument ``init_model`` of an estimator of a kind."""
    if init_model is None:
        return WarmStart()
    if isinstance(init_model, Unfinished):
        checkpoint = fitted(init_model.checkpoint, kind)
        return WarmStart(checkpoint, to_go=checkpoint.training_.to_go)
    return WarmStart(fitted(init_model, kind))


def start_of(estimator: Any) -> Start:
    """Return what is known of a fitted estimator that training starts from; None: nothing."""
    if estimator is None:
        return Start()
    return Start(estimator.model_, estimator.classes_, estimator.columns_)


def can_resume(start: WarmStart, estimator: Any, names: Sequence[str] = ()) -> bool:
    """Return whether an estimator that trains parameters can resume where ``start`` stood.

    They must have the same trainer and lower the same objective; ``names`` are arguments of the
    objective that only some estimators have.
    """
    if (standing := start.standing) is None or standing.trainer != estimator.trainer:
        return False
    return _lowered(start.estimator, names) == _lowered(estimator, names)


def _lowered(estimator: Any, names: Sequence[str]) -> tuple[Any, ...]:
    return (
        objectives.to_plain(estimator.objective),
        task_loss.to_plain(estimator.task_loss),
        usual_value("l2", vars(estimator), table_of(estimator)),
        weights.to_plain(estimator.class_weight),
        plain_constraints(estimator.constraints),
        *(getattr(estimator, name) for name in names),
    )


# The rounds ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class Session:
    """The rounds of a call of ``fit``, which write the fitted attributes after every round."""

    estimator: Any
    n_rounds: int
    callbacks: Sequence[Callback]
    standing: Standing | None = None
    """Where the training to be resumed stood; None: the model is enough."""
    keeps_state: bool = False

    def run(self, trainer: Trainer, metric: Metric | None) -> None:
        """Run all rounds and return to the best one.

        An interrupted training leaves its state to the estimator.
        """
        estimator = self.estimator
        if self.standing is not None:
            trainer.restore(self.standing)
        estimator.training_ = Training(to_go=self.n_rounds, trainer=trainer)
        try:
            best = self._run_rounds(trainer, metric)
            state = trainer.state() if self.keeps_state else None
            estimator.training_ = Training(standing=None if state is None else state.ended())
        except BaseException:  # also where the user interrupts: training may continue from there
            trainer.abandon(rounds_done(estimator))
            estimator.training_ = replace(
                estimator.training_, trainer=None, standing=trainer.state()
            )
            raise
        finally:
            trainer.release()
        if counter_of(estimator) == "n_rounds_":  # iterations that were done are not undone
            estimator.n_rounds_ = best

    def _run_rounds(self, trainer: Trainer, metric: Metric | None) -> int:
        """Run all rounds of a trainer and return to the best one; return its number.

        Count, history and ``best_iteration_`` of the estimator follow every round, so that a
        callback can save it.
        """
        estimator = self.estimator
        n_done, counter = rounds_done(estimator), counter_of(estimator)
        patience = estimator.early_stopping_rounds
        monitor = Monitor(estimator.history_, metric, patience, self.callbacks, estimator.save)
        if monitor.take_over(n_done, can_restore=trainer.can_restore):
            trainer.mark()
        bar = None
        if estimator.verbose and current().rank == 0:
            bar = ProgressBar(n_done + self.n_rounds)
            monitor.callbacks = [*self.callbacks, bar]
        try:
            with closing(trainer.rounds()) as rounds:
                for record in () if monitor.is_over else rounds:
                    measured = monitor.measured(record)
                    n_done += 1
                    # At once, and after all that takes time: they agree wherever it is interrupted.
                    vars(estimator).update(
                        {
                            counter: n_done,
                            "best_iteration_": n_done - 1,
                            "history_": monitor.record(measured, n_done),
                            "training_": estimator.training_.one_less(),
                        }
                    )
                    stops = monitor.ask(n_done, trainer.mark)
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


@contextmanager
def fitting(
    estimator: Any,
    model: Any,
    start: WarmStart,
    callbacks: Sequence[Callback],
    n_rounds: int,
    *,
    keeps_state: bool = False,
    **attributes: Any,
) -> Iterator[Session]:
    """Give an estimator a model to train; restore its attributes if nothing is learned.

    ``start`` has the estimator whose rounds are continued, if there is one; ``n_rounds`` are those
    that the arguments ask for.  With ``keeps_state`` a training that has ended leaves its state to
    a longer one.  ``attributes`` are fitted attributes that are known already.
    """
    # Before anything is written: an estimator may continue from itself.
    n_done, standing = start.n_rounds, start.standing
    n_rounds = n_rounds if start.to_go is None else start.to_go
    before = _fitted_attributes(estimator)
    try:
        vars(estimator).update(
            attributes,
            model_=model,
            history_=_history(start.estimator, n_done, estimator),
            best_iteration_=max(n_done - 1, 0),
            training_=Training(),
        )
        setattr(estimator, counter_of(estimator), n_done)
        model.use_threads(thread_count(estimator.n_jobs))
        yield Session(estimator, n_rounds, callbacks, standing, keeps_state)
    except BaseException:
        if rounds_done(estimator) == n_done:
            for name in _fitted_attributes(estimator):
                delattr(estimator, name)
            vars(estimator).update(before)
        raise


def _fitted_attributes(estimator: Any) -> dict[str, Any]:
    arguments = estimator.get_params(deep=False)
    return {name: value for name, value in vars(estimator).items() if name not in arguments}


def _history(continued: Any, n_done: int, estimator: Any) -> History:
    """Return the history of the rounds done, without entries of another metric."""
    if continued is None:
        return {"objective": [], "seconds": []} if counter_of(estimator) == "n_iter_" else {}
    same_metric = continued.eval_metric == estimator.eval_metric
    return {
        name: list(entries[:n_done])
        for name, entries in continued.history_.items()
        if same_metric or name != METRIC
    }


# Interrupted training -----------------------------------------------------------------------------


def resumed(
    estimator: Kind,
    arguments: Mapping[str, Any],
    checkpoint: Kind | None,
    keep: Callable[[Progress], None],
) -> Kind:
    """Train an estimator with the arguments of ``fit`` to the end; return the trained one.

    ``checkpoint`` is what ``keep`` has saved of an earlier run of the same training that was
    interrupted; None: training begins.  Given the same ``arguments`` the model is that of a run
    without interruption, to the bit.  An ``init_model`` among them is where the *whole* training
    began; a checkpoint takes its place.

    ``keep(progress)`` is called after every round, by the first of several workers, after the
    user's callbacks, which may have stopped the training; ``progress.save(path)`` writes the next
    checkpoint.
    """
    others = dict(arguments)
    callbacks = checked_callbacks(others.pop("callbacks", None))

    def after_round(progress: Progress) -> bool:
        stops = any_stops(callbacks, progress)
        if stops:
            estimator.training_ = replace(estimator.training_, to_go=0)
        keep(progress)
        return stops

    if checkpoint is not None:
        if checkpoint.training_.to_go is None:
            return checkpoint
        if callable(estimator.eval_metric):  # which no file can hold
            checkpoint = copy(checkpoint).set_params(eval_metric=estimator.eval_metric)
        others["init_model"] = Unfinished(checkpoint)
    trained: Kind = estimator.fit(**others, callbacks=[after_round])
    return trained


def check_same_settings(estimator: Estimator, checkpoint: Estimator) -> None:
    """Raise ValueError if an interrupted training had other arguments."""
    before = checkpoint.get_params(deep=False)
    for name, value in estimator.get_params(deep=False).items():
        if name in ("n_jobs", "verbose") or callable(value) or callable(before[name]):
            continue  # files hold no functions
        if not np.array_equal(before[name], value) and before[name] != value:
            raise ValueError(
                f"{name} is {value!r}, but the run that was interrupted had {before[name]!r}"
            )
