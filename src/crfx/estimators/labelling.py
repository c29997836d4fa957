"""What all labelling estimators share: predictions of every kind from a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from crfx.estimators.base import Estimator
from crfx.estimators.inputs import Input, flat_labels, read_input
from crfx.estimators.unknown_labels import known_codes, warn_of_unknown
from crfx.inference import max_product, sample, sum_product
from crfx.inference.native import thread_count
from crfx.inference.problem import Problem
from crfx.metrics import token_accuracy
from crfx.model import Model
from crfx.objectives.truth import UNKNOWN
from crfx.scores import IntArray, Scores

MOST_SCORES = 2**26
"""Scores of edges that prediction holds at a time, unless one instance has more: 256 MiB."""


class LabellingEstimator(Estimator):
    """Predictions from ``model_`` and ``classes_``.

    Methods take X as ``fit`` does: a list of (length, features) matrices, or one stacked matrix
    with ``lengths``.  A list gives lists, a stacked matrix gives stacked arrays.  ``n_rounds`` uses
    the first rounds of the model only.
    """

    _is_called = "estimator that labels"
    model_: Model
    classes_: npt.NDArray[Any]
    decode: str | None
    n_jobs: int | None

    def predict(
        self,
        X: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
    ) -> Any:
        """Label every position: the best labelling, or with ``decode="marginal"`` the best label
        of each position.
        """
        model = self._decoding_model
        data = self._input(X, lengths, parents, edge_types, n_rounds)
        return data.split(self.classes_[self._by_parts(data, model, n_rounds, self._decode)])

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
            codes: npt.NDArray[Any] = sum_product(
                **_arguments(problem), edge_marginals=None, n_jobs=self.n_jobs
            ).node.argmax(axis=1)
            return codes
        if self._decoder not in ("viterbi", "joint"):
            raise ValueError(f"decode is {self.decode!r}, which {type(self).__name__} has not")
        return cast(
            "npt.NDArray[Any]", max_product(**_arguments(problem), n_jobs=self.n_jobs).labels
        )

    def predict_marginals(
        self,
        X: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
    ) -> Any:
        """(length, labels) per instance: the probability of every label, as `predict_proba` gives
        elsewhere; columns in the order of ``classes_``.
        """
        model = self._marginal_model
        data = self._input(X, lengths, parents, edge_types, n_rounds)
        return data.split(self._by_parts(data, model, n_rounds, self._marginals))

    @property
    def _marginal_model(self) -> Model:
        """The model of whose scores `predict_marginals` tells."""
        self._check_fitted()
        return self.model_

    def _marginals(self, problem: Problem) -> npt.NDArray[Any]:
        return sum_product(**_arguments(problem), edge_marginals=None, n_jobs=self.n_jobs).node

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
    ) -> Any:
        """(length, labels, ..., labels) per instance: the probability of every label tuple of the
        edge that ends at the position, zero where none does.
        """
        data, problem = self._problem(X, lengths, parents, edge_types, n_rounds)
        if problem.scores.edge is None:
            raise ValueError("the model has no edges: it was fitted with edges=None")
        found = sum_product(**_arguments(problem), edge_marginals="each", n_jobs=self.n_jobs)
        return data.split(cast("npt.NDArray[Any]", found.edge))

    def predict_kbest(
        self,
        X: Any,
        k: int,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
    ) -> list[list[tuple[npt.NDArray[Any], float]]]:
        """Per instance up to ``k`` pairs (labels, probability), best first."""
        _, problem = self._problem(X, lengths, parents, edge_types, n_rounds)
        arguments = _arguments(problem)
        found = max_product(**arguments, k=k, n_jobs=self.n_jobs)
        log_z = sum_product(**arguments, edge_marginals=None, n_jobs=self.n_jobs).log_z
        if k == 1:
            parts = np.split(cast("npt.NDArray[Any]", found.labels), problem.batch.offsets[1:-1])
            lists = [[pair] for pair in zip(parts, found.scores.tolist(), strict=True)]
        else:
            lists = cast("Any", found.labels)
        return [
            [(self.classes_[codes], float(np.exp(score - total))) for codes, score in best]
            for best, total in zip(lists, log_z, strict=True)
        ]

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
    ) -> Any:
        """(n, length) per instance: labellings drawn from the model."""
        data, problem = self._problem(X, lengths, parents, edge_types, n_rounds)
        seed = random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(random_state).randint(2**31 - 1)
        drawn = sample(**_arguments(problem), n=n, seed=int(seed), n_jobs=self.n_jobs)
        labels = self.classes_[drawn]
        return data.split(labels, axis=1)

    def log_likelihood(
        self,
        X: Any,
        y: Any,
        *,
        lengths: Any = None,
        parents: Any = None,
        edge_types: Any = None,
        n_rounds: int | None = None,
    ) -> npt.NDArray[np.float64]:
        """(instances,) log p(y | X); unknown labels (None) are summed over.

        -inf where y has a label that the model was not trained on, with a warning that names it.
        """
        data, problem = self._problem(X, lengths, parents, edge_types, n_rounds)
        labels = flat_labels(y, data)
        codes, is_strange = known_codes(labels, self.classes_)
        effect = "the log-likelihood of their instances is -inf"
        warn_of_unknown(labels, is_strange, "y", effect)
        arguments = _arguments(problem)
        log_z = sum_product(**arguments, edge_marginals=None, n_jobs=self.n_jobs).log_z
        node = arguments["node"].copy()
        known = np.flatnonzero(codes != UNKNOWN)
        kept = node[known, codes[known]]
        node[known] = -np.inf
        node[known, codes[known]] = kept
        clamped = {**arguments, "node": node}
        agreed = sum_product(**clamped, edge_marginals=None, n_jobs=self.n_jobs).log_z
        found = np.asarray(agreed - log_z, dtype=np.float64)
        found[data.batch.instance_of_row[is_strange]] = -np.inf
        return found

    def score(
        self, X: Any, y: Any, *, lengths: Any = None, parents: Any = None, edge_types: Any = None
    ) -> float:
        """Token accuracy over the positions whose label is given.

        A label that the model was not trained on is never right; a warning names it.
        """
        data = self._input(X, lengths, parents, edge_types, None)
        found = self._by_parts(data, self._decoding_model, None, self._decode)
        true = flat_labels(y, data)
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
        model: Model | None = None,
    ) -> tuple[Input, Problem]:
        """What X is, and its scores by ``model``; None: by ``model_``, for probabilities."""
        self._check_fitted()
        if model is None:
            self._check_probable()
        data = self._input(X, lengths, parents, edge_types, n_rounds)
        model = model or self.model_
        model.use_threads(thread_count(self.n_jobs))
        return data, model.problem(data.batch, n_rounds)

    def _input(
        self, X: Any, lengths: Any, parents: Any, edge_types: Any, n_rounds: int | None
    ) -> Input:
        data = read_input(X, lengths, parents, edge_types, columns=self.columns_)
        self.model_.check_structure(data.batch)
        self._check_rounds(n_rounds)
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
        a_row = int(np.prod(model.table)) if model.sharing == "each" else 0
        parts = data.batch.parts(max(1, MOST_SCORES // a_row)) if a_row else [data.batch]
        found = [ask(model.problem(part, n_rounds)) for part in parts]
        return found[0] if len(found) == 1 else np.concatenate(found)

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


def _arguments(problem: Problem) -> dict[str, Any]:
    """The arguments of an inference function, by name."""
    scores: Scores = problem.scores
    typed = problem.sharing == "typed"
    return {
        "node": scores.node,
        "edge": scores.edge,
        "offsets": problem.batch.offsets,
        "parents": problem.batch.parents,
        "edge_types": problem.batch.edge_types if typed else None,
        "start": scores.start,
        "end": scores.end,
        "order": problem.order,
    }
