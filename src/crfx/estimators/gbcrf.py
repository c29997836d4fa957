"""GBCRF: boosted trees as potentials, second order (Chen, Singh, Taskar and Guestrin 2015)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crfx import features
from crfx.batch import Batch
from crfx.estimators.assembly import make_blocks, new_model, working_scores
from crfx.estimators.continuing import continued
from crfx.estimators.evaluation import EvalMetric, Evaluator, make_evaluator
from crfx.estimators.inputs import (
    Input,
    encode,
    find_classes,
    flat_labels,
    instance_weights,
    read_input,
)
from crfx.estimators.labelling import LabellingEstimator
from crfx.model import EdgeFamily, Model
from crfx.objectives import curvature as curvatures
from crfx.objectives.base import Objective
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.truth import Truth
from crfx.potentials.trees import BoostedTrees
from crfx.structures import Chain, Forest
from crfx.trainers.blocks import (
    Block,
)
from crfx.trainers.boosting import Boosting
from crfx.trainers.callbacks import Callback, EarlyStopping
from crfx.trainers.progress import ProgressBar

OWN_PARAMS = {
    "eta",
    "learning_rate",
    "objective",
    "num_class",
    "seed",
    "random_state",
    "base_score",
    "nthread",
    "n_jobs",
    "max_bin",
    "subsample",
    "tree_method",
}
"""Parameters of XGBoost that do not go through ``tree_params``."""


class GBCRF(LabellingEstimator):
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
        first-order steps.  Steps that would raise the objective are halved.
    early_stopping_rounds : int, optional
        Stop once ``eval_metric`` has not improved for so many rounds; the best round is restored.
    base_learner : regressor, optional
        Any regressor with ``sample_weight`` in place of XGBoost's trees, fitted to -G/H with
        weights H.
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
        Threads; None: all cores.
    random_state : int, RandomState or None
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
        init_model: LabellingEstimator | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> GBCRF:
        """Train.  ``init_model``: a fitted estimator whose scores are the start.

        A GBCRF of the same shape is continued, as if it had been one longer run; any other stays
        fixed underneath.
        """
        self._check_parameters()
        if init_model is not None:
            init_model._check_fitted()
        data = read_input(X, lengths, parents, edge_types)
        labels = flat_labels(y, data)
        classes = find_classes(labels) if init_model is None else init_model.classes_
        codes = encode(labels, classes, data, "y")
        if not data.batch.n_rows:
            raise ValueError("every instance of X is empty: there is nothing to learn from")
        plan = self._plan(data.batch, classes, init_model)
        self.classes_ = classes
        self.n_features_in_ = data.batch.X.shape[1]  # type: ignore[attr-defined]
        if (names := features.names(data.batch.X)) is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.model_, self.n_rounds_ = plan.model, plan.first_round
        evaluator = self._evaluator(eval_set)
        truth = Truth(data.batch, plan.structure, codes, instance_weights(sample_weight, data))
        self._train(data, truth, plan, evaluator, callbacks or ())
        return self

    def _check_parameters(self) -> None:
        if not 0 < self.learning_rate <= 1:
            raise ValueError(f"learning_rate is {self.learning_rate}: it must lie in (0, 1]")
        if not 0 < self.subsample <= 1:
            raise ValueError(f"subsample is {self.subsample}: it must lie in (0, 1]")
        if self.edges not in ("table", "linear", "trees", None):
            raise ValueError(f"edges is {self.edges!r}: choose 'table', 'linear', 'trees' or None")
        if self.n_estimators < 0 or self.edge_l2 < 0:
            raise ValueError("n_estimators and edge_l2 must be 0 or more")
        own = sorted(set(self.tree_params or {}) & OWN_PARAMS)
        if own:
            raise ValueError(
                f"tree_params holds {', '.join(own)}: GBCRF sets these itself; use its arguments"
            )
        if self.decode not in ("viterbi", "marginal"):
            raise ValueError(f"decode is {self.decode!r}: choose 'viterbi' or 'marginal'")
        if self.early_stopping_rounds is not None and self.early_stopping_rounds < 1:
            raise ValueError("early_stopping_rounds must be 1 or more")

    def _plan(
        self, batch: Batch, classes: npt.NDArray[Any], init_model: LabellingEstimator | None
    ) -> _Plan:
        """Make the model that is to be trained, new or continued."""
        structure: Chain | Forest = Chain(self.order) if batch.parents is None else Forest()
        if batch.parents is not None and self.order != 1:
            raise ValueError(
                f"parents are given with order={self.order}: a node of a forest has one parent and "
                "no sequence of labels before it; use order=1"
            )
        structure.check(batch)
        if init_model is not None:
            init_model._check_features(batch.X)
            if isinstance(init_model, GBCRF) and (found := continued(init_model, self)):
                model = found
                history = {name: list(values) for name, values in init_model.history_.items()}
                return _Plan(model, structure, init_model.n_rounds_, history)
        model = new_model(self, batch, structure, len(classes))
        model.base = None if init_model is None else init_model.model_
        if model.sharing == "each" and model.own_sharing == "typed":
            raise ValueError("tables per edge type cannot stand on a base with a table per edge")
        return _Plan(model, structure, 0, {})

    def _evaluator(self, eval_set: Any) -> Evaluator | None:
        if eval_set is None:
            if self.early_stopping_rounds is not None:
                raise ValueError("early_stopping_rounds needs an eval_set to watch")
            return None
        given = eval_set if isinstance(eval_set, dict) else dict(zip("Xy", eval_set, strict=True))
        y = given.pop("y") if "y" in (given := dict(given)) else None
        data = read_input(**given)
        self._check_features(data.batch.X)
        self._check_structure(data.batch)
        labels = encode(flat_labels(y, data), self.classes_, data, "y of eval_set")
        return make_evaluator(self.eval_metric, data, labels, self)

    def _train(
        self,
        data: Input,
        truth: Truth,
        plan: _Plan,
        evaluator: Evaluator | None,
        callbacks: Sequence[Callback],
    ) -> None:
        model, batch = plan.model, data.batch
        followed = [] if evaluator is None else [evaluator.data.batch]
        blocks = make_blocks(self, model, batch, followed)
        scores = working_scores(model, batch)
        watched = [] if evaluator is None else [working_scores(model, other) for other in followed]
        stopping = None
        if self.early_stopping_rounds is not None and evaluator is not None:
            stopping = EarlyStopping(
                self.early_stopping_rounds, larger_is_better=evaluator.larger_is_better
            )
            best_so_far = _MarkBest(stopping, blocks)
            callbacks = [*callbacks, best_so_far]
        total = plan.first_round + self.n_estimators
        if self.verbose:
            callbacks = [*callbacks, ProgressBar(total)]
        trainer = Boosting(
            objective=self._objective(truth),
            curvature=curvatures.parse(self.curvature),
            blocks=blocks,
            scores=scores,
            learning_rate=self.learning_rate,
            followed=watched,
            metric=None if evaluator is None else lambda: evaluator.value(watched[0].problem()),
            callbacks=[_Tell(self), *callbacks],
            save=self.save,
            first_round=plan.first_round,
            history=plan.history,
        )
        self.history_ = plan.history
        try:
            self.n_rounds_ = trainer.run(total)
        except BaseException:
            _drop_unfinished(model, self.n_rounds_)
            raise
        finally:
            for function in (model.node, *(model.edge_functions or ())):
                function.release()
            for callback in callbacks:
                if isinstance(callback, ProgressBar):
                    callback.close()
        if stopping is not None:
            model.keep(stopping.best_round)
            self.n_rounds_ = stopping.best_round
        self.best_iteration_ = max(self.n_rounds_ - 1, 0)

    def _objective(self, truth: Truth) -> Objective:
        """What training lowers."""
        return Likelihood(truth, self.n_jobs)

    def feature_importance(self, kind: str = "total_gain") -> dict[str, float]:
        """Importance of the features in the node trees: XGBoost's "total_gain", "gain", "weight",
        "cover" or "total_cover", by column name or f0, f1, ...; features never used are left out.
        """
        found: dict[str, float] = self._node_ensemble().importance(kind)
        return found

    def predict_contributions(
        self, X: Any, *, lengths: Any = None, n_rounds: int | None = None
    ) -> Any:
        """(length, labels, features + 1) per instance: SHAP values of the node scores.

        They add up to the scores that the trees give; the last column is the expected score.
        """
        ensemble = self._node_ensemble()
        data = read_input(X, lengths)
        self._check_features(data.batch.X)
        matrix = self.model_.node.learner.matrix(data.batch.X)  # type: ignore[attr-defined]
        return data.split(ensemble.contributions(matrix, n_rounds))

    def _node_ensemble(self) -> Any:
        self._check_fitted()
        node = self.model_.node
        if not isinstance(node, BoostedTrees):
            raise ValueError("only XGBoost's trees tell this: the model has a base_learner")
        ensemble = node.ensemble()
        if ensemble is None:
            raise ValueError("the model has no rounds")
        return ensemble

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all."""
        from crfx.estimators.loading import save

        save(self, path)


@dataclass(eq=False)
class _Plan:
    model: Model
    structure: Chain | Forest
    first_round: int
    history: dict[str, list[float]]


@dataclass(eq=False)
class _Tell:
    """Keeps the estimator's own count up to date, so that it can be saved between rounds."""

    estimator: GBCRF

    def __call__(self, progress: Any) -> None:
        self.estimator.n_rounds_ = progress.n_rounds
        self.estimator.best_iteration_ = progress.n_rounds - 1


@dataclass(eq=False)
class _MarkBest:
    """Early stopping that lets blocks note the best round."""

    stopping: EarlyStopping
    blocks: list[Block]

    def __call__(self, progress: Any) -> bool:
        stop = self.stopping(progress)
        if self.stopping.best_round == progress.n_rounds:
            for block in self.blocks:
                block.mark(progress.n_rounds)
        return stop


def _drop_unfinished(model: Model, n_rounds: int) -> None:
    """A round that was cut short leaves nothing behind."""
    with suppress(ValueError):  # tables too large to be kept by round stay as they are
        model.keep(n_rounds)
