"""RankingCRF: orders of documents (Volkovs, Larochelle and Zemel 2011)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils.metadata_routing import UNUSED

from crfx.estimators.arguments import check_arguments, ranking_objective
from crfx.estimators.base import Estimator, check_fitted
from crfx.estimators.placement import placed
from crfx.estimators.session import Session, fitting, read_init_model
from crfx.estimators.support import check_device, check_supported
from crfx.explain.attribution import checked_positions, explained_query
from crfx.explain.importance import Importance, function_importance, tree_importance
from crfx.explanation import Explanation
from crfx.features.columns import Columns
from crfx.features.matrix import whole
from crfx.inputs.queries import (
    Queries,
    agreed_eval_set,
    agreed_queries,
    learnable,
    read_documents,
    read_group,
    read_queries,
)
from crfx.inputs.rows import Rows
from crfx.model.ranking_model import RankingModel, linear_function
from crfx.ndcg import Gain, mean_ndcg, ndcg_by_query
from crfx.objectives.ranking import RankingObjectiveName
from crfx.potentials.trees import BoostedTrees
from crfx.potentials.xgboost_learner import XGBoostLearner
from crfx.prediction.metric import watched_ranking_metric
from crfx.structures.ranking import best_orders
from crfx.threads import thread_count
from crfx.trainers.callbacks import Callback, History, listed_callbacks
from crfx.trainers.monitor import Metric
from crfx.trainers.ranking_boosting import RankingBoosting, working_scores
from crfx.trainers.ranking_sgd import QueryBatches, RankingEpochs, RankingEpochSettings
from crfx.trainers.ranking_task import RankingTask
from crfx.trainers.subsets import Subsets
from crfx.workers import current

MANY_QUERIES = 320
"""With fewer, leaves may be lighter in proportion."""
Array64 = npt.NDArray[np.float64]


class RankingCRF(Estimator):
    """A conditional random field over the orders of a query's documents.

    An order y has energy -sum_i alpha_{y_i} f(x_i), alpha_r = log 2 / log(1 + r): documents are
    ranked by their score f, linear in the features or boosted trees, and f is trained for NDCG.

    Parameters
    ----------
    scorer : "linear" or "trees"
        By stochastic gradient descent over queries, or by XGBoost's trees, second order.
    objective : "kl", "likelihood", "loss_augmented", "loss_scaled" or "expected_loss"
        What is minimised; the loss is 1 - NDCG@cut.  "kl" draws the model towards orders in
        proportion to exp(-loss / temperature).
    temperature : float, optional
        Of "kl" (None: 0.02).  Towards 0 it becomes the likelihood.
    loss_weight : float, optional
        Of the loss in "loss_augmented" energies (None: 1).
    truths : "mean" or "sum", optional
        Of "likelihood" and "loss_augmented", over the orders of loss 0 (None: "mean").
    cut : int, optional
        Of the NDCG in the loss; None: whole lists.
    gain : "exponential" or "linear"
        2^relevance - 1, or the relevance; in the loss, in ``eval_metric`` and in ``score``.
    subset_size : int
        A visit of a query with more documents draws so many, of every relevance level at least
        one.  Sums over their orders are exact up to 16 documents ("loss_scaled": 8), beyond that
        they are sampled.
    n_subsets : int, optional
        How many subsets of a query a visit draws (None: linear 1, trees 4).
    n_samples : int, optional
        Orders drawn of a subset that is too large for sums (None: 500).
    sweeps, step, batch_size, burn_in, l2 : optional, of scorer "linear"
        Epochs over all queries (20), the first step (None: found by trials), queries per step (1),
        epochs before weights are averaged (0), penalty ``l2`` times the sum of squares on the sum
        over queries (0).
    n_estimators, learning_rate, max_depth, max_leaves, grow_policy, reg_lambda, min_child_weight, \
subsample, colsample_bynode, max_bin, tree_params, device : optional, of scorer "trees"
        Rounds (100), shrinkage (0.1), depth (4), least sum of curvatures in a leaf (20; a document
        drawn in every subset has about 0.1; "loss_scaled" 4, "expected_loss" 1, where it has less),
        and as in XGBoost; ``grow_policy`` is "depthwise" or "lossguide", ``subsample`` is the share
        of queries that a round looks at, ``tree_params`` are more parameters for XGBoost;
        ``device`` ("cpu", "cuda" or "cuda:N") is where trees grow, as for `GBCRF`.
    early_stopping_rounds : int, optional
        Stop once ``eval_metric`` has not improved for so many epochs or rounds; the best is
        restored.
    eval_metric : "ndcg", "ndcg@5", "letor-ndcg@5" or callable
        Of the ``eval_set``, at any cut, by the usual definition or that of LETOR 4.0
        (`crfx.ndcg`); or a function of (relevance, scores, group) that is better when larger.
    n_jobs : int, optional
        Threads; None: all cores.
    random_state : int, RandomState or None
        Seed of subsets, of the order of queries and of samples.
    verbose : int
        1: a progress bar on a terminal; elsewhere a line every ten seconds, to the logger "crfx"
        (level INFO) if logging is set up, else to standard error.

    Attributes
    ----------
    n_skipped_ : int
        Queries that training skipped: one document, or one relevance level.
    coef_, n_features_in_, feature_names_in_, best_iteration_, n_rounds_
    history_ : dict of lists, one entry per epoch or round
        ``objective``, the mean over queries (linear: of subsets drawn once, penalty included;
        trees: of the subsets of the round, after it), ``seconds``, and where they apply
        ``eval_metric``, ``halvings`` and ``effective_samples``, the mean over sampled subsets.

    Notes
    -----
    An argument that the scorer or the objective has no use for must be None.

    Examples
    --------
    >>> import numpy as np
    >>> from crfx import RankingCRF
    >>> X = np.array([[0.0], [1.0], [2.0], [0.5], [0.1]])
    >>> crf = RankingCRF(random_state=0).fit(X, [0, 1, 2, 1, 0], group=[3, 2])
    >>> [order.tolist() for order in crf.rank(X, group=[3, 2])]
    [[2, 1, 0], [0, 1]]
    """

    model_: RankingModel
    columns_: Columns
    history_: History
    n_rounds_: int
    best_iteration_: int
    n_skipped_: int

    _is_called = "RankingCRF"
    # The target, under another name than y: no metadata.
    __metadata_request__fit: ClassVar = {"relevance": UNUSED}
    __metadata_request__score: ClassVar = {"relevance": UNUSED}

    def __init__(
        self,
        scorer: Literal["linear", "trees"] = "linear",
        objective: RankingObjectiveName = "kl",
        temperature: float | None = None,
        loss_weight: float | None = None,
        truths: Literal["mean", "sum"] | None = None,
        cut: int | None = None,
        gain: Gain = "exponential",
        subset_size: int = 6,
        n_subsets: int | None = None,
        n_samples: int | None = None,
        sweeps: int | None = None,
        step: float | None = None,
        batch_size: int | None = None,
        burn_in: int | None = None,
        l2: float | None = None,
        n_estimators: int | None = None,
        learning_rate: float | None = None,
        max_depth: int | None = None,
        max_leaves: int | None = None,
        grow_policy: str | None = None,
        reg_lambda: float | None = None,
        min_child_weight: float | None = None,
        subsample: float | None = None,
        colsample_bynode: float | None = None,
        max_bin: int | None = None,
        tree_params: dict[str, Any] | None = None,
        device: str | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: str | Callable[[Any, Any, Any], float] = "ndcg",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.scorer = scorer
        self.objective = objective
        self.temperature = temperature
        self.loss_weight = loss_weight
        self.truths = truths
        self.cut = cut
        self.gain = gain
        self.subset_size = subset_size
        self.n_subsets = n_subsets
        self.n_samples = n_samples
        self.sweeps = sweeps
        self.step = step
        self.batch_size = batch_size
        self.burn_in = burn_in
        self.l2 = l2
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
        self.device = device
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @placed
    def fit(
        self,
        X: Any,
        relevance: Any,
        *,
        group: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        init_model: RankingCRF | str | os.PathLike[str] | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> RankingCRF:
        """Train.

        Parameters
        ----------
        X : (documents, features) array, CSR matrix or data frame; or a list, one per query
            The documents of one query after the other.  For trees NaN and absent entries of CSR
            are missing; for a linear scorer they count as 0.  Or ``X`` of `crfx.Shards`, whose
            instances are queries and whose labels, ``y``, are relevance: trees leave the features
            on disk, a linear scorer needs them in memory.
        relevance : (documents,) numbers, 0 or more; or a list of them, one per query
        group : (queries,) whole numbers
            How many documents each query has; not given where X is a list, or shards.
        sample_weight : (queries,) numbers, optional
        eval_set : (X, relevance, group), or a dict of these, optional; (X, relevance) of lists
            Watched: ``history_["eval_metric"]`` and early stopping are about it.
        init_model : fitted RankingCRF, or the path of a model file, optional
            One with the same scorer is trained further, as if it had been one longer run (to the
            bit); any other stays fixed underneath.
        callbacks : list of callables, optional
            Each is called after every epoch or round with a `crfx.trainers.callbacks.Progress`;
            True stops.  `crfx.Checkpoint` is one.
        """
        check_arguments(self)
        if self.device is not None:
            check_device(self.device, X)
        start = read_init_model(init_model, RankingCRF)
        base = start.estimator
        columns = None if base is None else base.columns_
        data = agreed_queries(X, relevance, group, sample_weight, columns=columns, training=True)
        check_supported(self, data.batch)
        queries, n_skipped = learnable(data, self.subset_size)
        watched = self._watched(eval_set, data)
        listed = listed_callbacks(callbacks)
        start = start.continued_if(base is not None and base.model_.scorer == self.scorer)
        model = self._new_model(data.columns, base, start.estimator)
        with fitting(
            self,
            model,
            start,
            listed,
            self._most_rounds,
            keeps_state=True,
            columns_=data.columns,
            n_skipped_=n_skipped,
        ) as session:
            run = self._run_epochs if self.scorer == "linear" else self._run_boosting
            run(session, queries, watched)
        return self

    def _run_epochs(self, session: Session, queries: Queries, watched: Queries | None) -> None:
        """Train a linear scorer by epochs over the queries."""
        model, X, batch_size = self.model_, queries.batch.X, self._value("batch_size")
        base, seed = model.base_scores(X), self._draw_seed()
        batches = QueryBatches(self._task(queries), X, base, seed, batch_size)
        settings = RankingEpochSettings(
            batch_size, self._value("burn_in"), self._value("l2"), self.step
        )
        trainer = RankingEpochs(model, batches, settings, self.n_rounds_, session.n_rounds)
        session.run(
            trainer, self._metric(watched, lambda: model.scores(cast("Queries", watched).batch.X))
        )

    def _run_boosting(self, session: Session, queries: Queries, watched: Queries | None) -> None:
        """Add rounds of trees."""
        model, X = self.model_, queries.batch.X
        function: Any = model.function
        function.bind(X, [] if watched is None else [watched.batch.X], current())
        followed = [] if watched is None else [working_scores(model, watched.batch.X)]
        trainer = RankingBoosting(
            task=self._task(queries),
            function=function,
            scores=working_scores(model, X),
            learning_rate=self._value("learning_rate"),
            seed=self._draw_seed(),
            n_rounds=self.n_rounds_ + session.n_rounds,
            first_round=self.n_rounds_,
            subsample=self._value("subsample"),
            followed=followed,
        )
        if self.min_child_weight is None:  # of few queries no leaf would be heavy enough
            usual = self._value("min_child_weight") * min(1.0, trainer.n_queries / MANY_QUERIES)
            function.learner.params["min_child_weight"] = usual
        session.run(trainer, self._metric(watched, lambda: followed[0]))
        trainer.warn_if_nothing_learned()

    def _task(self, queries: Queries) -> RankingTask:
        return RankingTask(
            ranking_objective(vars(self)),
            Subsets(queries.batch, queries.relevance, self.subset_size),
            queries.gains(self.gain),
            queries.weights,
            self._value("n_subsets"),
            self.n_jobs,
            queries.before,
        )

    def _metric(
        self, watched: Queries | None, scores: Callable[[], npt.NDArray[Any]]
    ) -> Metric | None:
        if watched is None:
            return None
        return watched_ranking_metric(self.eval_metric, self.gain, watched, scores)

    def _watched(self, eval_set: Any, data: Queries) -> Queries | None:
        if eval_set is not None:
            return agreed_eval_set(eval_set, data.columns)
        if self.early_stopping_rounds is not None:
            raise ValueError("early_stopping_rounds needs an eval_set to watch")
        return None

    def _new_model(
        self, columns: Columns, start: RankingCRF | None, further: RankingCRF | None
    ) -> RankingModel:
        """Return a new model, on top of ``start``, or a copy of ``further``, to be trained."""
        old = None if further is None else further.model_
        base = None if start is None else start.model_
        if old is not None:
            base = old.base
        if self.scorer == "linear":
            function: Any = None if old is None else old.function
            weights = np.zeros(columns.n) if function is None else function.weights.copy()
            return RankingModel(linear_function(weights), base)
        names = (
            "max_depth",
            "max_leaves",
            "grow_policy",
            "reg_lambda",
            "min_child_weight",
            "colsample_bynode",
        )
        params = {name: self._value(name) for name in names} | (self._value("tree_params") or {})
        learner = XGBoostLearner(
            params,
            self._value("max_bin"),
            self._draw_seed(),
            thread_count(self.n_jobs),
            self._value("device"),
        )
        trees: Any = None if old is None else old.function
        return RankingModel(BoostedTrees(learner, 1, None if trees is None else trees.raw), base)

    @placed
    def predict(self, X: Any) -> Any:
        """Return the score of every document: the larger the score, the better the rank.

        Parameters
        ----------
        X : (documents, features) array, CSR matrix or data frame; or a list, one per query
            As in `fit`.

        Returns
        -------
        (documents,) array, or a list of (length,) arrays for a list of queries

        Examples
        --------
        >>> import numpy as np
        >>> from crfx import RankingCRF
        >>> X, relevance = np.array([[0.0], [1.0], [2.0], [0.5], [0.1]]), [0, 1, 2, 1, 0]
        >>> crf = RankingCRF(random_state=0, n_jobs=1).fit(X, relevance, group=[3, 2])
        >>> crf.predict(X).shape
        (5,)
        """
        documents = self._documents(X)
        return documents.split(self._scores_of(documents.matrix))

    def _documents(self, X: Any) -> Rows:
        check_fitted(self)
        return read_documents(X, self.columns_)

    def _scores_of(self, matrix: Any) -> Array64:
        self.model_.use_threads(thread_count(self.n_jobs))
        return self.model_.scores(matrix)

    @placed
    def rank(self, X: Any, group: Any = None) -> list[npt.NDArray[np.integer[Any]]]:
        """Return the documents of every query, best first.

        Parameters
        ----------
        X : (documents, features) array, CSR matrix or data frame; or a list, one per query
            As in `fit`.
        group : (queries,) whole numbers
            How many documents each query has; None if X is a list, or shards.

        Returns
        -------
        list of (length,) int arrays
            For each query the numbers of its documents, counted from 0 within the query.

        Examples
        --------
        >>> import numpy as np
        >>> from crfx import RankingCRF
        >>> X, relevance = np.array([[0.0], [1.0], [2.0], [0.5], [0.1]]), [0, 1, 2, 1, 0]
        >>> crf = RankingCRF(random_state=0, n_jobs=1).fit(X, relevance, group=[3, 2])
        >>> [documents.tolist() for documents in crf.rank(X, group=[3, 2])]
        [[2, 1, 0], [0, 1]]
        """
        documents = self._documents(X)
        offsets = read_group(group, documents).offsets
        return best_orders(self._scores_of(documents.matrix), offsets)

    def score(
        self,
        X: Any,
        relevance: Any,
        group: Any = None,
        *,
        cut: int | None = None,
        sample_weight: Any = None,
    ) -> float:
        """Return the mean NDCG over the queries, see `crfx.ndcg`.

        Parameters
        ----------
        X, relevance, group
            As in `fit`.
        cut : int, optional
            Count only the first documents of each query; None: all.
        sample_weight : (queries,) numbers, optional
            Weights of queries in the mean.

        Returns
        -------
        float
            From 0 to 1.

        Examples
        --------
        >>> import numpy as np
        >>> from crfx import RankingCRF
        >>> X, relevance = np.array([[0.0], [1.0], [2.0], [0.5], [0.1]]), [0, 1, 2, 1, 0]
        >>> crf = RankingCRF(random_state=0, n_jobs=1).fit(X, relevance, group=[3, 2])
        >>> crf.score(X, relevance, group=[3, 2])
        1.0
        """
        check_fitted(self)
        queries = read_queries(X, relevance, group, sample_weight, columns=self.columns_)
        scores, lengths = self._scores_of(queries.batch.X), queries.batch.lengths
        by_query = ndcg_by_query(queries.relevance, scores, lengths, cuts=(cut,), gain=self.gain)
        return float(mean_ndcg(by_query, queries.weights)[0])

    def explain(self, X_q: Any, *, positions: Any = None) -> Explanation:
        """Return why the documents of one query are ordered as they are.

        Parameters
        ----------
        X_q : (documents, features) array, CSR matrix or data frame
            The documents of one query.
        positions : list of int, optional
            The documents to explain, from 0 on; None: all.

        Returns
        -------
        crfx.explanation.Explanation
            As of `GBCRF.explain`, with one score; ``predicted`` are ranks, from 1.

        Examples
        --------
        >>> import numpy as np
        >>> from crfx import RankingCRF
        >>> X, relevance = np.array([[0.0], [1.0], [2.0], [0.5], [0.1]]), [0, 1, 2, 1, 0]
        >>> crf = RankingCRF(random_state=0, n_jobs=1).fit(X, relevance, group=[3, 2])
        >>> crf.explain(X[:3]).predicted.tolist()
        [3, 2, 1]
        """
        documents = self._documents(X_q)
        matrix = whole(documents.matrix, "X_q is shards: explain one query at a time, in memory")
        sizes = documents.lengths
        if sizes is not None and len(sizes) > 1:
            raise ValueError(f"X_q is a list of {len(sizes)} queries: explain one at a time, X[i]")
        rows = checked_positions(positions, matrix.shape[0])
        self.model_.use_threads(thread_count(self.n_jobs))
        return explained_query(self.model_, matrix, rows, self.columns_.name_of())

    def importance(self) -> Importance:
        """Return how much each feature matters to the scores, as `GBCRF.importance` does.

        Returns
        -------
        Importance
            ``node``: numbers by name, the largest first; ``edge`` is empty.

        Examples
        --------
        >>> import numpy as np
        >>> from crfx import RankingCRF
        >>> X, relevance = np.array([[0.0], [1.0], [2.0], [0.5], [0.1]]), [0, 1, 2, 1, 0]
        >>> crf = RankingCRF(random_state=0, n_jobs=1).fit(X, relevance, group=[3, 2])
        >>> list(crf.importance().node)
        ['f0']
        """
        check_fitted(self)
        return function_importance(self.model_.function, self.columns_.name_of())

    def feature_importance(self, kind: str = "total_gain") -> dict[str, float]:
        """Return the importance of features in the trees, as `GBCRF.feature_importance` does.

        A linear scorer has ``coef_`` instead.

        Parameters
        ----------
        kind : "total_gain", "gain", "weight", "cover" or "total_cover", default "total_gain"
            As in XGBoost.

        Returns
        -------
        dict
            Numbers by name; features that are never used are left out.

        Examples
        --------
        >>> import numpy as np
        >>> from crfx import RankingCRF
        >>> X, relevance = np.arange(6.0)[:, None], [0, 1, 2, 0, 1, 2]
        >>> crf = RankingCRF("trees", n_estimators=2, n_jobs=1).fit(X, relevance, group=[3, 3])
        >>> list(crf.feature_importance())
        ['f0']
        """
        check_fitted(self)
        function: Any = self.model_.function
        if self.model_.scorer != "trees":
            raise AttributeError('feature_importance is of scorer="trees"; this model has coef_')
        ensemble = function.ensemble()
        return {} if ensemble is None else tree_importance(ensemble, self.columns_, kind)

    @property
    def coef_(self) -> Array64:
        """(features,) weights of a linear scorer."""
        check_fitted(self)
        function: Any = self.model_.function
        if self.model_.scorer != "linear":
            raise AttributeError('coef_ is of scorer="linear"; this model has trees')
        weights: Array64 = function.weights
        return weights
