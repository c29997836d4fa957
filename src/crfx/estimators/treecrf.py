"""TreeCRF: trees over the labels before and a window of x (Dietterich et al. 2004)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from crfx.batch import Batch
from crfx.estimators.arguments import TREECRF_ARGUMENTS, check_arguments
from crfx.estimators.base import check_fitted
from crfx.estimators.boosted import BoostedEstimator
from crfx.estimators.context_assembly import (
    check_memory,
    continued_context,
    make_context_blocks,
    new_context_model,
)
from crfx.explain.importance import Importance, shares
from crfx.features.tree_rows import window_names
from crfx.inputs.rows import check_in_memory
from crfx.inputs.training_set import EvalMetric
from crfx.inputs.weights import ClassWeight
from crfx.model.model import Model
from crfx.objectives import curvature as curvatures
from crfx.objectives.base import Objective
from crfx.objectives.pseudo_likelihood import PseudoLikelihood
from crfx.objectives.truth import Truth
from crfx.potentials.context_trees import ContextTrees
from crfx.potentials.tree_shap import SHARE_OF_GAIN
from crfx.structures import Chain, Forest
from crfx.trainers.blocks import Block
from crfx.workers import count, current

ImportanceKind = Literal["total_gain", "gain", "weight", "cover", "total_cover"]


class TreeCRF(BoostedEstimator):
    """A conditional random field whose scores are trees over features *and* the labels before.

    log p(y | x) is the sum of F^{y_t}(y_{t-1}, window of x at t), less log Z.  Each round adds one
    tree per label k to F^k; a tree may split on a feature or on the label before, so both interact:
    GBCRF adds what a position says to what a transition says, TreeCRF can say that a transition is
    likely here and not there.  Where no label comes before, the first position of a chain or a root
    of a forest, F sees the value "none".

    Scores are kept of every pair of labels at every position: memory grows with positions times
    labels to the power ``order + 1``.  On small data fewer leaves or a smaller step
    overfit less than the defaults; with many labels ``curvature="mixing"``, a small
    ``colsample_bynode`` and ``subsample`` are worth trying.  Trees grow in our own core, on the
    CPU: there is no ``device``.

    Parameters
    ----------
    n_estimators : int
        Rounds; with ``init_model`` further rounds.
    learning_rate : float
        Shrinkage of every step, in (0, 1].
    max_leaves : int
        Leaves of a tree; the split that gains most comes first.
    window : int or (int, int)
        Neighbours whose features a position sees: an odd number, itself included, or how many to
        the left and to the right, in the order of rows, in forests too.  Beyond the ends of an
        instance they have a value of their own.
    pseudo_likelihood_rounds : int
        The first rounds, so many, follow the pseudo-likelihood, which needs no sums over
        labellings; none where no position is known together with its neighbours.
    reg_lambda, min_child_weight, colsample_bynode
        As in XGBoost; the labels before are columns too.  Without curvature, as by default,
        ``reg_lambda`` does nothing, and the weight of a leaf is a count: of positions times labels
        that may come before.
    subsample : float
        Share of the positions (in GBCRF: of the instances) that the trees of a round look at.
    influence_trimming : float
        Positions with the smallest gradients are left out of the search for splits, as many as
        have together at most this share of the absolute gradient and of the curvature: the sums
        that splits are judged by are off by no more.  Leaves are fitted to all positions.  In first
        order every pair has curvature 1, so it is at most this share of the positions; in second
        order it can be most of them.
    curvature : None, "auto", "mixing", "dobrushin", "exact", "length", "diagonal" or a number
        None: first order, as in the paper.  The others as in GBCRF.  Steps that would raise the
        objective are halved.
    early_stopping_rounds : int, optional
        Stop once ``eval_metric`` has not improved for so many rounds; the best round is restored.
    min_count : int
        As in `GBCRF`, for dicts, texts and templates.
    order : int
        How many labels before it a label depends on; forests have order 1.  The first ``order``
        positions of a chain see "none": their labels do not depend on each other directly.
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
    n_jobs : int, optional
        Threads; None: all cores.
    random_state : int, RandomState or None
        The same seed gives the same model, bit by bit, for any number of threads.
    verbose : int
        1: a progress bar, on a terminal.
    start_end : bool
        A score for the last label of a chain.  That of the first is what F says where none comes
        before, so there is nothing to add there.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, best_iteration_, n_rounds_
        (``transitions_`` is None: there is no table.)
    history_ : dict of lists, one entry per round
        ``objective`` (training, after the round; of the pseudo-likelihood in the first ones),
        ``halvings``, ``seconds``, ``gamma`` (mean over nodes) and ``eval_metric`` where they apply.

    Examples
    --------
    >>> import numpy as np
    >>> from crfx import TreeCRF
    >>> X = [np.array([[1.0], [0.0], [0.0], [0.0]])] * 10  # the feature marks the beginning
    >>> y = [["in", "out", "in", "out"]] * 10  # the rest depends on the label before
    >>> crf = TreeCRF(20, n_jobs=1).fit(X, y)
    >>> crf.predict([np.array([[1.0], [0.0], [0.0], [0.0], [0.0], [0.0]])])[0].tolist()
    ['in', 'out', 'in', 'out', 'in', 'out']
    """

    _arguments: ClassVar = TREECRF_ARGUMENTS

    def __init__(
        self,
        n_estimators: int = 100,
        learning_rate: float = 1.0,
        max_leaves: int = 10,
        window: int | tuple[int, int] = 1,
        pseudo_likelihood_rounds: int = 3,
        reg_lambda: float = 1.0,
        min_child_weight: float = 1.0,
        colsample_bynode: float = 1.0,
        subsample: float = 1.0,
        influence_trimming: float = 0.0,
        curvature: curvatures.CurvatureOption = None,
        early_stopping_rounds: int | None = None,
        min_count: int = 1,
        order: int = 1,
        start_end: bool = True,
        objective: Any = "likelihood",
        task_loss: Any = None,
        class_weight: ClassWeight = None,
        constraints: Any = None,
        decode: Literal["viterbi", "marginal"] = "viterbi",
        eval_metric: EvalMetric = "loss",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.window = window
        self.pseudo_likelihood_rounds = pseudo_likelihood_rounds
        self.reg_lambda = reg_lambda
        self.min_child_weight = min_child_weight
        self.colsample_bynode = colsample_bynode
        self.subsample = subsample
        self.influence_trimming = influence_trimming
        self.curvature = curvature
        self.early_stopping_rounds = early_stopping_rounds
        self.min_count = min_count
        self.order = order
        self.start_end = start_end
        self.objective = objective
        self.task_loss = task_loss
        self.class_weight = class_weight
        self.constraints = constraints
        self.decode = decode
        self.eval_metric = eval_metric
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def feature_importance(self, kind: ImportanceKind = "total_gain") -> dict[str, float]:
        """Importance of features and of labels before, by name: ``name[-1]`` is a neighbour's,
        ``label[-1]`` the label before, ``outside[+1]`` (of sparse features) that there is no
        neighbour.  Kinds as in XGBoost: "total_gain", "gain", "weight", "cover" or "total_cover";
        what is never used is left out, and what has the same name is one.
        """
        check_fitted(self)
        kinds = ("total_gain", "gain", "weight", "cover", "total_cover")
        if kind not in kinds:
            raise ValueError(f"kind is {kind!r}: choose one of {', '.join(map(repr, kinds))}")
        node = self.model_.node
        assert isinstance(node, ContextTrees)
        trees, order = node.trees, node.shape.order
        own = self.columns_.known_names() or [f"f{number}" for number in range(self.columns_.n)]
        is_sparse = self.columns_.vocabulary is not None or self._was_sparse
        names = window_names(own, *node.shape.window, is_sparse=is_sparse)
        inner = trees.features != -1
        # Labels first, oldest first: -1 - order to -2 become 0 to order - 1.
        columns = np.where(trees.features < 0, -2 - trees.features, trees.features + order)[inner]
        names = [*(f"label[-{order - place}]" for place in range(order)), *names]
        place: dict[str, int] = {}
        columns = np.array([place.setdefault(name, len(place)) for name in names])[columns]
        names = list(place)
        measure = trees.gains if "gain" in kind else trees.weights
        totals = np.bincount(columns, measure[inner], len(names)).astype(np.float64)
        counts = np.bincount(columns, minlength=len(names))
        used = np.flatnonzero(counts)
        if kind == "weight":
            totals = counts.astype(np.float64)
        elif kind in ("gain", "cover"):
            totals[used] /= counts[used]
        return {names[k]: float(totals[k]) for k in used}

    def importance(self) -> Importance:
        """As `GBCRF.importance`: features under nodes, labels before under edges, shares of one
        whole, since the same trees ask for both.
        """
        found = shares(self.feature_importance("total_gain"))
        labels = {f"label[-{place + 1}]" for place in range(self.model_.order)}
        before = {name: share for name, share in found.items() if name in labels}
        rest = {name: share for name, share in found.items() if name not in labels}
        return Importance.of(rest, SHARE_OF_GAIN, before, SHARE_OF_GAIN)

    @property
    def _was_sparse(self) -> bool:
        """Whether windows have columns of their own for what lies outside."""
        node = self.model_.node
        assert isinstance(node, ContextTrees)
        return node.shape.is_sparse

    def _check_parameters(self) -> None:
        check_arguments(self)

    def _check_size(self, model: Model, batch: Batch, followed: list[Batch]) -> None:
        for own in (batch, *followed):
            check_in_memory(own.X, "TreeCRF grows trees of its own, which need all features")
        n_followed = sum(other.n_rows for other in followed)
        check_memory(self, batch.n_rows, n_followed, model.n_labels)

    def _new_model(self, batch: Batch, structure: Chain | Forest, n_labels: int) -> Model:
        return new_context_model(self, batch, structure, n_labels)

    def _continued(self, old: Any) -> Model | None:
        return continued_context(old, self) if isinstance(old, TreeCRF) else None

    def _make_blocks(self, model: Model, truth: Truth, followed: list[Batch]) -> list[Block]:
        return make_context_blocks(self, model, truth, followed)

    def _easier_objective(
        self, truth: Truth, first_round: int, n_rounds: int
    ) -> tuple[Objective, int] | None:
        """Return the pseudo-likelihood, unless no instance has one."""
        last = min(self.pseudo_likelihood_rounds, n_rounds)
        pseudo = PseudoLikelihood(truth)
        if first_round < last and count(current(), not pseudo.is_empty):
            return pseudo, last
        return None
