"""What estimators share that are boosted round by round: reading, watching, stopping, going on."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from crfx.batch import Batch
from crfx.estimators.assembly import working_scores
from crfx.estimators.base import fitted
from crfx.estimators.evaluation import make_evaluator
from crfx.estimators.labelling import LabellingEstimator, base_model
from crfx.estimators.more_labels import with_classes
from crfx.estimators.placement import placed
from crfx.estimators.session import as_before_unless, run_rounds, start_of
from crfx.features.words import Numbering
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
from crfx.objectives import curvature as curvatures
from crfx.objectives.base import Objective
from crfx.objectives.registry import ObjectiveSettings
from crfx.objectives.truth import Truth
from crfx.structures import Chain, Forest
from crfx.threads import thread_count
from crfx.trainers.blocks import Block
from crfx.trainers.boosting import Boosting
from crfx.trainers.callbacks import Callback, listed_callbacks
from crfx.trainers.monitor import Metric
from crfx.trainers.shared_evaluation import agreed_objective


class BoostedEstimator(LabellingEstimator):
    """A labelling estimator whose scores are sums over rounds."""

    n_estimators: int
    learning_rate: float
    curvature: curvatures.CurvatureOption
    objective: Any
    task_loss: Any
    min_count: int
    class_weight: ClassWeight
    constraints: Any
    early_stopping_rounds: int | None
    order: int
    eval_metric: EvalMetric
    verbose: int

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
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : list of (length, features) arrays, CSR matrices or data frames, one per instance
            Or one of these with all instances stacked, and ``lengths``.  NaN is missing; absent
            entries of CSR are missing too, while zeros of dense arrays are values: use one kind
            for training and prediction.  Columns of data frames may be categorical; a category
            that training has not seen counts as missing in prediction.  Or lists of dicts or texts,
            one per position, as CRFsuite takes them (`crfx.features.words`).
        y : list of lists of labels, one per position (stacked: one list)
            Text, numbers or other hashable values; None, NaN and NA are unknown, and summed over.
        lengths : list of int, optional
            How many rows of a stacked X each instance has.
        parents : list of int arrays, optional
            Makes instances forests: the parent of each position, counted within the instance, -1
            at a root.  (Stacked: one array; so with ``edge_types``.)
        edge_types : list of int arrays, optional
            0 to n - 1: the type of the edge that ends at a position; every type has its own table.
        sample_weight : (instances,) numbers, optional
            2 is the instance twice, 0 is without it.
        eval_set : (X, y), or a dict of X, y, lengths, parents, edge_types and allowed, optional
            Watched: ``history_["eval_metric"]`` and early stopping are about it.  A warning names
            labels that training does not know: they are never right, and the loss sums over them
            (over all labels of the instance, where constraints leave none in their place).
        init_model : fitted estimator, or the path of a model file, optional
            Its scores are the start.  One of the same class and with the same parts (edges, order,
            window, start and end) is trained further, as if it had been one longer run (to the bit,
            unless edges are linear); any other stays fixed underneath.
        classes : list of labels, optional
            Labels to know beside those of ``y``; with ``init_model``, labels that it does not know
            yet.  Their scores start at 0, those of old labels stay.  A label of ``y`` that is new
            to ``init_model`` and not named here is refused, as it may be a slip.
        callbacks : list of callables, optional
            Each is called after every round with a `crfx.trainers.callbacks.Progress`; True stops.
            `crfx.Checkpoint` is one.
        allowed : list of lists, one entry per position, optional (stacked: one list)
            The labels a position may have: None (any), one label, or a list or set of them.
        """
        self._check_parameters()
        self._check_device(X)
        start = None
        if init_model is not None:
            start = fitted(init_model, LabellingEstimator)
            classes = named_classes(classes, start.classes_, self.constraints)
            start = with_classes(start, classes)
        settings = InputSettings(
            self.order,
            self.constraints,
            self.class_weight,
            # The features of a model that is trained further stay.
            numbering=Numbering(self.min_count) if start is None else None,
            classes=classes,
        )
        passed = Passed(X, y, lengths, parents, edge_types, sample_weight, allowed)
        given = read_training_set(passed, settings, start_of(start))
        plan = self._plan(given, start)
        plan.model.mask = given.mask
        watched = read_eval_set(eval_set, given, plan.model, self._eval_settings)
        callbacks = self._checked_callbacks(callbacks)
        with as_before_unless(lambda: self.n_rounds_ > plan.first_round, self):
            self.classes_, self.columns_ = given.classes, given.columns
            self.model_, self.n_rounds_, self.history_ = plan.model, plan.first_round, plan.history
            self._to_go = self._rounds_here
            self._train(given.truth, plan, watched, callbacks)
            self._to_go = None
        return self

    def _plan(self, given: TrainingSet, init_model: LabellingEstimator | None) -> _Plan:
        """Make the model that is to be trained, new or continued."""
        batch, structure = given.batch, given.truth.structure
        if init_model is None:
            return _Plan(self._new_model(batch, structure, len(given.classes)), 0, {})
        if (found := self._continued(init_model)) is not None:
            n_rounds, history = init_model.n_rounds_, init_model.history_
            same_metric = init_model.eval_metric == self.eval_metric
            kept = {
                name: list(values[:n_rounds])
                for name, values in history.items()
                if same_metric or name != "eval_metric"
            }
            return _Plan(found, n_rounds, kept)
        model = self._new_model(batch, structure, len(given.classes))
        model.set_base(base_model(init_model))
        return _Plan(model, 0, {})

    def _checked_callbacks(self, callbacks: Sequence[Callback] | None) -> list[Callback]:
        return listed_callbacks(callbacks)

    def _train(
        self,
        truth: Truth,
        plan: _Plan,
        watched: Watched | None,
        callbacks: list[Callback],
    ) -> None:
        model, metric, followed = plan.model, None, []
        evaluator = None
        if watched is not None:
            evaluator = make_evaluator(self.eval_metric, watched, self, truth.class_weights)
            followed = [evaluator.data.batch]
        trainer = self._trainer(truth, plan, followed)
        if evaluator is not None:
            value = evaluator.value
            metric = Metric(
                lambda: value(trainer.followed[0].problem()), evaluator.larger_is_better
            )
        try:
            n_rounds = run_rounds(self, trainer, metric, callbacks, can_restore=model.can_be_cut)
        except BaseException:
            _drop_unfinished(model, self.n_rounds_)
            raise
        finally:
            for function in model.growing:
                function.release()
        self.n_rounds_ = n_rounds

    def _trainer(self, truth: Truth, plan: _Plan, followed: list[Batch]) -> Boosting:
        model, batch = plan.model, truth.batch
        self._check_size(model, batch, followed)
        model.use_threads(thread_count(self.n_jobs))
        shown = [working_scores(model, other) for other in followed]
        n_rounds = plan.first_round + self._rounds_here
        settings = ObjectiveSettings.of(vars(self))
        return Boosting(
            objective=agreed_objective(lambda: settings.bind(truth), batch),
            curvature=settings.curvature_of_steps(),
            blocks=self._make_blocks(model, truth, followed),
            scores=working_scores(model, batch),
            learning_rate=self.learning_rate,
            n_rounds=n_rounds,
            first_round=plan.first_round,
            followed=shown,
            easier=self._easier_objective(truth, plan.first_round, n_rounds),
        )

    def _easier_objective(
        self, truth: Truth, first_round: int, n_rounds: int
    ) -> tuple[Objective, int] | None:
        """Return an objective that the first rounds lower, and how many those are."""
        return None

    # What an estimator says of itself.

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise ValueError at the first argument that makes no sense."""

    def _check_device(self, X: Any) -> None:
        """Raise ValueError where trees cannot grow on the device that was asked for."""

    def _check_size(self, model: Model, batch: Batch, followed: list[Batch]) -> None:
        """Raise ValueError where training cannot fit into memory."""

    @abstractmethod
    def _new_model(self, batch: Batch, structure: Chain | Forest, n_labels: int) -> Model:
        """A model without rounds."""

    @abstractmethod
    def _continued(self, old: Any) -> Model | None:
        """A copy of a model, to be trained on; None if its class or its parts are others."""

    @abstractmethod
    def _make_blocks(self, model: Model, truth: Truth, followed: list[Batch]) -> list[Block]:
        """What boosting moves in turn; ``followed`` batches have their scores kept up to date."""


@dataclass(eq=False)
class _Plan:
    """What is to be trained, and what is there already."""

    model: Model
    first_round: int
    history: dict[str, list[float]]


def _drop_unfinished(model: Model, n_rounds: int) -> None:
    """A round that was cut short leaves nothing behind."""
    with suppress(ValueError):  # tables too large to be kept by round stay as they are
        model.keep(n_rounds)
