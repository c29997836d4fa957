"""What all labelling estimators share: predictions of every kind from a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.estimators.base import Estimator
from crfx.estimators.confidence import (
    Confidence,
    check_probability,
    confidence,
)
from crfx.estimators.inputs import Input, flat_labels, read_input
from crfx.estimators.scheme_labels import scheme_labels, with_allowed
from crfx.estimators.seeds import generator_of
from crfx.estimators.unknown_labels import known_codes, warn_of_unknown
from crfx.inference.clamping import clamped
from crfx.inference.feasibility import check_possible, impossible_rows
from crfx.inference.max_product import best_labels, best_lists, checked_k
from crfx.inference.native import thread_count
from crfx.inference.posterior_decoding import most_together
from crfx.inference.problem import Problem
from crfx.inference.results import SumProduct
from crfx.inference.sampling import checked_draws, drawn
from crfx.inference.spans import Span, SpanTags, probable_spans
from crfx.inference.sum_product import summed
from crfx.metrics import token_accuracy
from crfx.model import Model
from crfx.objectives.truth import UNKNOWN
from crfx.scores import IntArray

MOST_SCORES = 2**26
"""Scores of edges that prediction holds at a time, unless one instance has more: 256 MiB."""


class LabellingEstimator(Estimator):
    """Predictions from ``model_`` and ``classes_``.

    Methods take X as ``fit`` does: a list of (length, features) matrices, or one stacked matrix
    with ``lengths``.  A list gives lists, a stacked matrix gives stacked arrays.  ``n_rounds`` uses
    the first rounds of the model only.  ``allowed`` says, per instance and position (stacked: in
    one list), which labels there may be: None (any), one label, or a list or set of labels.
    """

    _is_called = "estimator that labels"
    model_: Model
    classes_: npt.NDArray[Any]
    decode: str | None
    n_jobs: int | None
    constraints: Any

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

    @property
    def _decoding_model(self) -> Model:
        """The model whose scores ``predict`` decodes."""
        self._check_fitted()
        return self.model_

    @property
    def _base_model(self) -> Model:
        """The model that stands underneath another estimator."""
        return self.model_

    def _left(self) -> Any:
        """What a training leaves to the one that goes on, where that can."""

    def _take_labels(self, start: LabellingEstimator, codes: IntArray) -> None:
        """Where the model has got labels that ``start`` has not, bring the rest after it: label k
        of ``start`` is ``codes[k]`` here.
        """

    @property
    def _decoder(self) -> str | None:
        return self.decode

    def _decode(self, problem: Problem) -> npt.NDArray[Any]:
        if self._decoder == "marginal":
            return self._most(self._sums(problem).node, problem)
        if self._decoder not in ("viterbi", "joint"):
            raise ValueError(f"decode is {self.decode!r}, which {type(self).__name__} has not")
        return best_labels(problem, self.n_jobs)[0]

    def _sums(self, problem: Problem, edges: str | None = None) -> SumProduct:
        return summed(problem, edges, None, n_jobs=self.n_jobs)

    def _most(self, shares: npt.NDArray[Any], problem: Problem) -> npt.NDArray[Any]:
        """(rows,) the labels of most ``shares`` (rows, K); those constraints allow together."""
        if self.model_.mask is None:
            codes: npt.NDArray[Any] = shares.argmax(axis=1)
            return codes
        return most_together(shares, problem, self.model_.mask, self.n_jobs)

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

    @property
    def _marginal_model(self) -> Model:
        """The model of whose scores `predict_marginals` tells."""
        self._check_fitted()
        return self.model_

    def _marginals(self, problem: Problem) -> npt.NDArray[Any]:
        return self._sums(problem).node

    def _check_probable(self) -> None:
        """Raise ValueError where labellings have no probabilities."""

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
        data, problem = self._problem(X, lengths, parents, edge_types, n_rounds, allowed)
        if problem.scores.edge is None:
            raise ValueError("the model has no edges: it was fitted with edges=None")
        return data.split(cast("npt.NDArray[Any]", self._sums(problem, "each").edge))

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
        """Per instance up to ``k`` pairs (labels, probability), best first; fewer where
        constraints leave fewer.
        """
        _, problem = self._problem(X, lengths, parents, edge_types, n_rounds, allowed)
        lists = best_lists(problem, checked_k(k), self.n_jobs)
        log_z = self._sums(problem).log_z
        return [
            [(self.classes_[codes], float(np.exp(score - total))) for codes, score in best]
            for best, total in zip(lists, log_z, strict=True)
        ]

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
        """Per instance how probable the labelling of `predict` is: each label, and the whole."""
        data, problem = self._problem(X, lengths, parents, edge_types, n_rounds, allowed)
        codes = self._by_parts(data, self._decoding_model, n_rounds, self._decode)
        return confidence(problem, codes, self._sums(problem))

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
        """Per instance the spans (start, stop, label, probability) of the labelling of `predict`.

        The probability is that of a span with exactly these ends and this type: a sum over all
        labellings that have it.  With ``min_probability``, above 0, instead all spans that are as
        probable, which may overlap.  Labels are in BIO, IOB1 or BIOES, read as conlleval does.
        """
        self._check_fitted()
        tags = SpanTags.of(self.classes_)
        check_probability(min_probability, above=0.0)
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        self._check_probable()
        if data.batch.parents is not None:
            raise ValueError("spans are of chains, but parents are given")
        codes = None
        if min_probability is None:
            codes = self._by_parts(data, self._decoding_model, n_rounds, self._decode)
        found: list[list[Span]] = []
        row = 0
        for part in self._parts(data, self.model_):
            own = None if codes is None else codes[row : row + part.n_rows]
            row += part.n_rows
            problem = self.model_.problem(part, n_rounds)
            found += probable_spans(problem, tags, own, min_probability, self.n_jobs)
        return found

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
        data, problem = self._problem(X, lengths, parents, edge_types, n_rounds, allowed)
        labels = scheme_labels(self.constraints, flat_labels(y, data), data)
        codes, is_strange = known_codes(labels, self.classes_)
        effect = "the log-likelihood of their instances is -inf"
        warn_of_unknown(labels, is_strange, "y", effect)
        never = self._never(problem, codes)
        never[data.batch.instance_of_row[is_strange]] = True
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
        allowed: Any = None,
    ) -> float:
        """Token accuracy over the positions whose label is given.

        A label that the model was not trained on is never right; a warning names it.
        """
        data = self._input(X, lengths, parents, edge_types, None, allowed)
        found = self._by_parts(data, self._decoding_model, None, self._decode)
        true = scheme_labels(self.constraints, flat_labels(y, data), data)
        codes, is_strange = known_codes(true, self.classes_)
        warn_of_unknown(true, is_strange, "y", "they count as wrong")
        counts = (codes != UNKNOWN) | is_strange
        return token_accuracy([codes[counts]], [found[counts]])

    @property
    def transitions_(self) -> npt.NDArray[np.float32] | None:
        """The shared edge table, (labels, ..., labels), one per type where edges have types.

        ``transitions_[a, b]``: label a is followed by label b.  None where edges are no tables.
        """
        self._check_fitted()
        tables = self.model_.edge if self.model_.edge_family == "table" else None
        return None if tables is None else tables.tables["edge"]

    def _problem(
        self,
        X: Any,
        lengths: Any,
        parents: Any,
        edge_types: Any,
        n_rounds: int | None,
        allowed: Any,
    ) -> tuple[Input, Problem]:
        """What X is, and its scores by ``model_``, for probabilities."""
        self._check_fitted()
        self._check_probable()
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        self.model_.use_threads(thread_count(self.n_jobs))
        return data, self.model_.problem(data.batch, n_rounds)

    def _input(
        self,
        X: Any,
        lengths: Any,
        parents: Any,
        edge_types: Any,
        n_rounds: int | None,
        allowed: Any = None,
    ) -> Input:
        self._check_fitted()
        data = read_input(X, lengths, parents, edge_types, columns=self.columns_)
        self.model_.check_structure(data.batch)
        self._check_rounds(n_rounds)
        data = with_allowed(data, allowed, self.classes_)
        # Told here: inference may see parts of the instances, and count within these.
        structure, n_labels = self.model_.structure(data.batch), len(self.classes_)
        check_possible(data.batch, structure, self.model_.mask, None, n_labels, self.n_jobs)
        return data

    def _by_parts(
        self,
        data: Input,
        model: Model,
        n_rounds: int | None,
        ask: Callable[[Problem], npt.NDArray[Any]],
    ) -> npt.NDArray[Any]:
        """(rows, ...) by ``ask``, which sees as many instances at a time as fit into memory well,
        where every edge has a table of its own.
        """
        model.use_threads(thread_count(self.n_jobs))
        parts = self._parts(data, model) if model.sharing == "each" else [data.batch]
        found = [ask(model.problem(part, n_rounds)) for part in parts]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _parts(self, data: Input, model: Model) -> list[Batch]:
        """Instances whose edges fit into memory well with a table each."""
        return data.batch.parts(max(1, MOST_SCORES // int(np.prod(model.table))))

    def _check_rounds(self, n_rounds: int | None) -> None:
        if n_rounds is not None and not hasattr(self, "n_rounds_"):
            raise ValueError(
                f"n_rounds is given, but a {type(self).__name__} is not built in rounds"
            )
        if n_rounds is None:
            return
        whole = isinstance(n_rounds, int | np.integer) and not isinstance(n_rounds, bool)
        if not whole or not 0 <= n_rounds <= self.n_rounds_:
            raise ValueError(
                f"n_rounds is {n_rounds!r}: the model has {self.n_rounds_} rounds, so it must be a "
                f"whole number from 0 to {self.n_rounds_}"
            )

    n_rounds_: int
