"""LinearCRF: potentials linear in the features (Lafferty, McCallum and Pereira 2001)."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from crfx.estimators.evaluation import EvalMetric, Evaluator, make_evaluator, read_eval_set
from crfx.estimators.fitting import (
    Training,
    as_before_unless,
    listed_callbacks,
    read_training,
)
from crfx.estimators.labelling import LabellingEstimator
from crfx.estimators.linear_assembly import (
    base_scores,
    free_entries,
    get_weights,
    is_observed,
    new_linear_model,
    parameter_blocks,
    set_weights,
)
from crfx.estimators.mini_batches import MiniBatches
from crfx.estimators.parameters import check_linear_parameters
from crfx.inference.native import thread_count
from crfx.model import Model
from crfx.objectives.base import Objective
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.perceptron import PerceptronLoss
from crfx.objectives.truth import Truth
from crfx.trainers import lbfgs
from crfx.trainers.callbacks import Callback, EarlyStopping, History, Progress, any_stops
from crfx.trainers.parametric import ParametricObjective
from crfx.trainers.progress import ProgressBar
from crfx.trainers.sgd import AveragedParameters, Descent, with_good_step

Array64 = npt.NDArray[np.float64]
SWEEPS_TO_HALF = 10.0
"""After so many sweeps the steps of SGD have half their size."""


class LinearCRF(LabellingEstimator):
    """A conditional random field whose scores are linear in the features.

    Training lowers sum_i -log p(y_i | X_i) + l1 |w|_1 + l2 |w|^2, as CRFsuite does with its c1 and
    c2.

    Parameters
    ----------
    trainer : "lbfgs", "sgd", "perceptron" or "large_margin"
        L-BFGS (OWL-QN where ``l1`` is not 0); stochastic gradient descent; the averaged perceptron;
        the perceptron that asks for a margin.  The last two lower another loss
        (`crfx.objectives.perceptron`): their probabilities mean little.
    l1 : float
        Penalty; of "lbfgs" only.
    l2 : float, optional
        Penalty on all weights; None: 1 for "lbfgs" and "sgd", 0 for the perceptrons.
    max_iter : int
        Iterations of "lbfgs" at most.
    tol : float
        "lbfgs" ends once ten iterations improve the objective by less than this share of it.
    sweeps : int
        Passes over the instances, of all trainers but "lbfgs".
    burn_in : int, optional
        Weights are averaged over all steps from this sweep on; None: from the start for
        perceptrons, over the second half for "sgd".
    batch_size : int, optional
        Instances a step; None: 8 for "sgd", 1 for perceptrons.
    step : float, optional
        Size of the first step of "sgd", later ones are smaller; None: found on a part of the data.
        Perceptrons take steps of 1, None too.
    margin : float
        By which the truth is to win, per wrong label; of "large_margin".
    edges : "table", "linear" or None
        Edge scores: one table (one per edge type), or linear in the features of the position and a
        constant, what CRF++ calls bigram features; or none: then positions are independent, and a
        column of ones among the features is what gives labels a constant.
    features : "auto", "observed" or "all"
        Weights for the pairs of feature and label, and the transitions, that occur in training, as
        in CRFsuite, or for all; "auto": observed where X is sparse.
    early_stopping_rounds : int, optional
        Stop once ``eval_metric`` has not improved for so many iterations; the best weights are
        restored.
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
        Seed of the order of instances.  L-BFGS leaves nothing to chance.
    verbose : int
        1: a progress bar, on a terminal.

    Attributes
    ----------
    classes_, transitions_, n_features_in_, feature_names_in_, best_iteration_, n_iter_
    history_ : dict of lists, one entry per iteration
        ``objective`` (penalties included), ``seconds``, and ``eval_metric`` where it applies.
    """

    def __init__(
        self,
        trainer: Literal["lbfgs", "sgd", "perceptron", "large_margin"] = "lbfgs",
        l1: float = 0.0,
        l2: float | None = None,
        max_iter: int = 1000,
        tol: float = 1e-5,
        sweeps: int = 20,
        burn_in: int | None = None,
        batch_size: int | None = None,
        step: float | None = None,
        margin: float = 1.0,
        edges: Literal["table", "linear"] | None = "table",
        features: Literal["auto", "observed", "all"] = "auto",
        early_stopping_rounds: int | None = None,
        order: int = 1,
        start_end: bool = True,
        decode: Literal["viterbi", "marginal"] = "viterbi",
        eval_metric: EvalMetric = "loss",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.trainer = trainer
        self.l1 = l1
        self.l2 = l2
        self.max_iter = max_iter
        self.tol = tol
        self.sweeps = sweeps
        self.burn_in = burn_in
        self.batch_size = batch_size
        self.step = step
        self.margin = margin
        self.edges = edges
        self.features = features
        self.early_stopping_rounds = early_stopping_rounds
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
    ) -> LinearCRF:
        """Train.

        The arguments are those of `GBCRF.fit`; features that are missing (NaN, or absent from CSR)
        count as 0.  With ``init_model`` its scores stay fixed underneath.
        """
        check_linear_parameters(self)
        given = read_training(
            self.order, X, y, lengths, parents, edge_types, sample_weight, init_model
        )
        model = new_linear_model(self, given.truth, len(given.classes))
        if given.init_model is not None:
            model.set_base(given.init_model.model_)
        if eval_set is None and self.early_stopping_rounds is not None:
            raise ValueError("early_stopping_rounds needs an eval_set to watch")
        callbacks = listed_callbacks(callbacks)
        with as_before_unless(lambda: self.n_iter_ > 0, self):
            self.classes_, self.columns_, self.model_ = given.classes, given.columns, model
            self.n_iter_, self.best_iteration_ = 0, 0
            self.history_: History = {}
            evaluator = None
            if eval_set is not None:
                watched = read_eval_set(eval_set, given.columns, given.classes, self.eval_metric)
                model.check_structure(watched[0].batch)
                evaluator = make_evaluator(self.eval_metric, *watched, self)
            self._train(given, evaluator, callbacks)
        return self

    def _train(
        self, given: Training, evaluator: Evaluator | None, callbacks: list[Callback]
    ) -> None:
        model = self.model_
        model.use_threads(thread_count(self.n_jobs))
        whole = self._objective(model, given)
        watch = _Watch(self, evaluator, callbacks)
        try:
            if self.trainer == "lbfgs":
                found = self._by_lbfgs(whole, watch)
            else:
                found = self._by_sweeps(whole, self._mini_batches(model, given), watch)
        finally:
            watch.close()
        set_weights(model, found if watch.best is None else watch.best)

    def _objective(self, model: Model, given: Training) -> ParametricObjective:
        batch, truth = given.data.batch, given.truth
        return ParametricObjective(
            self._loss(truth),
            parameter_blocks(model, batch, self._free(model, given)),
            batch,
            truth.structure,
            model.sharing,
            penalty(self),
            base_scores(model, batch),
        )

    def _mini_batches(self, model: Model, given: Training) -> MiniBatches:
        free, base = self._free(model, given), base_scores(model, given.data.batch)
        return MiniBatches(model, given.truth, self._loss, free, base)

    def _free(self, model: Model, given: Training) -> dict[str, npt.NDArray[np.bool_]] | None:
        """The entries of tables that have weights; None: all."""
        if not is_observed(self, given.data.batch.X):
            return None
        return free_entries(model, given.truth)

    def _loss(self, truth: Truth) -> Objective:
        if self.trainer in ("perceptron", "large_margin"):
            margin = self.margin if self.trainer == "large_margin" else 0.0
            return PerceptronLoss(truth, margin, self.n_jobs)
        return Likelihood(truth, self.n_jobs)

    def _by_lbfgs(self, whole: ParametricObjective, watch: _Watch) -> Array64:
        start = get_weights(self.model_)
        return lbfgs.minimise(whole, start, watch, max_iter=self.max_iter, tol=self.tol, l1=self.l1)

    def _by_sweeps(self, whole: ParametricObjective, parts: MiniBatches, watch: _Watch) -> Array64:
        descent = descent_of(self, whole.batch.n_instances)
        if self.step is None and self.trainer == "sgd":
            descent = with_good_step(descent, parts, get_weights(self.model_))
        parameters = AveragedParameters(get_weights(self.model_))
        for number in range(self.sweeps):
            descent.sweep(number, parameters, parts)
            weights = parameters.average()
            if watch(weights, whole.value(weights)):
                break
        return parameters.average()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all."""
        from crfx.estimators.loading import save

        save(self, path)


def penalty(crf: LinearCRF) -> float:
    """The L2 penalty, which is None for the one that suits the trainer."""
    if crf.l2 is not None:
        return crf.l2
    return 1.0 if crf.trainer in ("lbfgs", "sgd") else 0.0


def descent_of(crf: LinearCRF, n_instances: int) -> Descent:
    """How the trainers that sweep over the instances descend."""
    is_sgd = crf.trainer == "sgd"
    batch_size = crf.batch_size or (8 if is_sgd else 1)
    burn_in = crf.burn_in
    if burn_in is None:
        burn_in = crf.sweeps // 2 if is_sgd else 0
    return Descent(
        n_instances=n_instances,
        batch_size=batch_size,
        step=1.0 if crf.step is None else crf.step,
        period=SWEEPS_TO_HALF * n_instances / batch_size if is_sgd else None,
        l2=penalty(crf),
        burn_in=burn_in,
        seed=int(check_random_state(crf.random_state).randint(2**31 - 1)),
    )


class _Watch:
    """Looks on after every iteration: history, callbacks, early stopping, progress."""

    def __init__(
        self, crf: LinearCRF, evaluator: Evaluator | None, callbacks: list[Callback]
    ) -> None:
        self.crf, self.evaluator = crf, evaluator
        self.best: Array64 | None = None
        self._stopping = None
        if crf.early_stopping_rounds is not None and evaluator is not None:
            self._stopping = EarlyStopping(
                crf.early_stopping_rounds, larger_is_better=evaluator.larger_is_better
            )
        self._bar = (
            ProgressBar(crf.max_iter if crf.trainer == "lbfgs" else crf.sweeps)
            if crf.verbose
            else None
        )
        self._callbacks = [*callbacks, *([] if self._bar is None else [self._bar])]
        self._begin = time.perf_counter()

    def __call__(self, weights: Array64, value: float) -> bool:
        """Note an iteration; whether to stop."""
        crf = self.crf
        set_weights(crf.model_, weights)
        crf.n_iter_ += 1
        record = {"objective": value, "seconds": time.perf_counter() - self._begin}
        if self.evaluator is not None:
            record["eval_metric"] = self.evaluator.value(
                crf.model_.problem(self.evaluator.data.batch)
            )
        for name, entry in record.items():
            crf.history_.setdefault(name, []).append(entry)
        crf.best_iteration_ = crf.n_iter_ - 1
        progress = Progress(crf.n_iter_, crf.history_, crf.save)
        stops = any_stops(self._callbacks, progress)
        if self._stopping is not None:
            stops = self._stopping(progress) or stops
            crf.best_iteration_ = self._stopping.best_round - 1
            if self._stopping.best_round == crf.n_iter_:
                self.best = weights
        self._begin = time.perf_counter()
        return stops

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.close()
