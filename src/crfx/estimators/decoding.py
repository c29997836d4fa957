"""From X to scores, part by part, and from scores to labels and their probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.estimators.base import Estimator, check_fitted
from crfx.estimators.inputs import Input, read_input
from crfx.estimators.scheme_labels import with_allowed
from crfx.inference.feasibility import check_possible
from crfx.inference.max_product import best_labels
from crfx.inference.posterior_decoding import most_together
from crfx.inference.problem import Problem
from crfx.inference.results import SumProduct
from crfx.inference.sum_product import summed
from crfx.model.model import Model
from crfx.threads import thread_count

MOST_SCORES = 2**26
"""Scores of edges that prediction holds at a time, unless one instance has more: 256 MiB."""


class DecodingEstimator(Estimator):
    """What predictions of every kind are made of: the scores of ``model_``, and a decoder."""

    model_: Model
    classes_: npt.NDArray[Any]
    decode: str | None
    n_jobs: int | None

    @property
    def _decoding_model(self) -> Model:
        """The model whose scores ``predict`` decodes."""
        check_fitted(self)
        return self.model_

    @property
    def _decoder(self) -> str | None:
        return self.decode

    def _decode(self, problem: Problem) -> npt.NDArray[Any]:
        if self._decoder == "marginal":
            return self._most(self._sums(problem).node, problem)
        if self._decoder not in ("viterbi", "joint"):
            raise ValueError(f"decode is {self.decode!r}, which {type(self).__name__} has not")
        return best_labels(problem, self.n_jobs)[0]

    def _labelling(self, problem: Problem, n_rounds: int | None) -> npt.NDArray[Any]:
        """(rows,) what `predict` says; scored anew only where another model than ``model_``, whose
        scores ``problem`` has, decodes.
        """
        model = self._decoding_model
        if model is not self.model_:
            model.use_threads(thread_count(self.n_jobs))
            problem = model.problem(problem.batch, n_rounds)
        return self._decode(problem)

    def _sums(self, problem: Problem, edges: str | None = None) -> SumProduct:
        return summed(problem, edges, None, n_jobs=self.n_jobs)

    def _most(self, shares: npt.NDArray[Any], problem: Problem) -> npt.NDArray[Any]:
        """(rows,) the labels of most ``shares`` (rows, K); those constraints allow together."""
        if self.model_.mask is None:
            codes: npt.NDArray[Any] = shares.argmax(axis=1)
            return codes
        return most_together(shares, problem, self.model_.mask, self.n_jobs)

    @property
    def _marginal_model(self) -> Model:
        """The model of whose scores `predict_marginals` tells."""
        check_fitted(self)
        return self.model_

    def _marginals(self, problem: Problem) -> npt.NDArray[Any]:
        return self._sums(problem).node

    def _check_probable(self) -> None:
        """Raise ValueError where labellings have no probabilities."""

    def _problems(
        self,
        X: Any,
        lengths: Any,
        parents: Any,
        edge_types: Any,
        n_rounds: int | None,
        allowed: Any,
    ) -> tuple[Input, Iterator[Problem]]:
        """What X is, and its scores by ``model_``, for probabilities: in one problem, or in one
        for every chunk of features that stay on disk.
        """
        check_fitted(self)
        self._check_probable()
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        self.model_.use_threads(thread_count(self.n_jobs))
        return data, (self.model_.problem(part, n_rounds) for part in data.batch.loaded())

    def _problem(self, *asked: Any) -> tuple[Input, Problem]:
        """As `_problems`, in one: the scores of all rows are in memory."""
        data, _ = self._problems(*asked)
        return data, self.model_.problem(data.batch, asked[4])

    def _input(
        self,
        X: Any,
        lengths: Any,
        parents: Any,
        edge_types: Any,
        n_rounds: int | None,
        allowed: Any = None,
    ) -> Input:
        check_fitted(self)
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
        """(rows, ...) by ``ask``, which sees as many instances at a time as fit into memory well:
        a chunk of features that stay on disk, less where every edge has a table of its own.
        """
        model.use_threads(thread_count(self.n_jobs))
        parts = self._parts(data, model) if model.sharing == "each" else data.batch.loaded()
        found = [ask(model.problem(part, n_rounds)) for part in parts]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _parts(self, data: Input, model: Model) -> Iterator[Batch]:
        """Instances whose edges fit into memory well with a table each, their features read."""
        for batch in data.batch.loaded():
            yield from batch.parts(max(1, MOST_SCORES // int(np.prod(model.table))))

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
