"""GBCRF: boosted trees as potentials, second order (Chen, Singh, Taskar and Guestrin 2015)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from crfx.estimators.assembly import make_blocks, new_model, working_scores
from crfx.estimators.continuing import continued
from crfx.estimators.evaluation import EvalMetric, Evaluator, make_evaluator
from crfx.estimators.explaining import ExplainedTrees
from crfx.estimators.fitting import (
    Training,
    as_before_unless,
    fitted,
    listed_callbacks,
    read_training,
    read_watched,
)
from crfx.estimators.inputs import Input
from crfx.estimators.labelling import LabellingEstimator
from crfx.estimators.parameters import check_parameters
from crfx.estimators.watching import CountRounds, RestoreBest, forget_other_sets
from crfx.inference.native import thread_count
from crfx.model import EdgeFamily, Model
from crfx.objectives import curvature as curvatures
from crfx.objectives.base import Objective
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.truth import Truth
from crfx.scores import IntArray
from crfx.trainers.boosting import Boosting
from crfx.trainers.callbacks import Callback, Checkpoint, EarlyStopping
from crfx.trainers.progress import ProgressBar


class GBCRF(ExplainedTrees):
    """A conditional random field whose node scores are boosted trees.

    Each round adds one tree per label to the node scores and takes one step on the edge scores,
    with gradient p - mu and curvature gamma p (1 - p), gamma from a bound that makes second-order
    steps safe although labels depend on each other.

    Parameters
    ----------
    n_estimators : int
        Rounds; with ``init_model`` further rounds.
    learning_rate : float
        Shrinkage of every step, in (0, 1].
    max_depth, max_leaves, grow_policy, reg_lambda, min_child_weight, colsample_bynode, max_bin
        As in XGBoost.
    subsample : float
        Share of the instances (whole sequences) that the trees of a round look at.
    tree_params : dict, optional
        More parameters for XGBoost.
    edges : "table", "linear", "trees" or None
        Edge scores: one table (one per edge type), linear in the features of the position, boosted
        trees per label tuple, or none: then positions are independent (LogitBoost).
    edge_l2 : float
        L2 penalty on tables and linear weights, ``edge_l2 / 2`` times their sum of squares.
    curvature : "auto", "mixing", "dobrushin", "exact", "length", "diagonal", a number or None
        How gamma is found ("auto": mixing); "diagonal" is gamma = 1, a number is gamma, None takes
        first-order steps, without penalties (``reg_lambda`` and ``edge_l2`` count as 0).  Steps
        that would raise the objective are halved.
    early_stopping_rounds : int, optional
        Stop once ``eval_metric`` has not improved for so many rounds; the best round is restored.
    base_learner : regressor, optional
        Any regressor with ``sample_weight`` in place of XGBoost's trees, fitted to -G/H with
        weights H.  Its own arguments count then, not those of the trees.
    order : int
        How many labels before it a label depends on; forests have order 1.
    start_end : bool
        Scores for the first and last label of a chain, and for roots of a forest.
    decode : "viterbi" or "marginal"
        The best labelling, or the best label of each position.
    eval_metric : "loss", "token_accuracy", "span_f1" or callable
        Of the ``eval_set``: mean negative log-likelihood per position, or a score of
        (y_true, y_pred), lists of label arrays, that is better when larger.
    n_jobs : int, optional
        Threads; None: all cores.  Small data are quicker with 1.
    random_state : int, RandomState or None
        The same seed gives the same model, bit by bit, for the same number of threads; XGBoost's
        sums of gradients may differ in the last digit for another.
    verbose : int
        1: a progress bar, on a terminal.

    Attributes
    ----------
    classes_, transitions_, n_features_in_, feature_names_in_, best_iteration_, n_rounds_
    history_ : dict of lists, one entry per round
        ``objective`` (training, after the round, penalties included), ``halvings``, ``seconds``,
        ``gamma`` (mean over nodes) and ``eval_metric`` where they apply.
    """

    def __init__(
        self,
        n_estimators: int = 100,
        learning_rate: float = 0.3,
        max_depth: int = 6,
        max_leaves: int = 0,
        grow_policy: str = "depthwise",
        reg_lambda: float = 1.0,
        min_child_weight: float = 1.0,
        subsample: float = 1.0,
        colsample_bynode: float = 1.0,
        max_bin: int = 256,
        tree_params: dict[str, Any] | None = None,
        edges: EdgeFamily = "table",
        edge_l2: float = 0.1,
        curvature: curvatures.CurvatureOption = "auto",
        early_stopping_rounds: int | None = None,
        base_learner: Any = None,
        order: int = 1,
        start_end: bool = True,
        decode: Literal["viterbi", "marginal"] = "viterbi",
        eval_metric: EvalMetric = "loss",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.grow_policy = grow_policy
        self.reg_lambda = reg_lambda
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.colsample_bynode = colsample_bynode
        self.max_bin = max_bin
        self.tree_params = tree_params
        self.edges = edges
        self.edge_l2 = edge_l2
        self.curvature = curvature
        self.early_stopping_rounds = early_stopping_rounds
        self.base_learner = base_learner
        self.order = order
        self.start_end = start_end
        self.decode = decode
        self.eval_metric = eval_metric
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
        callbacks: Sequence[Callback] | None = None,
    ) -> GBCRF:
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
        eval_set : (X, y), or a dict of X, y, lengths, parents and edge_types, optional
            Watched: ``history_["eval_metric"]`` and early stopping are about it.
        init_model : fitted estimator, or the path of a model file, optional
            Its scores are the start.  A GBCRF with the same ``edges``, ``order`` and ``start_end``
            is trained further, as if it had been one longer run; any other stays fixed underneath.
        callbacks : list of callables, optional
            Each is called after every round with a `crfx.trainers.callbacks.Progress`; True stops.
            `crfx.Checkpoint` is one.
        """
        check_parameters(self)
        start = None if init_model is None else fitted(init_model)
        given = read_training(
            self.order, X, y, lengths, parents, edge_types, sample_weight, start=start
        )
        weights, filled = given.truth.weights, given.data.batch.lengths > 0
        if weights is not None and not weights[filled].any():
            raise ValueError(
                "sample_weight is 0 for every instance that has positions: there is nothing to "
                "learn from"
            )
        plan = self._plan(given)
        watched = read_watched(self, eval_set, given, plan.model)
        callbacks = self._checked_callbacks(callbacks)
        with as_before_unless(lambda: self.n_rounds_ > plan.first_round, self):
            self.classes_, self.columns_ = given.classes, given.columns
            self.model_, self.n_rounds_, self.history_ = plan.model, plan.first_round, plan.history
            self._train(given.truth, plan, watched, callbacks)
        return self

    def _plan(self, given: Training) -> _Plan:
        """Make the model that is to be trained, new or continued."""
        batch, structure, init_model = given.data.batch, given.truth.structure, given.init_model
        if init_model is None:
            return _Plan(new_model(self, batch, structure, len(given.classes)), 0, {})
        if isinstance(init_model, GBCRF) and (found := continued(init_model, self)):
            n_rounds, history = init_model.n_rounds_, init_model.history_
            same_metric = init_model.eval_metric == self.eval_metric
            kept = {
                name: list(values[:n_rounds])
                for name, values in history.items()
                if same_metric or name != "eval_metric"
            }
            return _Plan(found, n_rounds, kept)
        model = new_model(self, batch, structure, len(given.classes))
        model.set_base(init_model._base_model)
        return _Plan(model, 0, {})

    def _checked_callbacks(self, callbacks: Sequence[Callback] | None) -> list[Callback]:
        found = listed_callbacks(callbacks)
        if self.base_learner is not None and any(isinstance(own, Checkpoint) for own in found):
            raise ValueError("a model with a base_learner cannot be saved: leave out Checkpoint")
        return found

    def _train(
        self,
        truth: Truth,
        plan: _Plan,
        watched: tuple[Input, IntArray] | None,
        callbacks: list[Callback],
    ) -> None:
        evaluator = None
        if watched is not None:
            evaluator = make_evaluator(self.eval_metric, *watched, self)
        trainer = self._trainer(truth, plan, evaluator, callbacks)
        if trainer.metric is not None and plan.history.get("eval_metric"):
            forget_other_sets(plan.history, plan.first_round, trainer.metric())
        restore = self._early_stopping(trainer, plan, evaluator)
        over = restore is not None and restore.is_over
        self._run(trainer, plan.model, plan.first_round + (0 if over else self.n_estimators))
        if restore is not None:
            self.n_rounds_ = restore.stopping.best_round
            plan.model.keep(self.n_rounds_)
        self.best_iteration_ = max(self.n_rounds_ - 1, 0)

    def _trainer(
        self, truth: Truth, plan: _Plan, evaluator: Evaluator | None, callbacks: list[Callback]
    ) -> Boosting:
        model, batch = plan.model, truth.batch
        followed = [] if evaluator is None else [evaluator.data.batch]
        model.use_threads(thread_count(self.n_jobs))
        shown = [working_scores(model, other) for other in followed]
        return Boosting(
            objective=self._objective(truth),
            curvature=curvatures.parse(self.curvature),
            blocks=make_blocks(self, model, batch, followed),
            scores=working_scores(model, batch),
            learning_rate=self.learning_rate,
            followed=shown,
            metric=None if evaluator is None else lambda: evaluator.value(shown[0].problem()),
            callbacks=[CountRounds(self), *callbacks],
            save=self.save,
            first_round=plan.first_round,
            history=plan.history,
        )

    def _early_stopping(
        self, trainer: Boosting, plan: _Plan, evaluator: Evaluator | None
    ) -> RestoreBest | None:
        if self.early_stopping_rounds is None or evaluator is None or trainer.metric is None:
            return None
        stopping = EarlyStopping(
            self.early_stopping_rounds, larger_is_better=evaluator.larger_is_better
        )
        restore = RestoreBest(stopping, trainer.blocks)
        if plan.first_round:
            restore.go_on(plan.history, plan.model, plan.first_round, trainer.metric())
        trainer.callbacks = [*trainer.callbacks, restore]
        return restore

    def _run(self, trainer: Boosting, model: Model, n_rounds: int) -> None:
        """Train up to so many rounds, first ones included; leave no unfinished one behind."""
        bar = ProgressBar(n_rounds) if self.verbose else None
        if bar is not None:
            trainer.callbacks = [*trainer.callbacks, bar]
        try:
            self.n_rounds_ = trainer.run(n_rounds)
        except BaseException:
            _drop_unfinished(model, self.n_rounds_)
            raise
        finally:
            for function in model.growing:
                function.release()
            if bar is not None:
                bar.close()

    def _objective(self, truth: Truth) -> Objective:
        """What training lowers."""
        return Likelihood(truth, self.n_jobs)


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
