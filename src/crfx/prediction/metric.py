"""The argument ``eval_metric``: how good the scores of an evaluation set are."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.errors import about
from crfx.inference.problem import Problem
from crfx.inputs.queries import Queries
from crfx.inputs.training_set import EvalMetric, Watched
from crfx.messages import shown
from crfx.metrics import span_f1, token_accuracy
from crfx.ndcg import Gain, ndcg
from crfx.objectives.base import Objective
from crfx.objectives.registry import ObjectiveSettings
from crfx.objectives.truth import Truth
from crfx.scores import IntArray
from crfx.structures import Chain, Forest
from crfx.trainers.monitor import Metric
from crfx.trainers.shared_evaluation import agreed_objective
from crfx.workers import agreed, count, current, total

SCORERS = {"token_accuracy": token_accuracy, "span_f1": span_f1}
_NDCG = re.compile(r"(?P<letor>letor-)?ndcg(@(?P<cut>[1-9][0-9]*))?")


@dataclass(frozen=True, eq=False)
class Evaluator:
    """``value`` returns the metric for scores of the evaluation set.

    Metrics that compare labels, where more is better, need the scores that are decoded.
    """

    value: Callable[[Problem], float]
    larger_is_better: bool


def check_metric(metric: Any) -> None:
    """Raise ValueError unless it is a metric."""
    if not callable(metric) and not (isinstance(metric, str) and metric in ("loss", *SCORERS)):
        choices = ", ".join(map(repr, ("loss", *SCORERS)))
        raise ValueError(f"eval_metric is {shown(metric)}: choose one of {choices}, or a function")


def ranking_metric(metric: Any, gain: Gain = "exponential") -> Callable[[Any, Any, Any], float]:
    """Return the function (relevance, scores, group) -> number that RankingCRF's argument names."""
    if callable(metric):
        function: Callable[[Any, Any, Any], float] = metric
        return function
    match = _NDCG.fullmatch(metric) if isinstance(metric, str) else None
    if match is None:
        raise ValueError(
            f"eval_metric is {shown(metric)}: choose 'ndcg', 'ndcg@5' (any cut), "
            "'letor-ndcg@5', or a function of (relevance, scores, group)"
        )
    cut = None if match["cut"] is None else int(match["cut"])
    definition: Any = "letor" if match["letor"] else "usual"
    return lambda relevance, scores, group: ndcg(
        relevance, scores, group, cut=cut, definition=definition, gain=gain
    )


def watched_ranking_metric(
    metric: Any, gain: Gain, watched: Queries, scores: Callable[[], npt.NDArray[Any]]
) -> Metric:
    """Return ``eval_metric`` of the scores as they are, on the documents of all workers.

    The first worker measures it and sends it to the others.  Scores travel once a round.
    """
    workers, function = current(), ranking_metric(metric, gain)

    def joined(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array if workers.size == 1 else np.concatenate(workers.gather(array))

    relevance, lengths = joined(watched.relevance), joined(watched.batch.lengths)

    def value() -> float:
        all_scores = joined(scores())
        measured = np.nan
        if workers.rank == 0:
            measured = comparable(function(relevance, all_scores, lengths))
        first: float = workers.gather(measured)[0]
        return first

    return Metric(value, larger_is_better=True)


def comparable(value: Any) -> float:
    """Return what a user's metric returned as a number; raise ValueError if it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"eval_metric gave {shown(value)} on the eval_set, not a number") from None
    if np.isnan(number):
        raise ValueError("eval_metric gave NaN on the eval_set: it cannot be compared")
    return number


def make_evaluator(
    metric: EvalMetric,
    watched: Watched,
    truth: Truth,
    objective: ObjectiveSettings,
    structure: Chain | Forest,
    decode: Callable[[Problem], IntArray],
) -> Evaluator:
    """Return the evaluator of a metric; ``truth`` is that of the training set.

    The loss is ``objective`` with the class weights of training, on instances of ``structure``;
    other metrics compare the labels that ``decode`` returns.  Workers that train together get one
    value, for the instances of all.  Labels are sent in one byte per position where there are at
    most 256 of them.
    """
    assert truth.classes is not None
    if metric == "loss":
        return _loss(_truth_of(watched, truth, structure), objective)
    workers, classes = current(), truth.classes
    scorer: Any = metric if callable(metric) else SCORERS[metric]
    parts = workers.gather(watched.true_labels(classes))
    true_labels = _of_one_kind([labels for part in parts for labels in part])
    borders = np.cumsum([len(labels) for labels in true_labels])[:-1]
    smallest = np.min_scalar_type(len(classes) - 1)

    def value(problem: Problem) -> float:
        codes = decode(problem)
        if workers.size > 1:
            codes = np.concatenate(workers.gather(codes.astype(smallest)))
        predicted = np.split(classes[codes], borders)

        def judge() -> float:  # by the first worker: the metric may not return the same twice
            return comparable(scorer(true_labels, predicted)) if workers.rank == 0 else 0.0

        return agreed(judge, lambda score: (0, score))[1][0]

    return Evaluator(value, True)


def _truth_of(watched: Watched, training: Truth, structure: Chain | Forest) -> Truth:
    labels = watched.codes
    return replace(training, batch=watched.batch, structure=structure, labels=labels, weights=None)


def _loss(truth: Truth, settings: ObjectiveSettings) -> Evaluator:
    workers, batch = current(), truth.batch

    def bind() -> Objective:
        # Perceptrons have "likelihood" here: their own loss grows with the scale of scores.
        with about("eval_set"):
            return settings.bind(truth)

    objective = agreed_objective(bind, batch)
    n_rows = count(workers, batch.n_rows)
    return Evaluator(lambda p: total(workers, objective.evaluate(p, ()).value) / n_rows, False)


def _of_one_kind(labels: list[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Return arrays of objects if any is one: the labels of some worker were unknown."""
    if not any(each.dtype == object for each in labels):
        return labels
    return [each.astype(object) for each in labels]
