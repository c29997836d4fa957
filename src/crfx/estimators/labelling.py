"""The base of labelling estimators: every kind of prediction from a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.argument_kinds import generator_of
from crfx.estimators.base import Estimator, check_fitted
from crfx.estimators.placement import placed
from crfx.explain.attribution import explained_labelling
from crfx.explain.importance import Importance, labelling_importance
from crfx.explanation import Explanation
from crfx.features.words import Numbering
from crfx.inference.feasibility import check_possible
from crfx.inference.max_product import checked_k
from crfx.inference.problem import Problem
from crfx.inference.sampling import checked_draws, drawn
from crfx.inference.spans import Span, SpanTags
from crfx.inputs.label_codes import (
    find_classes,
    flat_labels,
    known_codes,
    read_classes,
    scheme_labels,
    unknown_counts,
    warn_of_unknown,
    with_allowed,
)
from crfx.inputs.passed import Input, Passed, one_instance, read_input
from crfx.inputs.training_set import EvalMetric, EvalSettings, InputSettings, Watched
from crfx.inputs.weights import ClassWeight, weights_of
from crfx.metrics import token_accuracy
from crfx.model.building import check_table_size
from crfx.model.continuing import with_labels
from crfx.model.model import Model
from crfx.objectives.registry import ObjectiveSettings
from crfx.objectives.truth import Truth
from crfx.prediction.confidence import (
    Confidence,
    best_labellings,
    check_probability,
    confidences,
    edge_marginals,
    log_likelihoods,
    spans_of,
)
from crfx.prediction.metric import make_evaluator
from crfx.prediction.predictor import Predictor, Scored
from crfx.scores import IntArray
from crfx.trainers.monitor import Metric

_STRUCTURE = {"lengths": True, "parents": True, "edge_types": True}


class LabellingEstimator(Estimator):
    """Predictions from ``model_`` and ``classes_``.

    Methods take X as ``fit`` does: a list of (length, features) matrices, or one stacked matrix
    with ``lengths``.  A list gives lists, a stacked matrix gives stacked arrays.  ``n_rounds`` uses
    the first rounds of the model only.  ``allowed`` says, per instance and position (stacked: in
    one list), which labels there may be: None (any), one label, or a list or set of labels.
    """

    _is_called = "estimator that labels"
    class_weight: ClassWeight
    constraints: Any
    decode: str | None
    eval_metric: EvalMetric
    n_jobs: int | None
    order: int
    model_: Model
    classes_: npt.NDArray[Any]
    n_rounds_: int

    # The structure of instances belongs to the input: where metadata is routed, methods ask for it.
    __metadata_request__fit = _STRUCTURE
    __metadata_request__partial_fit = _STRUCTURE
    __metadata_request__predict = _STRUCTURE
    __metadata_request__score = _STRUCTURE

    def __sklearn_tags__(self) -> Any:
        """Return tags for X as a list of instances; one matrix needs ``lengths`` beside it."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        tags.input_tags.dict = tags.input_tags.string = True
        return tags

    @property
    def _predictor(self) -> Predictor:
        """The predictor of the fitted model."""
        check_fitted(self)
        return Scored(self.model_, self.decode, self.n_jobs)

    @placed
    def predict(
        self,
        X: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
        allowed: Any = None,
        min_probability: float | None = None,
    ) -> Any:
        """Label every position.

        The result is the best labelling, or with ``decode="marginal"`` the best label of each
        position.

        Parameters
        ----------
        X : list of (length, features) arrays, CSR matrices or data frames, one per instance
            As in ``fit``: also lists of dicts or texts, or one stacked matrix with ``lengths``.
        lengths : list of int, optional
            The number of rows of each instance of a stacked X.
        parents : list of (length,) int arrays, optional
            The parent of each position, -1 at a root, if instances are forests.
        edge_types : list of (length,) int arrays, optional
            The type of the edge that ends at each position, if edges have types.
        n_rounds : int, optional
            Use only the first rounds of a boosted model; None: all.
        allowed : list of lists, one entry per position, optional
            The labels a position may have: None (any), one label, or a list or set of them.
        min_probability : float, optional
            Return None (in arrays of objects) for a label that is less probable than this, by
            `predict_marginals`.

        Returns
        -------
        list of (length,) arrays, or one (rows,) array for a stacked X
            Labels, of ``classes_``.

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> X, y = [[["hot"], ["cold"]], [["cold"]]], [["sun", "rain"], ["rain"]]
        >>> crf = LinearCRF(n_jobs=1).fit(X, y)
        >>> [labels.tolist() for labels in crf.predict(X)]
        [['sun', 'rain'], ['rain']]
        """
        predictor = self._predictor
        check_probability(min_probability)
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        codes = predictor.labels(data.batch, n_rounds)
        if min_probability is None:
            return data.split(self.classes_[codes])
        p = predictor.marginals(data.batch, n_rounds)
        labels = self.classes_.astype(object)[codes]
        labels[p[np.arange(len(codes)), codes] < min_probability] = None
        return data.split(labels)

    # What ``fit`` passes on.

    @property
    def _objective_settings(self) -> ObjectiveSettings:
        """The settings of the objective, from the arguments."""
        return ObjectiveSettings.of(vars(self))

    def _input_settings(
        self, numbering: Numbering | None, classes: Any, *, grows: bool = False
    ) -> InputSettings:
        """Return how the training set is read, see `InputSettings`."""
        return InputSettings(
            self.order, self.constraints, self.class_weight, numbering, grows, classes
        )

    def _metric(
        self,
        watched: Watched | None,
        truth: Truth,
        problem: Callable[[], Problem] | None = None,
    ) -> Metric | None:
        """Return the metric of an evaluation set; ``problem`` returns its scores as they are now,
        if they are not to be computed anew.
        """
        if watched is None:
            return None
        settings = self._objective_settings

        def scored() -> Problem:
            model = self.model_ if self.eval_metric == "loss" else self._predictor.decoded
            return model.problem(watched.batch)

        def decode(problem: Problem) -> IntArray:
            return self._predictor.decode(problem)

        # Without edges, that of the training set may be another.
        structure = self.model_.structure(watched.batch)
        evaluator = make_evaluator(self.eval_metric, watched, truth, settings, structure, decode)
        current_problem = scored if problem is None else problem
        return Metric(lambda: evaluator.value(current_problem()), evaluator.larger_is_better)

    @property
    def _eval_settings(self) -> EvalSettings:
        """The settings of an evaluation set, from the arguments."""
        return EvalSettings(
            self.eval_metric, self.constraints, self.n_jobs, self.early_stopping_rounds
        )

    @placed
    def predict_marginals(
        self,
        X: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
        allowed: Any = None,
    ) -> Any:
        """Return the probability of every label at every position.

        Other libraries call this ``predict_proba``.

        Parameters
        ----------
        X : list of (length, features) arrays
            As in `predict`.
        lengths, parents, edge_types, n_rounds, allowed : optional
            As in `predict`.

        Returns
        -------
        list of (length, labels) arrays, or one (rows, labels) array for a stacked X
            Columns are in the order of ``classes_``; rows add up to 1.

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> X, y = [[["hot"], ["cold"]], [["cold"]]], [["sun", "rain"], ["rain"]]
        >>> crf = LinearCRF(n_jobs=1).fit(X, y)
        >>> crf.classes_.tolist()
        ['rain', 'sun']
        >>> crf.predict_marginals(X)[0].round(2)
        array([[0.39, 0.61],
               [0.69, 0.31]], dtype=float32)
        """
        predictor = self._predictor
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        return data.split(predictor.marginals(data.batch, n_rounds))

    @placed
    def predict_edge_marginals(
        self,
        X: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
        allowed: Any = None,
    ) -> Any:
        """Return the probability of every tuple of labels that an edge joins.

        Parameters
        ----------
        X : list of (length, features) arrays
            As in `predict`.
        lengths, parents, edge_types, n_rounds, allowed : optional
            As in `predict`.

        Returns
        -------
        list of (length, labels, ..., labels) arrays, or one such array of (rows, ...)
            At each position the table of the edge that ends there, oldest label first; 0 where no
            edge ends.

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> X, y = [[["hot"], ["cold"]], [["cold"]]], [["sun", "rain"], ["rain"]]
        >>> crf = LinearCRF(n_jobs=1).fit(X, y)
        >>> crf.predict_edge_marginals(X)[0][1].round(2)  # labels at positions 0 and 1
        array([[0.26, 0.13],
               [0.44, 0.17]], dtype=float32)
        """
        predictor = self._predictor.scored()
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        return data.split(edge_marginals(predictor, data.batch, n_rounds))

    @placed
    def predict_kbest(
        self,
        X: Any,
        k: int,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
        allowed: Any = None,
    ) -> list[list[tuple[npt.NDArray[Any], float]]]:
        """Return the most probable labellings of each instance.

        Parameters
        ----------
        X : list of (length, features) arrays
            As in `predict`.
        k : int
            The number of labellings; fewer are returned if constraints leave fewer.
        lengths, parents, edge_types, n_rounds, allowed : optional
            As in `predict`.

        Returns
        -------
        list of lists of (labels, probability)
            For each instance (length,) arrays of labels and their probability, best first.

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> X, y = [[["hot"], ["cold"]], [["cold"]]], [["sun", "rain"], ["rain"]]
        >>> crf = LinearCRF(n_jobs=1).fit(X, y)
        >>> [(labels.tolist(), round(p, 2)) for labels, p in crf.predict_kbest(X, k=2)[1]]
        [(['rain'], 0.65), (['sun'], 0.35)]
        """
        predictor = self._predictor.scored()
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        return [
            [(self.classes_[codes], p) for codes, p in best]
            for best in best_labellings(predictor, data.batch, checked_k(k), n_rounds)
        ]

    @placed
    def predict_confidence(
        self,
        X: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
        allowed: Any = None,
    ) -> list[Confidence]:
        """Return how probable the labelling of `predict` is.

        Parameters
        ----------
        X : list of (length, features) arrays
            As in `predict`.
        lengths, parents, edge_types, n_rounds, allowed : optional
            As in `predict`.

        Returns
        -------
        list of Confidence
            For each instance ``labels``, (length,) probabilities of each label, and ``labelling``,
            that of the whole.

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> X, y = [[["hot"], ["cold"]], [["cold"]]], [["sun", "rain"], ["rain"]]
        >>> crf = LinearCRF(n_jobs=1).fit(X, y)
        >>> confidence = crf.predict_confidence(X)[0]
        >>> confidence.labels.round(2).tolist(), round(confidence.labelling, 2)
        ([0.61, 0.69], 0.44)
        """
        predictor = self._predictor.scored()
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        return list(confidences(predictor, data.batch, n_rounds))

    @placed
    def predict_spans(
        self,
        X: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
        allowed: Any = None,
        min_probability: float | None = None,
    ) -> list[list[Span]]:
        """Return the spans in the labelling of `predict`, with their probabilities.

        The probability is that of a span with exactly these ends and this type: a sum over all
        labellings that have it.  Labels are in BIO, IOB1 or BIOES, read as conlleval does.

        Parameters
        ----------
        X : list of (length, features) arrays
            As in `predict`.
        lengths, parents, edge_types, n_rounds, allowed : optional
            As in `predict`.
        min_probability : float, optional
            Above 0: return instead all spans that are at least as probable; these may overlap.

        Returns
        -------
        list of lists of Span
            For each instance (start, stop, label, probability).

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> X, y = [[["in"], ["New"], ["York"]]], [["O", "B-LOC", "I-LOC"]]
        >>> crf = LinearCRF(n_jobs=1).fit(X, y)
        >>> [(span.start, span.stop, span.label) for span in crf.predict_spans(X)[0]]
        [(1, 3, 'LOC')]
        """
        predictor = self._predictor.scored()
        tags = SpanTags.of(self.classes_)
        check_probability(min_probability, above=0.0)
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        return spans_of(predictor, data.batch, tags, min_probability, n_rounds)

    def sample(
        self,
        X: Any,
        n: int = 1,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
        random_state: Any = 0,
        allowed: Any = None,
    ) -> Any:
        """Draw labellings from the model.

        Parameters
        ----------
        X : list of (length, features) arrays
            As in `predict`.
        n : int, default 1
            The number of labellings of each instance.
        lengths, parents, edge_types, n_rounds, allowed : optional
            As in `predict`.
        random_state : int, RandomState or None, default 0
            The seed; the same seed gives the same draws for any number of threads.

        Returns
        -------
        list of (n, length) arrays, or one (n, rows) array for a stacked X
            Labels, of ``classes_``.

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> X, y = [[["hot"], ["cold"]], [["cold"]]], [["sun", "rain"], ["rain"]]
        >>> crf = LinearCRF(n_jobs=1).fit(X, y)
        >>> [labels.shape for labels in crf.sample(X, n=5)]
        [(5, 2), (5, 1)]
        """
        predictor = self._predictor.scored()
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        problem = predictor.problem(data.batch, n_rounds)
        seed = random_state
        if not isinstance(seed, int | np.integer):
            seed = generator_of(random_state).randint(2**31 - 1)
        codes = drawn(problem, *checked_draws(n, int(seed)), self.n_jobs)
        return data.split(self.classes_[codes], axis=1)

    @placed
    def log_likelihood(
        self,
        X: Any,
        y: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
        allowed: Any = None,
    ) -> npt.NDArray[np.float64]:
        """Return log p(y | X) of each instance.

        Parameters
        ----------
        X : list of (length, features) arrays
            As in `predict`.
        y : list of lists of labels
            As in ``fit``; unknown labels (None) are summed over.
        lengths, parents, edge_types, n_rounds, allowed : optional
            As in `predict`.

        Returns
        -------
        (instances,) array of float64
            -inf if constraints or ``allowed`` forbid y, or if y has a label that the model was not
            trained on; a warning names that label.

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> X, y = [[["hot"], ["cold"]], [["cold"]]], [["sun", "rain"], ["rain"]]
        >>> crf = LinearCRF(n_jobs=1).fit(X, y)
        >>> crf.log_likelihood(X, y).round(2)
        array([-0.83, -0.43])
        """
        predictor = self._predictor.scored()
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        effect = "the log-likelihood of their instances is -inf"
        _, codes, is_strange = self._read_labels(y, data, effect)
        return log_likelihoods(predictor, data.batch, codes, is_strange, n_rounds)

    def score(
        self,
        X: Any,
        y: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        sample_weight: Any = None,
        allowed: Any = None,
    ) -> float:
        """Return the token accuracy over the positions whose label is known.

        Parameters
        ----------
        X : list of (length, features) arrays
            As in `predict`.
        y : list of lists of labels
            As in ``fit``; positions with None do not count.  A label that the model was not trained
            on counts as wrong, and a warning names it.
        lengths, parents, edge_types, allowed : optional
            As in `predict`.
        sample_weight : (instances,) numbers, optional
            Weights of instances: each position counts with that of its instance.

        Returns
        -------
        float
            From 0 to 1.

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> X, y = [[["hot"], ["cold"]], [["cold"]]], [["sun", "rain"], ["rain"]]
        >>> crf = LinearCRF(n_jobs=1).fit(X, y)
        >>> crf.score(X, y)
        1.0
        """
        data = self._input(X, lengths, parents, edge_types, None, allowed)
        weights = weights_of(sample_weight, data)
        return token_accuracy(*compared_labels(self, data, y), sample_weight=weights)

    def explain(
        self,
        X_i: Any,
        *,
        parents: Any = None,
        edge_types: Any = None,
        allowed: Any = None,
        positions: Any = None,
    ) -> Explanation:
        """Return why one instance is labelled as it is.

        Scores and probabilities are those of `predict_marginals`.  The messages take O(length *
        labels^(order+1)) in NumPy; docs/explaining.md names the methods and what they cost.

        Parameters
        ----------
        X_i : (length, features) array, or a list of dicts or texts
            One instance: an entry of the list that `predict` takes.
        parents, edge_types, allowed : optional
            Those of the one instance: entries of the lists that `predict` takes.
        positions : list of int, optional
            The positions to explain, from 0 on; None: all.

        Returns
        -------
        crfx.explanation.Explanation

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> crf = LinearCRF().fit([[["hot"], ["cold"]], [["cold"]]], [["sun", "rain"], ["rain"]])
        >>> explanation = crf.explain([["hot"], ["cold"]])
        >>> explanation.method, explanation.predicted.tolist()
        ('weight × value', ['sun', 'rain'])
        >>> explanation.positions[0].strongest(n=1)[0].feature
        'hot'
        """
        predictor = self._predictor.scored()
        instance = one_instance(X_i, "explain")
        parents, edge_types, allowed = (
            None if value is None else [value] for value in (parents, edge_types, allowed)
        )
        data = self._input(instance, None, parents, edge_types, None, allowed)
        names = self.columns_.name_of()
        return explained_labelling(predictor, data.batch, positions, self.classes_, names)

    def importance(self) -> Importance:
        """Return how much each feature matters to the whole model, for nodes and for edges.

        For trees it is the share of the gain of their splits, for weights how far they separate the
        labels, for tables the size of each transition's score.  A base model (``init_model``) is
        not counted.

        Returns
        -------
        Importance
            ``node`` and ``edge``: numbers by name, the largest first.

        Examples
        --------
        >>> from crfx import LinearCRF
        >>> crf = LinearCRF().fit([[["hot"], ["cold"]], [["cold"]]], [["sun", "rain"], ["rain"]])
        >>> importance = crf.importance()
        >>> list(importance.node), list(importance.edge)
        (['cold', 'hot'], ['sun -> rain'])
        """
        check_fitted(self)
        return labelling_importance(self.model_, self.columns_.name_of(), self.classes_.tolist())

    @property
    def transitions_(self) -> npt.NDArray[np.float32] | None:
        """The shared edge table, (labels, ..., labels), one per type where edges have types.

        ``transitions_[a, b]``: label a is followed by label b.  None where edges are no tables.
        """
        check_fitted(self)
        tables = self.model_.edge if self.model_.edge_family == "table" else None
        return None if tables is None else tables.tables["edge"]

    def _input(
        self,
        X: Any,
        lengths: Any,
        parents: Any,
        edge_types: Any,
        n_rounds: int | None = None,
        allowed: Any = None,
    ) -> Input:
        """Read what is to be labelled, and check that the model can label it."""
        check_fitted(self)
        data = read_input(Passed(X, None, lengths, parents, edge_types), self.columns_)
        self.model_.check_structure(data.batch)
        check_rounds(self, n_rounds)
        data = with_allowed(data, allowed, self.classes_)
        # Checked here, since inference may see parts of the instances and count within these.
        structure, n_labels = self.model_.structure(data.batch), len(self.classes_)
        check_possible(data.batch, structure, self.model_.mask, None, n_labels, self.n_jobs)
        return data

    def _read_labels(
        self, y: Any, data: Input, effect: str
    ) -> tuple[list[Any], IntArray, npt.NDArray[np.bool_]]:
        """Return (rows,) the true labels in the scheme of the constraints, their codes, and
        whether the model was not trained on them; a warning names these and their ``effect``.
        """
        labels = scheme_labels(self.constraints, flat_labels(y, data), data)
        codes, is_strange = known_codes(labels, self.classes_)
        warn_of_unknown(unknown_counts(labels, is_strange), "y", effect)
        return labels, codes, is_strange

    def _take_labels(self, start: LabellingEstimator, codes: IntArray) -> None:
        """Move what belongs to the parameters after the model has got labels that ``start`` has
        not: label k of ``start`` is ``codes[k]`` here.
        """


def read_to_label(crf: LabellingEstimator, X: Any, **structure: Any) -> Input:
    """Read what a fitted estimator is to label; ``structure``: lengths, parents, edge_types."""
    return crf._input(X, *(structure.get(name) for name in _STRUCTURE))


def compared_labels(
    crf: LabellingEstimator, data: Input, y: Any
) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
    """Return the labels of every instance as metrics take them: the true ones, in the scheme of
    the constraints and None where unknown, and those that the estimator predicts.
    """
    codes = crf._predictor.labels(data.batch)
    labels, _, _ = crf._read_labels(y, data, "they count as wrong")
    true = np.empty(len(labels), dtype=object)
    true[:] = labels
    return data.by_instance(true), data.by_instance(crf.classes_[codes])


def base_model(crf: LabellingEstimator) -> Model:
    """Return the model of a fitted estimator that can be the base of another one."""
    return crf._predictor.base_model()


def with_classes(crf: LabellingEstimator, classes: Any) -> LabellingEstimator:
    """Return a copy of a fitted estimator that knows these labels too, if it does not already."""
    before = crf.classes_.tolist()
    if classes is None or not set(read_classes(classes)) - set(before):
        return crf
    distinct, model = find_classes([*before, *read_classes(classes)]), crf.model_
    place_of = {label: code for code, label in enumerate(distinct.tolist())}
    codes = np.array([place_of[label] for label in before])
    has_tables = model.edge_family is not None or crf.constraints is not None
    check_table_size(model.order, len(distinct), model.n_types, has_tables=has_tables)
    wider = copy(crf)
    wider.classes_, wider.model_ = distinct, with_labels(model, codes, len(distinct))
    wider._take_labels(crf, codes)
    return wider


def check_rounds(crf: LabellingEstimator, n_rounds: int | None) -> None:
    """Raise ValueError unless the model has so many rounds."""
    if n_rounds is None:
        return
    if not hasattr(crf, "n_rounds_"):
        raise ValueError(f"n_rounds is given, but a {type(crf).__name__} is not built in rounds")
    whole = isinstance(n_rounds, int | np.integer) and not isinstance(n_rounds, bool)
    if not whole or not 0 <= n_rounds <= crf.n_rounds_:
        raise ValueError(
            f"n_rounds is {n_rounds!r}: the model has {crf.n_rounds_} rounds, so it must be a "
            f"whole number from 0 to {crf.n_rounds_}"
        )
