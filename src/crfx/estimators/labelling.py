"""What all labelling estimators share: predictions of every kind from a fitted model."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from crfx.estimators.base import check_fitted, generator_of
from crfx.estimators.confidence import check_probability
from crfx.estimators.explaining import ExplainingEstimator
from crfx.estimators.inputs import Input, flat_labels, weights_of
from crfx.estimators.placement import placed
from crfx.estimators.scheme_labels import scheme_labels
from crfx.estimators.unknown_labels import known_codes, unknown_counts, warn_of_unknown
from crfx.inference.clamping import clamped
from crfx.inference.feasibility import impossible_rows
from crfx.inference.problem import Problem
from crfx.inference.sampling import checked_draws, drawn
from crfx.metrics import token_accuracy
from crfx.model.model import Model
from crfx.objectives.truth import UNKNOWN
from crfx.scores import IntArray

_STRUCTURE = {"lengths": True, "parents": True, "edge_types": True}


class LabellingEstimator(ExplainingEstimator):
    """Predictions from ``model_`` and ``classes_``.

    Methods take X as ``fit`` does: a list of (length, features) matrices, or one stacked matrix
    with ``lengths``.  A list gives lists, a stacked matrix gives stacked arrays.  ``n_rounds`` uses
    the first rounds of the model only.  ``allowed`` says, per instance and position (stacked: in
    one list), which labels there may be: None (any), one label, or a list or set of labels.
    """

    _is_called = "estimator that labels"
    constraints: Any

    # How rows hang together is a part of the input: where metadata is routed, they ask for it.
    __metadata_request__fit = _STRUCTURE
    __metadata_request__partial_fit = _STRUCTURE
    __metadata_request__predict = _STRUCTURE
    __metadata_request__score = _STRUCTURE

    def __sklearn_tags__(self) -> Any:
        """Of X as a list of instances: one matrix needs ``lengths`` beside it."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        tags.input_tags.dict = tags.input_tags.string = True
        return tags

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
        """Label every position: the best labelling, or with ``decode="marginal"`` the best label
        of each position.

        With ``min_probability`` it is None (in arrays of objects) where the label that is found is
        less probable, by `predict_marginals`.
        """
        model = self._decoding_model
        check_probability(min_probability)
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        codes = self._by_parts(data, model, n_rounds, self._decode)
        if min_probability is None:
            return data.split(self.classes_[codes])
        p = self._by_parts(data, self._marginal_model, n_rounds, self._marginals)
        labels = self.classes_.astype(object)[codes]
        labels[p[np.arange(len(codes)), codes] < min_probability] = None
        return data.split(labels)

    def _base_model(self) -> Model:
        """The model that stands underneath another estimator."""
        return self.model_

    def _left(self) -> Any:
        """What a training leaves to the one that goes on, where that can."""

    def _take_labels(self, start: LabellingEstimator, codes: IntArray) -> None:
        """Where the model has got labels that ``start`` has not, bring the rest after it: label k
        of ``start`` is ``codes[k]`` here.
        """

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
        """(length, labels) per instance: the probability of every label, as `predict_proba` gives
        elsewhere; columns in the order of ``classes_``.
        """
        model = self._marginal_model
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        return data.split(self._by_parts(data, model, n_rounds, self._marginals))

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
        """(length, labels, ..., labels) per instance: the probability of every label tuple of the
        edge that ends at the position, zero where none does.
        """
        data, problems = self._problems(X, lengths, parents, edge_types, n_rounds, allowed)
        if self.model_.sharing == "none":
            raise ValueError("the model has no edges: it was fitted with edges=None")
        found = [cast("npt.NDArray[Any]", self._sums(own, "each").edge) for own in problems]
        return data.split(found[0] if len(found) == 1 else np.concatenate(found))

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
        """(n, length) per instance: labellings drawn from the model."""
        data, problem = self._problem(X, lengths, parents, edge_types, n_rounds, allowed)
        seed = random_state
        if not isinstance(seed, int | np.integer):
            seed = generator_of(random_state).randint(2**31 - 1)
        found = drawn(problem, *checked_draws(n, int(seed)), self.n_jobs)
        return data.split(self.classes_[found], axis=1)

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
        """(instances,) log p(y | X); unknown labels (None) are summed over.

        -inf where constraints, or ``allowed``, forbid y, or where y has a label that the model was
        not trained on, with a warning that names it.
        """
        data, problems = self._problems(X, lengths, parents, edge_types, n_rounds, allowed)
        labels = scheme_labels(self.constraints, flat_labels(y, data), data)
        codes, is_strange = known_codes(labels, self.classes_)
        effect = "the log-likelihood of their instances is -inf"
        warn_of_unknown(unknown_counts(labels, is_strange), "y", effect)
        found, row = [], 0
        for problem in problems:
            rows = slice(row, row := row + problem.batch.n_rows)
            found.append(self._log_likelihood(problem, codes[rows], is_strange[rows]))
        return np.concatenate(found)

    def _log_likelihood(
        self, problem: Problem, codes: IntArray, is_strange: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64]:
        """(instances,), of label codes, and where labels are none of the model's."""
        never = self._never(problem, codes)
        never[problem.batch.instance_of_row[is_strange]] = True
        codes[np.repeat(never, problem.batch.lengths)] = UNKNOWN
        known = np.flatnonzero(codes != UNKNOWN)
        agreeing = clamped(problem, known, codes[known])
        found = self._sums(agreeing).log_z - self._sums(problem).log_z
        return np.asarray(np.where(never, -np.inf, found), dtype=np.float64)

    def _never(self, problem: Problem, codes: IntArray) -> npt.NDArray[np.bool_]:
        """(instances,) whether constraints forbid all labellings that agree with known labels."""
        batch, never = problem.batch, np.zeros(problem.batch.n_instances, bool)
        mask = self.model_.mask
        if mask is not None or batch.allowed is not None:
            n_labels = len(self.classes_)
            bad = impossible_rows(batch, problem.structure, mask, codes, n_labels, self.n_jobs)
            never[batch.instance_of_row[bad]] = True
        return never

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
        """Token accuracy over the positions whose label is given.

        Positions count with the weight of their instance, where ``sample_weight`` has one for each.
        A label that the model was not trained on is never right; a warning names it.
        """
        data = self._input(X, lengths, parents, edge_types, None, allowed)
        weights = weights_of(sample_weight, data)
        return token_accuracy(*self._true_and_found(data, y), sample_weight=weights)

    def _true_and_found(
        self, data: Input, y: Any
    ) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
        """The labels of every instance as metrics take them: the true ones, in the scheme of the
        constraints and None where unknown, and those that `predict` finds.
        """
        found = self._by_parts(data, self._decoding_model, None, self._decode)
        labels = scheme_labels(self.constraints, flat_labels(y, data), data)
        _, is_strange = known_codes(labels, self.classes_)
        warn_of_unknown(unknown_counts(labels, is_strange), "y", "they count as wrong")
        true = np.empty(len(labels), dtype=object)
        true[:] = labels
        return data.by_instance(true), data.by_instance(self.classes_[found])

    @property
    def transitions_(self) -> npt.NDArray[np.float32] | None:
        """The shared edge table, (labels, ..., labels), one per type where edges have types.

        ``transitions_[a, b]``: label a is followed by label b.  None where edges are no tables.
        """
        check_fitted(self)
        tables = self.model_.edge if self.model_.edge_family == "table" else None
        return None if tables is None else tables.tables["edge"]
