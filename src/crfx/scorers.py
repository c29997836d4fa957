"""Scorers for scikit-learn's searches and cross-validation: ``scoring=crfx.scorers.span_f1``.

They take an estimator that is fitted, or a pipeline that ends with one, and judge it on lists of
instances; more is better.  Several at once: ``scoring={"f1": span_f1, "accuracy":
token_accuracy}``.  ``parents`` and ``edge_types`` reach them by metadata routing, unasked;
``sample_weight`` where it is asked for, ``token_accuracy.set_score_request(sample_weight=True)``.

>>> from sklearn.model_selection import cross_validate
>>> from crfx import LinearCRF, scorers
>>> X = [[{"word": "Ada"}, {"word": "sang"}], [{"word": "Bo"}, {"word": "left"}]] * 3
>>> y = [["B-PER", "O"]] * 6
>>> figures = {"f1": scorers.span_f1, "exact": scorers.sequence_accuracy}
>>> found = cross_validate(LinearCRF(), X, y, cv=3, scoring=figures)
>>> found["test_f1"].tolist(), found["test_exact"].tolist()
([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from crfx import metrics
from crfx.estimators.base import Estimator, called
from crfx.estimators.labelling import LabellingEstimator, compared_labels, read_to_label
from crfx.estimators.ranking import RankingCRF
from crfx.inputs.weights import instance_weights
from crfx.messages import shown

__all__ = [
    "f1_macro",
    "f1_weighted",
    "log_likelihood",
    "make_scorer",
    "ndcg",
    "ndcg_at",
    "sequence_accuracy",
    "span_f1",
    "token_accuracy",
]


class Scorer:
    """``scorer(estimator, X, y)`` gives a number, better when larger.

    ``judge`` gets the estimator itself, X as that takes it, y and what comes with them.
    ``requests`` says which metadata scikit-learn routes here.
    """

    def __init__(
        self,
        name: str,
        kind: type[Estimator],
        judge: Callable[..., float],
        asks: tuple[str, ...],
        takes: tuple[str, ...] = (),
    ) -> None:
        self.name, self._kind, self._judge = name, kind, judge
        self._known = (*asks, *takes)
        self.requests: dict[str, bool | str | None] = dict.fromkeys(asks, True)

    def __call__(self, estimator: Any, X: Any, y: Any, **arguments: Any) -> float:
        """Return the score of a fitted estimator, or of a pipeline or search that holds one."""
        self._check_names(arguments)
        inner, X = _within(estimator, X)
        if not isinstance(inner, self._kind):
            raise ValueError(
                f"the scorer {self.name} is for a crfx estimator "
                f"({called(self._kind)}), not for {shown(inner)}"
            )
        return float(self._judge(inner, X, y, **arguments))

    def set_score_request(self, **asked: bool | str | None) -> Scorer:
        """Return another scorer, which requests more metadata, such as ``sample_weight=True``."""
        self._check_names(asked)
        scorer = copy(self)
        scorer.requests = self.requests | asked
        return scorer

    def _check_names(self, arguments: dict[str, Any]) -> None:
        for name in arguments:
            if name not in self._known:
                known = ", ".join(self._known)
                raise TypeError(f"the scorer {self.name} takes no {name!r}, but {known}")

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what the scorer requests; scikit-learn calls this."""
        request = MetadataRequest(owner=self)
        for name, alias in self.requests.items():
            request.score.add_request(param=name, alias=alias)
        return request

    def __repr__(self) -> str:
        return f"crfx.scorers.{self.name}"


def _within(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the last estimator of a search or pipeline, and X transformed by earlier steps."""
    if hasattr(estimator, "best_estimator_"):
        return _within(estimator.best_estimator_, X)
    if isinstance(estimator, Pipeline):
        if len(estimator) > 1:
            X = estimator[:-1].transform(X)
        return _within(estimator[-1], X)
    return estimator, X


def make_scorer(metric: Callable[..., float], **settings: Any) -> Scorer:
    """Return a scorer for cross-validation and grid search from a metric.

    Parameters
    ----------
    metric : callable (y_true, y_pred, ...) -> float
        A function of lists of label arrays; larger is better.
    **settings
        Further arguments of the function.

    Returns
    -------
    Scorer

    Examples
    --------
    >>> from crfx.metrics import label_f1
    >>> make_scorer(label_f1, labels=["B-PER", "I-PER"])
    crfx.scorers.label_f1
    """
    name = getattr(metric, "__name__", type(metric).__name__)
    return _of_labels(name, partial(metric, **settings))


def ndcg_at(cut: int | None) -> Scorer:
    """Return a scorer for rankers: the mean NDCG at a cut, on a list of queries.

    Parameters
    ----------
    cut : int or None
        Count only the first documents of each query; None: all.

    Returns
    -------
    Scorer

    Examples
    --------
    >>> ndcg_at(5)
    crfx.scorers.ndcg_at(5)
    """
    name = "ndcg" if cut is None else f"ndcg_at({cut})"
    return Scorer(name, RankingCRF, partial(RankingCRF.score, cut=cut), ("group",), _WEIGHTS)


def _of_labels(name: str, metric: Callable[..., float]) -> Scorer:
    takes = _WEIGHTS if "sample_weight" in _arguments(metric) else ()
    return Scorer(name, LabellingEstimator, partial(_judge_labels, metric), _STRUCTURE, takes)


def _arguments(metric: Callable[..., float]) -> Collection[str]:
    try:
        return signature(metric).parameters
    except ValueError:  # some compiled functions do not tell
        return ()


def _judge_labels(
    metric: Callable[..., float],
    crf: LabellingEstimator,
    X: Any,
    y: Any,
    *,
    lengths: Any = None,
    parents: Any = None,
    edge_types: Any = None,
    sample_weight: Any = None,
) -> float:
    data = read_to_label(crf, X, lengths=lengths, parents=parents, edge_types=edge_types)
    weights = instance_weights(sample_weight, data.batch.n_instances)
    arguments = {} if weights is None else {"sample_weight": weights}
    return metric(*compared_labels(crf, data, y), **arguments)


def _mean_log_likelihood(
    crf: LabellingEstimator, X: Any, y: Any, *, sample_weight: Any = None, **arguments: Any
) -> float:
    log_likelihoods = crf.log_likelihood(X, y, **arguments)
    weights = instance_weights(sample_weight, len(log_likelihoods))
    if weights is None:
        return float(log_likelihoods.mean())
    if not weights.any():
        raise ValueError("the weights of all instances are 0: there is no mean")
    counts = weights > 0  # what is -inf may be left out
    return float(np.average(log_likelihoods[counts], weights=weights[counts]))


_STRUCTURE = ("lengths", "parents", "edge_types")
_WEIGHTS = ("sample_weight",)

token_accuracy = _of_labels("token_accuracy", metrics.token_accuracy)
"""The share of positions whose label is right; what ``score`` gives too."""
sequence_accuracy = _of_labels("sequence_accuracy", metrics.sequence_accuracy)
"""The share of instances all of whose labels are right."""
span_f1 = _of_labels("span_f1", metrics.span_f1)
"""F1 of whole spans (CoNLL's rule), of all types together: the micro average."""
f1_macro = _of_labels("f1_macro", metrics.label_f1)
"""F1 of labels, position by position; every label counts alike."""
f1_weighted = _of_labels("f1_weighted", partial(metrics.label_f1, average="weighted"))
"""F1 of labels, position by position; labels count by how often they are true."""
log_likelihood = Scorer(
    "log_likelihood", LabellingEstimator, _mean_log_likelihood, _STRUCTURE, _WEIGHTS
)
"""log p(y | X), the mean over instances."""
ndcg = ndcg_at(None)
"""Mean NDCG of a ranker, whole lists, on a list of queries; what ``score`` gives too."""
