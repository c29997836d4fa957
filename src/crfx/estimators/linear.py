"""LinearCRF: potentials linear in the features (Lafferty, McCallum and Pereira 2001)."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.estimators.arguments import check_arguments
from crfx.estimators.base import check_fitted, drawn_seed
from crfx.estimators.labelling import LabellingEstimator
from crfx.estimators.placement import placed
from crfx.estimators.session import WarmStart, can_resume, fitting, read_warm_start
from crfx.estimators.support import check_supported
from crfx.features.conjunctions import readable
from crfx.features.matrix import is_sparse
from crfx.features.words import Numbering
from crfx.inputs.passed import Passed
from crfx.inputs.training_set import EvalMetric, InputSettings, read_eval_set, read_training_set
from crfx.inputs.weights import BALANCED, ClassWeight
from crfx.model.building import Parts, check_parts, has_parts, new_linear_model
from crfx.model.flat_parameters import (
    get_weights,
    grown_linear_model,
    keeps_places,
    linear_functions,
    moved,
    n_parameters,
    set_weights,
)
from crfx.model.model import Model
from crfx.objectives.truth import Truth
from crfx.scores import IntArray
from crfx.serialisation.linear_json import write_json
from crfx.threads import one_blas_thread, thread_count
from crfx.trainers.base import Training
from crfx.trainers.callbacks import Callback, listed_callbacks
from crfx.trainers.epochs import EpochSettings, LinearEpochs, PartialEpochs, partial_epoch
from crfx.trainers.induction import FeatureInduction, Induction, check_inducible, settings_of
from crfx.trainers.lbfgs import LBFGS, LBFGSSettings
from crfx.trainers.parametric import ParameterTrainer, ParametricTask
from crfx.trainers.sgd import AveragedParameters


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
        Iterations of "lbfgs" at most; those between rounds of ``feature_induction`` not counted.
        A ConvergenceWarning says where they were too few; ``n_iter_`` is how many there were.
    tol : float
        "lbfgs" ends once ten iterations improve the objective by less than this share of it.  Below
        1e-8, its last iterations are in double precision.
    sweeps : int
        Passes over the instances, of all trainers but "lbfgs".
    burn_in : int, optional
        Weights are averaged over all steps from this epoch on; None: from the start for
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
        raise the likelihood most (McCallum 2003; `crfx.FeatureInduction` has more settings).  By
        "lbfgs" on sparse X; ``predict`` takes X as before.
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
        1: a progress bar on a terminal; elsewhere a line every ten seconds, to the logger "crfx"
        (level INFO) if logging is set up, else to standard error.

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
    training, by a `crfx.Checkpoint`, resumes as if it had never been interrupted: iterations,
    epochs and rounds of induction count on.  One whose training has ended lends its weights.

    Examples
    --------
    >>> from crfx import LinearCRF
    >>> X = [[["Ada", "capital"], ["met"], ["Bo", "capital"]], [["Bo", "capital"], ["left"]]]
    >>> y = [["PER", "O", "PER"], ["PER", "O"]]
    >>> crf = LinearCRF(n_jobs=1).fit(X, y)
    >>> crf.predict([[["Cy", "capital"], ["left"]]])[0].tolist()
    ['PER', 'O']
    """

    n_iter_: int
    _partial: PartialEpochs | None = None
    """What a call of ``partial_fit`` leaves to the next."""

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
        """Train the weights.

        Features that are missing (NaN, or absent from CSR) count as 0.

        Parameters
        ----------
        X, y, lengths, parents, edge_types, sample_weight, eval_set, classes, callbacks, allowed
            As in `GBCRF.fit`.
        init_model : fitted estimator, or the path of a model file, optional
            One of the same kind and shape is where the weights start; any other stays fixed as the
            base model.

        Returns
        -------
        The estimator itself.
        """
        check_arguments(self)
        start = read_warm_start(init_model, classes, self.constraints)
        is_same_class = type(start.estimator) is type(self)
        is_continued = is_same_class and has_parts(start.model, self._parts)
        passed = Passed(X, y, lengths, parents, edge_types, sample_weight, allowed)
        settings = self._settings_of_input(start, is_continued)
        data = read_training_set(passed, settings, start.known)
        callbacks = listed_callbacks(callbacks)
        check_supported(self, data.batch, callbacks)
        if self.feature_induction is not None:
            check_inducible(data.batch.X)
        resumes = False
        if is_continued:
            old = start.model
            model, origin = self._grown(old, start.estimator.classes_, data.truth)
            set_weights(model, moved(get_weights(old), origin))
            names = ("l1", "feature_induction")
            resumes = keeps_places(origin, old, model) and can_resume(start, self, names)
        else:
            model = self._new_model(data.truth, start.base_model())
        model.mask = data.mask
        watched = read_eval_set(eval_set, data, model, self._eval_settings)
        with (
            fitting(
                self,
                model,
                start.continued_if(resumes),
                callbacks,
                self._most_rounds,
                classes_=data.classes,
                columns_=data.columns,
                _partial=None,
            ) as session,
            one_blas_thread(),
        ):
            trainer = self._trainer(model, data.truth, session.n_rounds, start.to_go)
            session.run(trainer, self._metric(watched, data.truth))
        return self

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
    ) -> Self:
        """Train for one epoch on more instances, by a trainer that works in epochs.

        Dicts and texts may bring new features.  A call counts as an epoch: ``l2`` is shared out
        over its instances, and steps become smaller from call to call, so pass many instances at a
        time.

        Parameters
        ----------
        X, y, lengths, parents, edge_types, sample_weight, allowed
            As in `GBCRF.fit`.
        classes : list of labels, optional
            Labels to know beside those of ``y``.  After the first call, a label that is new must be
            named here, in this call or in an earlier one.

        Returns
        -------
        The estimator itself.

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> crf = LinearCRF(trainer="sgd", random_state=0, n_jobs=1)
        >>> crf = crf.partial_fit([[["hot"], ["cold"]]], [["sun", "rain"]])
        >>> crf.partial_fit([[["cold"]]], [["rain"]]).n_iter_
        2
        """
        check_arguments(self)
        if self.trainer == "lbfgs":
            raise ValueError('partial_fit needs a trainer that sweeps: "sgd", "perceptron", ...')
        if self.class_weight == BALANCED:
            raise ValueError(
                'class_weight is "balanced", but partial_fit sees a part of the labels at a time: '
                "pass a dict"
            )
        start = WarmStart(self if hasattr(self, "model_") else None, classes)
        is_continued = start.estimator is not None
        if is_continued:
            check_parts(self.model_, self._parts)
        passed = Passed(X, y, lengths, parents, edge_types, sample_weight, allowed)
        settings = self._settings_of_input(start, is_continued)
        data = read_training_set(passed, settings, start.known)
        check_supported(self, data.batch)
        begin = time.perf_counter()
        if is_continued:
            model, origin = self._grown(self.model_, self.classes_, data.truth)
            n_done, history, before = self.n_iter_, self.history_, self._partial
            if before is None:  # after ``fit`` or ``load`` the weights are all there is
                before = PartialEpochs(AveragedParameters(get_weights(self.model_)))
        else:
            model = self._new_model(data.truth)
            origin, n_done, history = np.full(n_parameters(model), -1), 0, {}
            before = PartialEpochs(AveragedParameters(np.zeros(0)))
        model.mask = data.mask
        model.use_threads(thread_count(self.n_jobs))
        task = self._task(data.truth)
        value, partial = partial_epoch(model, task, self._epoch_settings(1), before, origin, n_done)
        for name, entry in (("objective", value), ("seconds", time.perf_counter() - begin)):
            history.setdefault(name, []).append(entry)
        self.classes_, self.columns_, self.model_ = data.classes, data.columns, model
        self._partial, self.training_, self.history_ = partial, Training(), history
        self.n_iter_, self.best_iteration_ = n_done + 1, n_done
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
        conjunctions = linear_functions(self.model_)[0].conjunctions
        return (
            []
            if conjunctions is None
            else readable(conjunctions.sets(), self.columns_.known_names())
        )

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON for other languages, whole or not at all.

        ``load`` does not read it, and it holds no state of training: use ``save`` for that.
        docs/model-file.md describes the format, with a reader of forty lines.

        Parameters
        ----------
        path : str or path
            The file to write.

        Examples
        --------
        >>> import json, tempfile
        >>> from pathlib import Path
        >>> from crfx import LinearCRF
        >>> crf = LinearCRF(n_jobs=1).fit([[["hot"], ["cold"]]], [["sun", "rain"]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     crf.to_json(Path(folder) / "weather.json")
        ...     json.loads((Path(folder) / "weather.json").read_text())["labels"]
        ['rain', 'sun']
        """
        check_fitted(self)
        write_json(self._saved(), path)

    def _take_labels(self, start: LabellingEstimator, codes: IntArray) -> None:
        self._partial, self.training_ = None, Training(self.training_.to_go)

    @property
    def _most_rounds(self) -> int:
        induction = settings_of(self.feature_induction)
        if induction is None:
            return super()._most_rounds
        return induction.rounds * min(induction.iterations, self.max_iter) + self.max_iter

    # What the arguments ask of the layers below.

    @property
    def _parts(self) -> Parts:
        has_constraints = self.constraints is not None
        return Parts(self.order, self.edges, self.start_end, has_constraints=has_constraints)

    def _settings_of_input(self, start: WarmStart, is_continued: bool) -> InputSettings:
        grows = is_continued and start.model.base is None
        min_count = 1 if is_continued and not grows else self.min_count
        return self._input_settings(Numbering(min_count, self.n_hashed), start.classes, grows=grows)

    def _observed(self, truth: Truth) -> bool:
        """Return whether weights exist only for pairs that occur in training."""
        return self.features == "observed" or (self.features == "auto" and is_sparse(truth.batch.X))

    def _new_model(self, truth: Truth, base: Model | None = None) -> Model:
        return new_linear_model(self._parts, truth, observed=self._observed(truth), base=base)

    def _grown(self, old: Model, classes: npt.NDArray[Any], truth: Truth) -> tuple[Model, IntArray]:
        """Return a model for the data with all that ``old`` has; see `grow_linear`."""
        observed = self._observed(truth)
        return grown_linear_model(old, classes, self._parts, truth, observed=observed)

    def _task(self, truth: Truth) -> ParametricTask:
        bind, observed = self._objective_settings.bind_for_trainer, self._observed(truth)
        return ParametricTask(truth, bind, self._value("l2"), observed, self.n_jobs)

    def _trainer(
        self, model: Model, truth: Truth, n_rounds: int, to_go: int | None
    ) -> ParameterTrainer:
        task, induction = self._task(truth), settings_of(self.feature_induction)
        if self.trainer != "lbfgs":
            return LinearEpochs(model, task, self._epoch_settings(n_rounds))
        settings = LBFGSSettings(self.max_iter, self.tol, self.l1, to_go)
        if induction is not None:
            return Induction(model, task, settings, induction)
        return LBFGS(model, task, settings)

    def _epoch_settings(self, n_epochs: int) -> EpochSettings:
        return EpochSettings(
            trainer=self.trainer,
            n_epochs=n_epochs,
            batch_size=self._value("batch_size"),
            burn_in=self._value("burn_in"),
            seed=drawn_seed(self.random_state),
            step=self._value("step"),
            halves=self.trainer == "sgd",
            n_threads=thread_count(self.n_jobs),
        )
