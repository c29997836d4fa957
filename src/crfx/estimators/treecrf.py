"""TreeCRF: trees over the labels before and a window of x (Dietterich et al. 2004)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, Self, cast

import numpy as np

from crfx.batch import Batch
from crfx.estimators.arguments import check_arguments
from crfx.estimators.base import check_fitted
from crfx.estimators.labelling import LabellingEstimator
from crfx.estimators.placement import placed
from crfx.estimators.session import fitting, read_warm_start
from crfx.estimators.support import check_supported
from crfx.explain.importance import Importance, shares
from crfx.features.tree_rows import window_names
from crfx.features.words import Numbering
from crfx.inputs.passed import Passed
from crfx.inputs.training_set import EvalMetric, read_eval_set, read_training_set
from crfx.inputs.weights import ClassWeight
from crfx.model.building import Parts, new_context_model
from crfx.model.continuing import continued_context, has_context_parts
from crfx.model.model import Model
from crfx.objectives import curvature as curvatures
from crfx.objectives.base import Objective
from crfx.objectives.pseudo_likelihood import PseudoLikelihood
from crfx.objectives.truth import Truth
from crfx.potentials.context_trees import ContextLearner, ContextTrees, parse_window
from crfx.potentials.tree_shap import SHARE_OF_GAIN
from crfx.trainers.blocks import row_sampler
from crfx.trainers.boosting import Boosting, WorkingScores
from crfx.trainers.callbacks import Callback, listed_callbacks
from crfx.trainers.context_block import check_memory, context_blocks
from crfx.trainers.shared_evaluation import agreed_objective
from crfx.workers import count, current

ImportanceKind = Literal["total_gain", "gain", "weight", "cover", "total_cover"]


class TreeCRF(LabellingEstimator):
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
        1: a progress bar on a terminal; elsewhere a line every ten seconds, to the logger "crfx"
        (level INFO) if logging is set up, else to standard error.
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
        """Train the trees.

        Parameters
        ----------
        X, y, lengths, parents, edge_types, sample_weight
            As in `GBCRF.fit`.
        eval_set, init_model, classes, callbacks, allowed
            As in `GBCRF.fit`.

        Returns
        -------
        The estimator itself.
        """
        check_arguments(self)
        start = read_warm_start(init_model, classes, self.constraints)
        passed = Passed(X, y, lengths, parents, edge_types, sample_weight, allowed)
        # The features of a fitted model stay.
        numbering = Numbering(self.min_count) if start.estimator is None else None
        settings = self._input_settings(numbering, start.classes)
        data = read_training_set(passed, settings, start.known)
        callbacks = listed_callbacks(callbacks)
        check_supported(self, data.batch, callbacks)
        parts, window, old = self._parts, parse_window(self.window), start.model
        is_continued = start.is_a(TreeCRF) and has_context_parts(old, parts, window)
        if is_continued:
            model = continued_context(old, self._learner, start.n_rounds)
        else:
            base = start.base_model()
            model = new_context_model(parts, window, self._learner, data.truth, base)
        model.mask = data.mask
        watched = read_eval_set(eval_set, data, model, self._eval_settings)
        followed = [] if watched is None else [watched.batch]
        self._check_memory(model, data.batch, followed)
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
            sampler = row_sampler(self.subsample, self._draw_seed, data.batch.n_rows)
            n_rounds = self.n_rounds_ + session.n_rounds
            trainer = Boosting(
                objective=agreed_objective(lambda: objective.bind(data.truth), data.batch),
                curvature=objective.curvature_of_steps(),
                blocks=context_blocks(
                    model, data.truth, followed, sampler, first_order=objective.is_first_order
                ),
                scores=WorkingScores.of(model, data.batch),
                followed=[WorkingScores.of(model, batch) for batch in followed],
                learning_rate=self.learning_rate,
                first_round=self.n_rounds_,
                n_rounds=n_rounds,
                easier=self._easier_objective(data.truth, n_rounds),
                can_restore=model.can_be_cut,
            )
            session.run(trainer, self._metric(watched, data.truth, trainer.followed_problem))
        return self

    def feature_importance(self, kind: ImportanceKind = "total_gain") -> dict[str, float]:
        """Return the importance of features and of the labels before.

        Parameters
        ----------
        kind : "total_gain", "gain", "weight", "cover" or "total_cover", default "total_gain"
            As in XGBoost.

        Returns
        -------
        dict
            Numbers by name.  ``name[-1]`` is a feature of the neighbour before, ``label[-1]`` the
            label before, and ``outside[+1]`` (of sparse features) that there is no neighbour after.
            Features that are never used are left out; entries of the same name are added.

        Examples
        --------
        >>> import numpy as np
        >>> from crfx import TreeCRF
        >>> X, y = [np.array([[0.0], [1.0], [2.0]])] * 10, [["low", "middle", "high"]] * 10
        >>> crf = TreeCRF(2, n_jobs=1).fit(X, y)
        >>> list(crf.feature_importance())
        ['label[-1]', 'f0']
        """
        check_fitted(self)
        kinds = ("total_gain", "gain", "weight", "cover", "total_cover")
        if kind not in kinds:
            raise ValueError(f"kind is {kind!r}: choose one of {', '.join(map(repr, kinds))}")
        node = cast("ContextTrees", self.model_.node)
        trees, order = node.trees, node.shape.order
        columns_read = self.columns_.known_names() or [
            f"f{number}" for number in range(self.columns_.n)
        ]
        is_sparse = self.columns_.vocabulary is not None or self._was_sparse
        names = window_names(columns_read, *node.shape.window, is_sparse=is_sparse)
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
        """Return how much features (``node``) and the labels before (``edge``) matter.

        Both are shares of one whole, since the same trees split on both.

        Returns
        -------
        Importance
            ``node`` and ``edge``: numbers by name, the largest first.

        Examples
        --------
        >>> import numpy as np
        >>> from crfx import TreeCRF
        >>> X, y = [np.array([[0.0], [1.0], [2.0]])] * 10, [["low", "middle", "high"]] * 10
        >>> crf = TreeCRF(2, n_jobs=1).fit(X, y)
        >>> list(crf.importance().node)
        ['f0']
        """
        by_name = shares(self.feature_importance("total_gain"))
        labels = {f"label[-{place + 1}]" for place in range(self.model_.order)}
        before = {name: share for name, share in by_name.items() if name in labels}
        rest = {name: share for name, share in by_name.items() if name not in labels}
        return Importance.of(rest, SHARE_OF_GAIN, before, SHARE_OF_GAIN)

    @property
    def _was_sparse(self) -> bool:
        """Whether windows have columns of their own for what lies outside."""
        node = cast("ContextTrees", self.model_.node)
        return node.shape.is_sparse

    def _check_memory(self, model: Model, batch: Batch, followed: list[Batch]) -> None:
        for each in followed:
            check_supported(self, each)
        n_followed = sum(other.n_rows for other in followed)
        first_order = self._objective_settings.is_first_order
        check_memory(model, batch.n_rows, n_followed, first_order=first_order)

    @property
    def _parts(self) -> Parts:
        return Parts(int(self.order), "context", bool(self.start_end))

    @property
    def _learner(self) -> ContextLearner:
        """The learner of trees, which draws its seed here."""
        is_first_order = self._objective_settings.is_first_order
        return ContextLearner(
            max_leaves=int(self.max_leaves),
            reg_lambda=0.0 if is_first_order else float(self.reg_lambda),
            min_child_weight=float(self.min_child_weight),
            trimming=float(self.influence_trimming),
            column_share=float(self.colsample_bynode),
            seed=self._draw_seed(),
        )

    def _easier_objective(self, truth: Truth, n_rounds: int) -> tuple[Objective, int] | None:
        """Return the pseudo-likelihood and its last round, unless no instance has one."""
        last = min(self.pseudo_likelihood_rounds, n_rounds)
        pseudo = PseudoLikelihood(truth)
        if self.n_rounds_ < last and count(current(), not pseudo.is_empty):
            return pseudo, last
        return None
