"""HiddenUnitCRF: hidden units between features and labels (van der Maaten et al. 2011)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
import numpy.typing as npt

from crfx.estimators.arguments import PERCEPTRONS, check_arguments
from crfx.estimators.base import check_fitted, drawn_seed
from crfx.estimators.labelling import LabellingEstimator
from crfx.estimators.placement import placed
from crfx.estimators.session import can_resume, fitting, read_warm_start
from crfx.estimators.support import check_supported
from crfx.features.matrix import is_sparse
from crfx.features.words import Numbering
from crfx.inputs.passed import Passed
from crfx.inputs.training_set import EvalMetric, TrainingSet, read_eval_set, read_training_set
from crfx.inputs.weights import ClassWeight
from crfx.model.building import Parts, has_parts, new_hidden_model
from crfx.model.flat_parameters import copied, moved, places_with_labels
from crfx.model.model import Model
from crfx.objectives.truth import Truth
from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction
from crfx.prediction.predictor import Predictor, Scored, Voted
from crfx.scores import IntArray
from crfx.threads import one_blas_thread, thread_count
from crfx.trainers.base import Training
from crfx.trainers.callbacks import Callback, listed_callbacks
from crfx.trainers.epochs import EpochSettings, HiddenEpochs
from crfx.trainers.lbfgs import LBFGS, LBFGSSettings, grown_state
from crfx.trainers.parametric import ParameterTrainer, ParametricTask
from crfx.trainers.pretraining import pretrain

USUAL_DROPOUT = 0.2
"""The default share of dense features that a step leaves out."""


class HiddenUnitCRF(LabellingEstimator):
    """A conditional random field whose node scores come from hidden units.

    The score of label k is c_k + sum_h log(1 + exp(b_h + w_h x + V_hk)): binary units, summed out
    exactly (van der Maaten, Welling and Saul 2011).  Scale features to about -1 to 1.

    Parameters
    ----------
    n_hidden : int
        Hidden units; 0 with ``skip`` makes it a linear model.
    trainer : "sgd", "lbfgs", "perceptron" or "large_margin"
        Stochastic gradient descent and L-BFGS raise the likelihood, l2 |w|^2 taken off; the
        perceptrons compare the truth with the best labelling, and probabilities of their models
        mean little.
    l2 : float, optional
        Penalty on all parameters; None: 1 for "lbfgs", else 0.
    margin : float
        By which the truth is to win, per wrong label; of "large_margin".
    sweeps : int
        Passes over the instances, of all trainers but "lbfgs".
    burn_in : int, optional
        Parameters are averaged over the ends of epochs from this one on; None: from half of
        ``sweeps`` on for "sgd", from a tenth for perceptrons.
    batch_size : int
        Instances a step.
    step : float, optional
        Size of the first step; later ones are smaller.  None: found by trials on a part of the
        data.
    block_steps : "equal" or "size"
        Whether ``step`` is that of all parameters, or of the weights between features and units
        alone, and others take longer ones, the fewer there are of a kind the longer, as in the
        paper.  On long sequences that throws the few about.
    dropout : float, optional
        Share of the features that is left out of every step, at random, of all trainers but
        "lbfgs".  It keeps the model from learning its training data by heart.  None: 0.2 where X is
        dense; 0 where it is sparse, since there every feature that is left out says much.
    max_iter, tol
        Iterations of "lbfgs" at most; it ends once ten of them improve the objective by less than
        ``tol`` of it; below 1e-8, the last ones in double precision.
    activation : "softplus", "relu", "tanh" or "sigmoid"
        Units that are summed out; units that are maximised over, max(0, .) in place of
        log(1 + exp(.)); or units that are functions of their input, c_k + sum_h V_hk g(b_h + w_h x)
        (conditional neural fields, Peng, Bo and Xu 2010).
    skip : bool
        Add weights from features straight to labels.
    herding : bool
        Let every epoch after ``burn_in`` vote on each label, instead of averaging parameters
        (conditional herding, Gelfand et al. 2010); of the perceptrons.  `predict_marginals` then
        gives shares of votes.
    pretrain : "discriminative", "contrastive" or None
        Begin with units that were trained without edges, or by contrastive divergence on features
        and labels (dense X).
    pretrain_sweeps : int
        Epochs of pretraining.
    edges : "table" or None
        Edge scores: one table (one per edge type), or none: then positions are independent.
    min_count, n_hashed
        As in `LinearCRF`, for dicts, texts and templates.
    early_stopping_rounds : int, optional
        Stop once ``eval_metric`` has not improved for so many epochs or iterations; the best
        parameters are restored.  Epochs before ``burn_in`` are watched as they are, those after it
        averaged; L-BFGS may stand still for ten iterations before units begin to differ, so allow
        twenty.
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
    decode : "viterbi", "marginal", "joint" or None
        The best labelling, units summed out; the best label of each position; the best labelling
        together with the best states of the units; None: "joint" for perceptrons, which then learn
        with it too, "viterbi" for the others.  Where labels are judged one by one, "marginal" has
        the most right in expectation.  Probabilities, samples and `predict_kbest` are of the
        model with units summed out, whatever ``predict`` does.
    eval_metric : "loss", "token_accuracy", "span_f1" or callable
        As in `LinearCRF`.
    n_jobs : int, optional
        Threads; None: all cores.  Parameters do not depend on it.  Epochs use more than one where
        mini-batches are large enough (docs/speed.md).
    random_state : int, RandomState or None
        Seed of the first weights, the order of instances, and dropout.
    verbose : int
        1: a progress bar on a terminal; elsewhere a line every ten seconds, to the logger "crfx"
        (level INFO) if logging is set up, else to standard error.

    Attributes
    ----------
    classes_, transitions_, n_features_in_, feature_names_in_, best_iteration_, n_iter_
    history_ : dict of lists, one entry per epoch or iteration
        ``objective`` (penalty included), ``seconds``, and ``eval_metric`` where it applies.

    Notes
    -----
    An ``init_model`` that is a HiddenUnitCRF of the same shape is trained on, for ``sweeps`` or
    ``max_iter`` more; with the same trainer and arguments, ``burn_in`` among them, as if it had
    been one longer run.  An epoch that is interrupted is repeated when training resumes.

    Examples
    --------
    >>> import numpy as np
    >>> from crfx import HiddenUnitCRF
    >>> random = np.random.default_rng(0)
    >>> X = [random.uniform(-1, 1, (5, 1)) for _ in range(40)]
    >>> y = [np.where(abs(x[:, 0]) < 0.5, "near", "far") for x in X]  # no linear score can tell
    >>> crf = HiddenUnitCRF(20, trainer="lbfgs", l2=0.01, random_state=0, n_jobs=1).fit(X, y)
    >>> crf.predict([np.array([[-0.9], [0.0], [0.9]])])[0].tolist()
    ['far', 'near', 'far']
    """

    n_iter_: int
    votes_: list[npt.NDArray[np.float32]] | None = None
    """The parameters at the end of every epoch that votes (herding); else None."""

    def __init__(
        self,
        n_hidden: int = 100,
        trainer: Literal["sgd", "lbfgs", "perceptron", "large_margin"] = "sgd",
        l2: float | None = None,
        margin: float = 1.0,
        sweeps: int = 50,
        burn_in: int | None = None,
        batch_size: int = 1,
        step: float | None = None,
        block_steps: Literal["equal", "size"] = "equal",
        dropout: float | None = None,
        max_iter: int = 500,
        tol: float = 1e-5,
        activation: Literal["softplus", "relu", "tanh", "sigmoid"] = "softplus",
        skip: bool = False,
        herding: bool = False,
        pretrain: Literal["discriminative", "contrastive"] | None = None,
        pretrain_sweeps: int = 10,
        edges: Literal["table"] | None = "table",
        min_count: int = 1,
        n_hashed: int | None = None,
        early_stopping_rounds: int | None = None,
        order: int = 1,
        start_end: bool = True,
        objective: Any = "likelihood",
        task_loss: Any = None,
        class_weight: ClassWeight = None,
        constraints: Any = None,
        decode: Literal["viterbi", "marginal", "joint"] | None = None,
        eval_metric: EvalMetric = "loss",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_hidden = n_hidden
        self.trainer = trainer
        self.l2 = l2
        self.margin = margin
        self.sweeps = sweeps
        self.burn_in = burn_in
        self.batch_size = batch_size
        self.step = step
        self.block_steps = block_steps
        self.dropout = dropout
        self.max_iter = max_iter
        self.tol = tol
        self.activation = activation
        self.skip = skip
        self.herding = herding
        self.pretrain = pretrain
        self.pretrain_sweeps = pretrain_sweeps
        self.edges = edges
        self.min_count = min_count
        self.n_hashed = n_hashed
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
        """Train the parameters.

        Features that are missing (NaN, or absent from CSR) count as 0.

        Parameters
        ----------
        X, y, lengths, parents, edge_types, sample_weight, eval_set, classes, callbacks, allowed
            As in `GBCRF.fit`.
        init_model : fitted estimator, or the path of a model file, optional
            One of the same kind and shape is where the parameters start; any other stays fixed as
            the base model.

        Returns
        -------
        The estimator itself.
        """
        check_arguments(self)
        start = read_warm_start(init_model, classes, self.constraints)
        is_continued = start.is_a(HiddenUnitCRF) and self._has_shape_of(start.model)
        passed = Passed(X, y, lengths, parents, edge_types, sample_weight, allowed)
        numbering = Numbering(1 if is_continued else self.min_count, self.n_hashed)
        settings = self._input_settings(numbering, start.classes)
        data = read_training_set(passed, settings, start.known)
        callbacks, seed = listed_callbacks(callbacks), drawn_seed(self.random_state)
        check_supported(self, data.batch, callbacks)
        if is_continued:
            model, votes = copied(start.model), list(start.estimator.votes_ or ())
        else:
            model, votes = self._new_model(data, seed, start.base_model()), []
        model.mask = data.mask
        watched = read_eval_set(eval_set, data, model, self._eval_settings)
        is_new = not is_continued or start.standing is None
        with (
            fitting(
                self,
                model,
                start.continued_if(is_continued and can_resume(start, self)),
                callbacks,
                self._most_rounds,
                keeps_state=True,
                classes_=data.classes,
                columns_=data.columns,
                votes_=votes if self.herding else None,
            ) as session,
            one_blas_thread(),
        ):
            trainer = self._trainer(data.truth, seed, session.n_rounds, start.to_go, is_new=is_new)
            session.run(trainer, self._metric(watched, data.truth))
        return self

    def _take_labels(self, start: Any, codes: IntArray) -> None:
        origin = places_with_labels(self.model_, start.model_, codes)
        standing = start.training_.frozen().standing
        if standing is not None:
            standing = grown_state(standing, origin)
        self.training_ = Training(start.training_.to_go, standing=standing)
        if start.votes_ is not None:
            self.votes_ = [moved(values, origin) for values in start.votes_]

    # What the arguments ask of the layers below.

    @property
    def _parts(self) -> Parts:
        has_constraints = self.constraints is not None
        return Parts(self.order, self.edges, self.start_end, has_constraints=has_constraints)

    def _has_shape_of(self, model: Any) -> bool:
        """Return whether a model with hidden units has the shape that the arguments ask for."""
        node = model.node.shape
        asked = self.n_hidden, self.activation, self.skip
        same_units = (node.n_hidden, node.activation, node.skip) == asked
        return has_parts(model, self._parts) and same_units

    def _new_model(self, data: TrainingSet, seed: int, base: Model | None = None) -> Model:
        n_hidden, skip = int(self.n_hidden), bool(self.skip)
        n_features, n_labels = data.columns.n, len(data.classes)
        shape = HiddenShape(n_features, n_hidden, n_labels, self.activation, skip)
        return new_hidden_model(self._parts, shape, data.truth, seed, base)

    def _task(self, truth: Truth) -> ParametricTask:
        bind = self._objective_settings.bind_for_trainer
        return ParametricTask(truth, bind, self._value("l2"), n_jobs=self.n_jobs)

    def _trainer(
        self, truth: Truth, seed: int, n_rounds: int, to_go: int | None, *, is_new: bool
    ) -> ParameterTrainer:
        # Perceptrons learn with the decoder that they are used with.
        model = self._scored.decoded if self._is_perceptron else self.model_
        task = replace(self._task(truth), decode=self._scored.decode)
        settings = self._epoch_settings(truth, seed, n_rounds)
        trainer: ParameterTrainer
        if self.trainer == "lbfgs":
            is_fresh = is_new and model.base is None
            trainer = LBFGS(
                model, task, LBFGSSettings(self.max_iter, self.tol, 0.0, to_go, is_fresh)
            )
        else:
            trainer = HiddenEpochs(model, task, settings)
            trainer.votes = self.votes_
        if is_new and self.pretrain is not None:
            arguments = self.model_, task, settings, self.pretrain, self.pretrain_sweeps
            trainer.before = lambda: pretrain(*arguments)
        return trainer

    def _epoch_settings(self, truth: Truth, seed: int, n_epochs: int) -> EpochSettings:
        dropout = self.dropout
        if dropout is None:
            dropout = 0.0 if is_sparse(truth.batch.X) else USUAL_DROPOUT
        return EpochSettings(
            trainer=self.trainer,
            n_epochs=n_epochs,
            batch_size=self.batch_size,
            burn_in=self._value("burn_in"),
            seed=seed,
            step=self.step,
            n_threads=thread_count(self.n_jobs),
            block_steps=self.block_steps,
            dropout=dropout,
        )

    @property
    def _is_perceptron(self) -> bool:
        return self.trainer in PERCEPTRONS

    @property
    def _decoder(self) -> str:
        usual = "viterbi"
        if self._is_perceptron and self.activation in ("softplus", "relu"):
            usual = "joint"
        return usual if self.decode is None else self.decode

    @property
    def _scored(self) -> Scored:
        """The predictor by the scores of the model, votes aside."""
        check_fitted(self)
        joint = maximised(self.model_) if self._decoder == "joint" else None
        return Scored(self.model_, self._decoder, self.n_jobs, joint)

    @property
    def _predictor(self) -> Predictor:
        scored = self._scored
        return scored if self.votes_ is None else Voted(scored, self.votes_)


def maximised(model: Model) -> Model:
    """Return a model with the same parameters whose units are maximised over."""
    node = cast("HiddenUnitFunction", model.node)
    return replace(model, node=node.maximised)
