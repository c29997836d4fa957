"""GBCRF: boosted trees as potentials, second order (Chen, Singh, Taskar and Guestrin 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.estimators.arguments import GBCRF_ARGUMENTS, check_arguments
from crfx.estimators.assembly import make_blocks, new_model
from crfx.estimators.base import check_fitted
from crfx.estimators.boosted import BoostedEstimator
from crfx.estimators.continuing import continued
from crfx.estimators.device import check_device
from crfx.estimators.labelling import check_rounds
from crfx.explain.importance import tree_importance
from crfx.inputs.passed import Passed, read_input
from crfx.inputs.rows import check_in_memory
from crfx.inputs.training_set import EvalMetric
from crfx.inputs.weights import ClassWeight
from crfx.model.model import Model
from crfx.objectives import curvature as curvatures
from crfx.objectives.truth import Truth
from crfx.potentials.trees import BoostedTrees
from crfx.structures import Chain, Forest
from crfx.threads import thread_count
from crfx.trainers.blocks import Block
from crfx.trainers.callbacks import Callback, Checkpoint


class GBCRF(BoostedEstimator):
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
        1: a progress bar, on a terminal.

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

    _arguments: ClassVar = GBCRF_ARGUMENTS

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

    def feature_importance(self, kind: str = "total_gain") -> dict[str, float]:
        """Importance of the features in the node trees: XGBoost's "total_gain", "gain", "weight",
        "cover" or "total_cover", by column name or f0, f1, ...; features never used are left out.
        A base model's trees are not counted.
        """
        return tree_importance(self._node_ensemble(), self.columns_, kind)

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """(features,) total gain in the node trees, as shares that add up to 1."""
        check_fitted(self)
        try:
            found: npt.NDArray[np.float64] = self._node_ensemble().gains()
        except ValueError as error:  # so that hasattr says no, and does not raise
            raise AttributeError(str(error)) from None
        return np.divide(found, found.sum() or 1.0)

    def predict_contributions(
        self,
        X: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
    ) -> Any:
        """(length, labels, features + 1) per instance: SHAP values of the node scores.

        They add up to the scores that the trees give, a base model's aside; the last column is the
        expected score.  Edges do not change them.
        """
        ensemble = self._node_ensemble()
        check_rounds(self, n_rounds)
        data = read_input(Passed(X, None, lengths, parents, edge_types), self.columns_)
        self.model_.use_threads(thread_count(self.n_jobs))
        node: Any = self.model_.node
        matrices = (node.learner.matrix(part.X) for part in data.batch.loaded())
        found = [ensemble.contributions(matrix, n_rounds) for matrix in matrices]
        return data.split(found[0] if len(found) == 1 else np.concatenate(found))

    def _node_ensemble(self) -> Any:
        check_fitted(self)
        node = self.model_.node
        if not isinstance(node, BoostedTrees):
            raise ValueError("only XGBoost's trees tell this: the model has a base_learner")
        ensemble = node.ensemble()
        if ensemble is None:
            raise ValueError("the model has no rounds")
        return ensemble

    def _check_parameters(self) -> None:
        check_arguments(self)

    def _check_device(self, X: Any) -> None:
        check_device(self.device, X)

    def _checked_callbacks(self, callbacks: Sequence[Callback] | None) -> list[Callback]:
        found = super()._checked_callbacks(callbacks)
        if self.base_learner is not None and any(isinstance(own, Checkpoint) for own in found):
            raise ValueError("a model with a base_learner cannot be saved: leave out Checkpoint")
        return found

    def _check_size(self, model: Model, batch: Batch, followed: list[Batch]) -> None:
        for own in (batch, *followed):
            if self.base_learner is not None:
                check_in_memory(own.X, "base_learner needs all features")
            if self.edges == "linear":
                check_in_memory(own.X, 'edges="linear" needs all features')

    def _new_model(self, batch: Batch, structure: Chain | Forest, n_labels: int) -> Model:
        return new_model(self, batch, structure, n_labels)

    def _continued(self, old: Any) -> Model | None:
        return continued(old, self) if isinstance(old, GBCRF) else None

    def _make_blocks(self, model: Model, truth: Truth, followed: list[Batch]) -> list[Block]:
        return make_blocks(self, model, truth.batch, followed)
