"""GBCRF: boosted trees as potentials, second order (Chen, Singh, Taskar and Guestrin 2015)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from crfx.estimators.arguments import check_arguments
from crfx.estimators.base import check_fitted
from crfx.estimators.labelling import LabellingEstimator, check_rounds
from crfx.estimators.placement import placed
from crfx.estimators.session import fitting, read_warm_start
from crfx.estimators.support import check_device, check_supported
from crfx.explain.importance import tree_importance
from crfx.features.words import Numbering
from crfx.inputs.passed import Passed, read_input
from crfx.inputs.training_set import EvalMetric, read_eval_set, read_training_set
from crfx.inputs.weights import ClassWeight
from crfx.model.building import FunctionMaker, Parts, has_parts, new_boosted_model
from crfx.model.continuing import continued
from crfx.objectives import curvature as curvatures
from crfx.potentials.regressors import BoostedRegressors
from crfx.potentials.trees import BoostedTrees
from crfx.potentials.xgboost_learner import XGBoostLearner
from crfx.threads import thread_count
from crfx.trainers.blocks import boosted_blocks, instance_sampler
from crfx.trainers.boosting import Boosting, WorkingScores
from crfx.trainers.callbacks import Callback, listed_callbacks
from crfx.trainers.shared_evaluation import agreed_objective


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
        As in XGBoost; ``grow_policy`` is "depthwise" or "lossguide".
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
        How gamma is found ("auto": mixing, but 2 with ``constraints``, whose mixing rates are
        loose); "diagonal" is gamma = 1, a number is gamma, None takes first-order steps, without
        penalties (``reg_lambda`` and ``edge_l2`` count as 0).  Steps that would raise the objective
        are halved.
    early_stopping_rounds : int, optional
        Stop once ``eval_metric`` has not improved for so many rounds; the best round is restored.
    base_learner : regressor, optional
        Any regressor with ``sample_weight`` in place of XGBoost's trees, fitted to -G/H with
        weights H.  Its own arguments count then, not those of the trees.
    min_count : int
        Names of features, in dicts, texts and templates, that occur less often in training are
        left out: where there are very many, trees become quicker by far.
    order : int
        How many labels before it a label depends on; forests have order 1.
    start_end : bool
        Scores for the first and last label of a chain, and for roots of a forest.
    objective : str, or one of `crfx.objectives` with settings
        What training lowers: "likelihood", "pseudo_likelihood", "labelwise_likelihood", or one that
        knows the task's loss: "loss_augmented", "loss_scaled", "expected_loss" or "kl".
    task_loss : "hamming", "span_f1", "zero_one", or one of `crfx.objectives`, optional
        The loss of these; None: the number of wrong positions.
    class_weight : dict or "balanced", optional
        Weights of labels: every position counts with that of its true label; labels that are not
        named have 1.  "balanced" is inversely proportional to how often labels occur.  For
        structured objectives see docs/decisions/0017.
    constraints : "bio", "bioes", list of pairs, or `crfx.Constraints`, optional
        What labellings may be, in training and ever after: labels that mark spans (IOB1 is
        converted), or the pairs of labels that may follow each other; docs/decoding.md.
    decode : "viterbi" or "marginal"
        The best labelling, or the best label of each position.
    eval_metric : "loss", "token_accuracy", "span_f1" or callable
        Of the ``eval_set``: the objective per position, or a score of (y_true, y_pred), lists of
        label arrays, that is better when larger.
    device : "cpu", "cuda" or "cuda:N"
        Where trees grow, as in XGBoost: on the CPU, on the first GPU, or on GPU number N.  All else
        stays on the CPU, prediction too; the model file is the same (docs/speed.md).
    n_jobs : int, optional
        Threads; None: all cores.  Small data are quicker with 1.
    random_state : int, RandomState or None
        The same seed gives the same model, bit by bit, for the same number of threads; XGBoost's
        sums of gradients may differ in the last digit for another.
    verbose : int
        1: a progress bar on a terminal; elsewhere a line every ten seconds, to the logger "crfx"
        (level INFO) if logging is set up, else to standard error.

    Attributes
    ----------
    classes_, transitions_, n_features_in_, feature_names_in_, best_iteration_, n_rounds_
    history_ : dict of lists, one entry per round
        ``objective`` (training, after the round, penalties included), ``halvings``, ``seconds``,
        ``gamma`` (mean over nodes) and ``eval_metric`` where they apply.

    Examples
    --------
    >>> import numpy as np
    >>> from crfx import GBCRF
    >>> X = [np.array([[0.0], [1.0], [2.0]]), np.array([[2.0], [1.0]])] * 10
    >>> y = [["low", "middle", "high"], ["high", "middle"]] * 10  # 20 sequences, one feature
    >>> crf = GBCRF(10, n_jobs=1).fit(X, y)
    >>> crf.predict([np.array([[2.0], [1.0], [0.0]])])[0].tolist()
    ['high', 'middle', 'low']
    >>> crf.predict_marginals(X)[1].shape  # positions, labels
    (2, 3)
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
        edges: Literal["table", "linear", "trees"] | None = "table",
        edge_l2: float = 0.1,
        curvature: curvatures.CurvatureOption = "auto",
        early_stopping_rounds: int | None = None,
        base_learner: Any = None,
        min_count: int = 1,
        order: int = 1,
        start_end: bool = True,
        objective: Any = "likelihood",
        task_loss: Any = None,
        class_weight: ClassWeight = None,
        constraints: Any = None,
        decode: Literal["viterbi", "marginal"] = "viterbi",
        eval_metric: EvalMetric = "loss",
        device: str = "cpu",
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
        self.min_count = min_count
        self.order = order
        self.start_end = start_end
        self.objective = objective
        self.task_loss = task_loss
        self.class_weight = class_weight
        self.constraints = constraints
        self.decode = decode
        self.eval_metric = eval_metric
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
            to ``init_model`` and not named here raises ValueError, as it may be a typing error.
        callbacks : list of callables, optional
            Each is called after every round with a `crfx.trainers.callbacks.Progress`; True stops.
            `crfx.Checkpoint` is one.
        allowed : list of lists, one entry per position, optional (stacked: one list)
            The labels a position may have: None (any), one label, or a list or set of them.
        """
        check_arguments(self)
        check_device(self.device, X)
        start = read_warm_start(init_model, classes, self.constraints)
        passed = Passed(X, y, lengths, parents, edge_types, sample_weight, allowed)
        # The features of a fitted model stay.
        numbering = Numbering(self.min_count) if start.estimator is None else None
        settings = self._input_settings(numbering, start.classes)
        data = read_training_set(passed, settings, start.known)
        callbacks = listed_callbacks(callbacks)
        check_supported(self, data.batch, callbacks)
        parts, maker, old = self._parts, self._function_maker, start.model
        is_continued = start.is_a(GBCRF) and has_parts(old, parts) and maker.made(old.node)
        if is_continued:
            model = continued(old, parts, maker, start.n_rounds)
        else:
            model = new_boosted_model(parts, maker, data.truth, start.base_model())
        model.mask = data.mask
        watched = read_eval_set(eval_set, data, model, self._eval_settings)
        followed = [] if watched is None else [watched.batch]
        for batch in followed:
            check_supported(self, batch)
        with fitting(
            self,
            model,
            start.continued_if(is_continued),
            callbacks,
            self._most_rounds,
            classes_=data.classes,
            columns_=data.columns,
        ) as session:
            objective = self._objective_settings
            sampler = instance_sampler(self.subsample, self._draw_seed, data.batch)
            trainer = Boosting(
                objective=agreed_objective(lambda: objective.bind(data.truth), data.batch),
                curvature=objective.curvature_of_steps(),
                blocks=boosted_blocks(model, data.batch, followed, sampler),
                scores=WorkingScores.of(model, data.batch),
                followed=[WorkingScores.of(model, batch) for batch in followed],
                learning_rate=self.learning_rate,
                first_round=self.n_rounds_,
                n_rounds=self.n_rounds_ + session.n_rounds,
                can_restore=model.can_be_cut,
            )
            session.run(trainer, self._metric(watched, data.truth, trainer.followed_problem))
        return self

    def feature_importance(self, kind: str = "total_gain") -> dict[str, float]:
        """Return the importance of the features in the node trees.

        A base model's trees are not counted.

        Parameters
        ----------
        kind : "total_gain", "gain", "weight", "cover" or "total_cover", default "total_gain"
            As in XGBoost.

        Returns
        -------
        dict
            Numbers by name of the feature (f0, f1, ... without names); features that are never used
            are left out.

        Examples
        --------
        >>> import numpy as np
        >>> from crfx import GBCRF
        >>> X, y = [np.array([[0.0], [1.0], [2.0]])] * 10, [["low", "middle", "high"]] * 10
        >>> GBCRF(2, n_jobs=1).fit(X, y).feature_importance("weight")
        {'f0': 8.0}
        """
        return tree_importance(self._node_ensemble(), self.columns_, kind)

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """(features,) total gain in the node trees, as shares that add up to 1."""
        check_fitted(self)
        try:
            gains: npt.NDArray[np.float64] = self._node_ensemble().gains()
        except ValueError as error:  # so that hasattr says no, and does not raise
            raise AttributeError(str(error)) from None
        return np.divide(gains, gains.sum() or 1.0)

    def predict_contributions(
        self,
        X: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
    ) -> Any:
        """Return SHAP values of the node scores.

        They add up to the scores of the trees, without those of a base model.  Edges do not change
        them.

        Parameters
        ----------
        X, lengths, parents, edge_types, n_rounds
            As in `predict`.

        Returns
        -------
        list of (length, labels, features + 1) arrays, or one such array of (rows, ...)
            The last column is the expected score.

        Examples
        --------
        >>> import numpy as np
        >>> from crfx import GBCRF
        >>> X, y = [np.array([[0.0], [1.0], [2.0]])] * 10, [["low", "middle", "high"]] * 10
        >>> GBCRF(2, n_jobs=1).fit(X, y).predict_contributions(X)[0].shape
        (3, 3, 2)
        """
        ensemble = self._node_ensemble()
        check_rounds(self, n_rounds)
        data = read_input(Passed(X, None, lengths, parents, edge_types), self.columns_)
        self.model_.use_threads(thread_count(self.n_jobs))
        node: Any = self.model_.node
        matrices = (node.learner.matrix(part.X) for part in data.batch.loaded())
        parts = [ensemble.contributions(matrix, n_rounds) for matrix in matrices]
        return data.split(parts[0] if len(parts) == 1 else np.concatenate(parts))

    def _node_ensemble(self) -> Any:
        check_fitted(self)
        node: Any = self.model_.node
        if node.kind != "trees":
            raise ValueError("only XGBoost's trees tell this: the model has a base_learner")
        ensemble = node.ensemble()
        if ensemble is None:
            raise ValueError("the model has no rounds")
        return ensemble

    @property
    def _parts(self) -> Parts:
        # First order: curvature 1, nothing regularised, as in the paper's comparison.
        table_l2 = 0.0 if self._objective_settings.is_first_order else self.edge_l2
        has_constraints = self.constraints is not None
        return Parts(self.order, self.edges, self.start_end, table_l2, has_constraints)

    @property
    def _function_maker(self) -> FunctionMaker:
        if self.base_learner is not None:
            return FunctionMaker(BoostedRegressors, self.base_learner, self._draw_seed)
        is_first_order = self._objective_settings.is_first_order
        params = {
            "max_depth": self.max_depth,
            "max_leaves": self.max_leaves,
            "grow_policy": self.grow_policy,
            "reg_lambda": 0.0 if is_first_order else self.reg_lambda,
            "min_child_weight": self.min_child_weight,
            "colsample_bynode": self.colsample_bynode,
            **(self.tree_params or {}),
        }
        n_threads = thread_count(self.n_jobs)
        learner = XGBoostLearner(params, self.max_bin, 0, n_threads, self.device)
        return FunctionMaker(BoostedTrees, learner, self._draw_seed)
