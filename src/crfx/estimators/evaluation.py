"""The metric of an evaluation set, from scores that are kept up to date during training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.errors import about
from crfx.inference.problem import Problem
from crfx.inputs.passed import Input
from crfx.inputs.training_set import EvalMetric, Watched
from crfx.messages import shown
from crfx.metrics import span_f1, token_accuracy
from crfx.objectives.base import Objective
from crfx.objectives.registry import ObjectiveSettings
from crfx.objectives.truth import Truth
from crfx.trainers.shared_evaluation import agreed_objective
from crfx.workers import agreed, count, current, total

SCORERS = {"token_accuracy": token_accuracy, "span_f1": span_f1}


@dataclass(frozen=True, eq=False)
class Evaluator:
    """``value`` gives the metric at the scores of the evaluation set.

    Metrics that compare labels, of which more is better, want the scores that are decoded.
    """

    data: Input
    value: Callable[[Problem], float]
    larger_is_better: bool


def comparable(found: Any) -> float:
    """What a user's metric gave, as a number; raise ValueError where it is none."""
    try:
        number = float(found)
    except (TypeError, ValueError):
        raise ValueError(f"eval_metric gave {shown(found)} on the eval_set, not a number") from None
    if np.isnan(number):
        raise ValueError("eval_metric gave NaN on the eval_set: it cannot be compared")
    return number


def check_metric(metric: Any) -> None:
    """Raise ValueError unless it is a metric."""
    if not callable(metric) and not (isinstance(metric, str) and metric in ("loss", *SCORERS)):
        choices = ", ".join(map(repr, ("loss", *SCORERS)))
        raise ValueError(f"eval_metric is {shown(metric)}: choose one of {choices}, or a function")


def make_evaluator(
    metric: EvalMetric,
    watched: Watched,
    estimator: Any,
    class_weights: npt.NDArray[np.float64] | None = None,
) -> Evaluator:
    """What the metric gives for an estimator in training; the loss has its weights of labels.

    Workers that train together find one value, of the instances of all.  Of metrics that compare
    labels, one byte per position is told where there are at most 256 of them.
    """
    if metric == "loss":
        return _loss(watched, estimator, class_weights)
    workers = current()
    scorer: Any = metric if callable(metric) else SCORERS[metric]
    parts = workers.gather(watched.true_labels(estimator.classes_))
    true = _of_one_kind([own for part in parts for own in part])
    borders = np.cumsum([len(own) for own in true])[:-1]
    smallest = np.min_scalar_type(len(estimator.classes_) - 1)

    def value(problem: Problem) -> float:
        own = estimator._predictor.decode(problem)
        if workers.size > 1:
            own = np.concatenate(workers.gather(own.astype(smallest)))
        predicted = np.split(estimator.classes_[own], borders)

        def judge() -> float:  # by the first, should it not give the same twice
            return comparable(scorer(true, predicted)) if workers.rank == 0 else 0.0

        return agreed(judge, lambda found: (0, found))[1][0]

    return Evaluator(watched.data, value, True)


def _loss(
    watched: Watched, estimator: Any, class_weights: npt.NDArray[np.float64] | None
) -> Evaluator:
    workers, batch = current(), watched.data.batch
    structure = estimator.model_.structure(batch)
    truth = Truth(batch, structure, watched.codes, None, estimator.classes_, class_weights)

    def bind() -> Objective:
        # Perceptrons have "likelihood" here: their own loss grows with the scale of scores.
        with about("eval_set"):
            return ObjectiveSettings.of(vars(estimator)).bind(truth)

    objective = agreed_objective(bind, batch)
    n_rows = count(workers, batch.n_rows)
    return Evaluator(
        watched.data, lambda p: total(workers, objective.evaluate(p, ()).value) / n_rows, False
    )


def _of_one_kind(labels: list[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Arrays of objects, where one of them is: those of some worker had strange labels."""
    if not any(own.dtype == object for own in labels):
        return labels
    return [own.astype(object) for own in labels]
