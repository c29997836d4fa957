"""How sure a model is of a labelling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfx.estimators.base import check_fitted
from crfx.estimators.decoding import DecodingEstimator
from crfx.estimators.placement import placed
from crfx.inference.max_product import best_lists, checked_k
from crfx.inference.problem import Problem
from crfx.inference.results import SumProduct
from crfx.inference.spans import Span, SpanTags, probable_spans
from crfx.objectives.counts import labelling_scores
from crfx.scores import IntArray
from crfx.threads import thread_count


class Confidence(NamedTuple):
    """Of one labelling: the probability of each label, (length,), and of the whole."""

    labels: npt.NDArray[np.float64]
    labelling: float


def confidence(problem: Problem, codes: IntArray, sums: SumProduct) -> list[Confidence]:
    """Per instance, of the labelling ``codes`` (rows,)."""
    labels = sums.node[np.arange(len(codes)), codes].astype(np.float64)
    whole = np.exp(labelling_scores(problem, codes) - sums.log_z)
    batch = problem.batch
    return [
        Confidence(labels[batch.slice_of(instance)], float(p)) for instance, p in enumerate(whole)
    ]


def check_probability(value: Any, above: float | None = None) -> None:
    """Raise ValueError unless ``min_probability`` is one, or None."""
    if value is None:
        return
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1 or (above is not None and not value > above):
        least = "0" if above is None else "above 0"
        raise ValueError(f"min_probability is {value!r}: it must lie between {least} and 1")


class ConfidentEstimator(DecodingEstimator):
    """Labellings and spans with their probabilities."""

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
        """Per instance up to ``k`` pairs (labels, probability), best first; fewer where
        constraints leave fewer.
        """
        _, problems = self._problems(X, lengths, parents, edge_types, n_rounds, allowed)
        return [own for problem in problems for own in self._best_lists(problem, checked_k(k))]

    def _best_lists(
        self, problem: Problem, k: int
    ) -> Iterator[list[tuple[npt.NDArray[Any], float]]]:
        lists = best_lists(problem, k, self.n_jobs)
        for best, total in zip(lists, self._sums(problem).log_z, strict=True):
            yield [(self.classes_[codes], float(np.exp(score - total))) for codes, score in best]

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
        """Per instance how probable the labelling of `predict` is: each label, and the whole."""
        _, problems = self._problems(X, lengths, parents, edge_types, n_rounds, allowed)
        return [
            own
            for problem in problems
            for own in confidence(problem, self._labelling(problem, n_rounds), self._sums(problem))
        ]

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
        """Per instance the spans (start, stop, label, probability) of the labelling of `predict`.

        The probability is that of a span with exactly these ends and this type: a sum over all
        labellings that have it.  With ``min_probability``, above 0, instead all spans that are as
        probable, which may overlap.  Labels are in BIO, IOB1 or BIOES, read as conlleval does.
        """
        check_fitted(self)
        tags = SpanTags.of(self.classes_)
        check_probability(min_probability, above=0.0)
        data = self._input(X, lengths, parents, edge_types, n_rounds, allowed)
        self._check_probable()
        if data.batch.parents is not None:
            raise ValueError("spans are of chains, but parents are given")
        self.model_.use_threads(thread_count(self.n_jobs))
        found: list[list[Span]] = []
        for part in self._parts(data, self.model_):
            problem = self.model_.problem(part, n_rounds)
            own = self._labelling(problem, n_rounds) if min_probability is None else None
            found += probable_spans(problem, tags, own, min_probability, self.n_jobs)
        return found
