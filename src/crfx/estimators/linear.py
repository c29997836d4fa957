"""LinearCRF: potentials linear in the features (Lafferty, McCallum and Pereira 2001)."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.estimators.base import check_fitted
from crfx.estimators.growing import can_go_on, check_goes_on, grow, keeps_places
from crfx.estimators.inducing import Inducer, check_inducible
from crfx.estimators.labelling import LabellingEstimator, base_model
from crfx.estimators.linear_assembly import (
    free_entries,
    is_observed,
    linear_functions,
    new_linear_model,
)
from crfx.estimators.mini_batches import MiniBatches
from crfx.estimators.model_parameters import base_scores, get_weights, set_weights
from crfx.estimators.parameter_rounds import ParameterRounds, Steps
from crfx.estimators.parameters import check_linear_parameters
from crfx.estimators.parametric import ParametricEstimator
from crfx.estimators.placement import placed
from crfx.estimators.quick_steps import quick_steps
from crfx.estimators.sharded_sweeps import Base, mini_batches_of
from crfx.estimators.sweeping import SoFar, sweep_once, sweep_to_the_end
from crfx.features.conjunctions import readable
from crfx.inputs.passed import Passed
from crfx.inputs.rows import check_in_memory
from crfx.inputs.training_set import EvalMetric, TrainingSet
from crfx.inputs.weights import BALANCED, ClassWeight
from crfx.model.model import Model
from crfx.objectives.truth import Truth
from crfx.scores import IntArray
from crfx.serialisation.linear_json import write_json
from crfx.threads import thread_count
from crfx.trainers.induction import FeatureInduction, settings_of

Array64 = npt.NDArray[np.float64]


class LinearCRF(ParametricEstimator):
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
        Iterations of "lbfgs" at most; those between rounds of ``feature_induction`` not counted.
        A ConvergenceWarning says where they were too few; ``n_iter_`` tells how many there were.
    tol : float
        "lbfgs" ends once ten iterations improve the objective by less than this share of it.  Below
        1e-8, its last iterations are in double precision.
    sweeps : int
        Passes over the instances, of all trainers but "lbfgs".
    burn_in : int, optional
        Weights are averaged over all steps from this sweep on; None: from the start for
        perceptrons, over the second half for "sgd".
    batch_size : int, optional
        Instances a step; None: 8 for "sgd", 1 for perceptrons.
    step : float, optional
        Size of the first step of "sgd", later ones are smaller; None: found on a part of the data.
        Perceptrons take steps of 1 where none is given.
    margin : float
        By which the truth is to win, per wrong label; of "large_margin".
    edges : "table", "linear" or None
        Edge scores: one table (one per edge type), or linear in the features of the position and a
        constant, what CRF++ calls bigram features; or none: then positions are independent, and a
        column of ones among the features is what gives labels a constant.
    features : "auto", "observed" or "all"
        Weights for the pairs of feature and label, and the transitions, that occur in training, as
        in CRFsuite, or for all; "auto": observed where X is sparse.
    min_count : int
        Names of features, in dicts, texts and templates, that occur less often in training are
        left out.  What ``init_model`` or earlier calls of `partial_fit` know stays.
    n_hashed : int, optional
        Columns into which names of features are hashed, say 2**20; None: every name has its own.
        Hashed names are not kept: less memory, and names that share a column share its weights.
    feature_induction : int or `FeatureInduction`, optional
        Add conjunctions of features, in so many rounds, to those that score nodes: the ones that
        raise the likelihood most (McCallum 2003; `crfx.FeatureInduction` tells how, and takes more
        settings).  By "lbfgs" on sparse X; ``predict`` takes X as before.
    early_stopping_rounds : int, optional
        Stop once ``eval_metric`` has not improved for so many iterations; the best weights are
        restored.
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
        Of the ``eval_set``: the objective per position (of perceptrons the negative
        log-likelihood), or a score of (y_true, y_pred), lists of label arrays, that is better
        when larger.
    n_jobs : int, optional
        Threads; None: all cores.
    random_state : int, RandomState or None
        Seed of the order of instances.  L-BFGS leaves nothing to chance.
    verbose : int
        1: a progress bar, on a terminal.

    Attributes
    ----------
    classes_, coef_, transitions_, n_features_in_, feature_names_in_, best_iteration_, n_iter_
    induced_features_ : list of tuples
        The features of every conjunction: names, or column numbers where X has no names.
    history_ : dict of lists, one entry per iteration
        ``objective`` (penalties included), ``seconds``, and ``eval_metric`` where it applies.

    Notes
    -----
    An ``init_model`` that is a LinearCRF with the same ``edges``, ``order`` and ``start_end`` is
    trained on, and has its conjunctions; features and pairs may be new.  One that was saved in
    training, by a `crfx.Checkpoint`, goes on as if it had never been cut off: iterations, sweeps
    and rounds of induction count on.  One whose training has ended lends its weights.

    Examples
    --------
    >>> from crfx import LinearCRF
    >>> X = [[["Ada", "capital"], ["met"], ["Bo", "capital"]], [["Bo", "capital"], ["left"]]]
    >>> y = [["PER", "O", "PER"], ["PER", "O"]]
    >>> crf = LinearCRF(n_jobs=1).fit(X, y)
    >>> crf.predict([[["Cy", "capital"], ["left"]]])[0].tolist()
    ['PER', 'O']
    """

    _usual_l2: ClassVar = {"lbfgs": 1.0, "sgd": 1.0, "perceptron": 0.0, "large_margin": 0.0}

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
        min_count: int = 1,
        n_hashed: int | None = None,
        feature_induction: int | FeatureInduction | None = None,
        early_stopping_rounds: int | None = None,
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
        self.min_count = min_count
        self.n_hashed = n_hashed
        self.feature_induction = feature_induction
        self.early_stopping_rounds = early_stopping_rounds
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
    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        sample_weight: Any = None,
        classes: Any = None,
        allowed: Any = None,
    ) -> LinearCRF:
        """Sweep once over some more instances, by a trainer that sweeps.

        Dicts and texts may bring new features.  A label that has not been met before must be named
        in ``classes``, now or in an earlier call; the first call learns those of ``y`` too.  A call
        counts as a sweep: ``l2`` is shared out over its instances, and steps become smaller from
        call to call, so pass many instances at a time.
        """
        check_linear_parameters(self)
        if self.trainer == "lbfgs":
            raise ValueError('partial_fit needs a trainer that sweeps: "sgd", "perceptron", ...')
        if self.class_weight == BALANCED:
            raise ValueError(
                'class_weight is "balanced", but partial_fit sees a part of the labels at a time: '
                "pass a dict"
            )
        start = self if hasattr(self, "model_") else None
        if start is not None:
            check_goes_on(start, self)
        grows = start is not None and start.model_.base is None
        passed = Passed(X, y, lengths, parents, edge_types, sample_weight, allowed)
        given = self._read(passed, start, grows, classes)
        sweep_once(self, given, start)
        return self

    @property
    def coef_(self) -> Any:
        """Node weights, (labels, features): CSR where pairs that do not occur have none.

        Rows are in the order of ``classes_``, columns in that of ``feature_names_in_``,
        those of ``induced_features_`` after them.
        """
        check_fitted(self)
        node: Any = self.model_.node
        weights = sparse.csr_matrix(node.pattern.matrix(node.weights).T)
        return weights.toarray() if node.pattern.outputs is None else weights

    @property
    def induced_features_(self) -> list[tuple[Any, ...]]:
        """The features of every conjunction that ``feature_induction`` has added."""
        check_fitted(self)
        found = linear_functions(self.model_)[0].conjunctions
        return [] if found is None else readable(found.sets(), self.columns_.known_names())

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON for other languages, whole or not at all.

        ``load`` does not read it, and it says nothing of training: use ``save`` for that.  The
        format is told in docs/model-file.md, with a reader of forty lines.
        """
        check_fitted(self)
        write_json(self._saved(), path)

    def _check_parameters(self) -> None:
        check_linear_parameters(self)

    def _check_training(self, given: TrainingSet) -> None:
        if settings_of(self.feature_induction) is not None:
            check_in_memory(given.batch.X, "feature_induction needs all features")
            check_inducible(given.batch.X)

    def _can_go_on(self, start: LabellingEstimator) -> bool:
        return can_go_on(start, self)

    def _grows(self, start: Any) -> bool:
        return start.model_.base is None

    def _goes_on_with(self, left: Any) -> None:
        if left is not None and not self._keeps_places:
            left = {**left, "state": None}  # of other weights: these begin anew, from what they are
        super()._goes_on_with(left)
        self._so_far: SoFar | None = None

    @property
    def _lowers(self) -> tuple[Any, ...]:
        return (*super()._lowers, self.l1, self.feature_induction)

    def _take_labels(self, start: LabellingEstimator, codes: IntArray) -> None:
        self._state = None

    def _begin(self, given: TrainingSet, start: LabellingEstimator | None, goes_on: bool) -> Model:
        """The model to train; with the weights of ``start`` where that is trained on."""
        if start is None or not goes_on:
            base = None if start is None else base_model(start)
            model, _ = self._grown(given, None, None if base is None else base.n_types)
            if base is not None:
                model.set_base(base)
            return model
        model, origin = self._grown(given, start)
        old = get_weights(start.model_)
        set_weights(model, np.where(origin >= 0, old[origin], 0.0))
        self._keeps_places = keeps_places(origin, old, model)
        return model

    def _grown(
        self, given: TrainingSet, start: LabellingEstimator | None, least_types: int | None = None
    ) -> tuple[Model, IntArray]:
        """A model for the data, with all that ``start`` has; where its weights come from.

        ``least_types`` of edges there are at least, those of a base model.
        """
        if start is None:
            model = new_linear_model(self, given.truth, len(given.classes), least_types)
            return model, np.full(len(get_weights(model)), -1)
        old = start.model_
        conjunctions = linear_functions(old)[0].conjunctions
        model = new_linear_model(self, given.truth, len(given.classes), old.n_types, conjunctions)
        if (old.n_types is None, old.is_forest) != (model.n_types is None, model.is_forest):
            raise ValueError(
                "pass parents and edge_types exactly if the model was fitted with them"
            )
        codes = np.searchsorted(given.classes, start.classes_)
        return model, grow(old, model, codes)

    @property
    def _most_rounds(self) -> int:
        induction = settings_of(self.feature_induction)
        if induction is None:
            return super()._most_rounds
        return induction.rounds * min(induction.iterations, self.max_iter) + self.max_iter

    def _steps(self, given: TrainingSet, trainer: ParameterRounds) -> Steps:
        induction = settings_of(self.feature_induction)
        if induction is not None:
            return Inducer(self, given, induction, trainer).steps()
        whole = self._objective(self.model_, given)
        trainer.objective = whole.objective
        if self.trainer == "lbfgs":
            return self._by_lbfgs(whole, get_weights(self.model_), trainer, l1=self.l1)
        return sweep_to_the_end(self, whole, self._mini_batches(self.model_, given), trainer)

    def _mini_batches(self, model: Model, given: TrainingSet) -> Any:
        """Those of all instances, or of one shard after the other."""
        free = self._free(model, given)

        def make(truth: Truth, base: Base) -> MiniBatches:
            n_threads = thread_count(self.n_jobs)
            quick = quick_steps(model, truth, self._loss(truth), free, base, n_threads)
            return MiniBatches(model, truth, self._loss, free, base, quick)

        return mini_batches_of(given.truth, base_scores(model, given.batch), model, make)

    def _free(self, model: Model, given: TrainingSet) -> dict[str, npt.NDArray[np.bool_]] | None:
        """The entries of tables that have weights; None: all."""
        if not is_observed(self, given.batch.X):
            return None
        return free_entries(model, given.truth)
