"""The metric of an evaluation set, from scores that are kept up to date during training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from crfx.estimators.inputs import Input, encode, flat_labels, read_input
from crfx.estimators.objective_choice import bound_objective
from crfx.features import Columns
from crfx.inference.problem import Problem
from crfx.metrics import span_f1, token_accuracy
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import IntArray

EvalMetric: TypeAlias = (
    Literal["loss", "token_accuracy", "span_f1"] | Callable[[list[Any], list[Any]], float]
)

SCORERS = {"token_accuracy": token_accuracy, "span_f1": span_f1}


@dataclass(frozen=True, eq=False)
class Evaluator:
    """``value`` gives the metric at the scores of the evaluation set.

    Metrics that compare labels, of which more is better, want the scores that are decoded.
    """

    data: Input
    value: Callable[[Problem], float]
    larger_is_better: bool


def check_metric(metric: Any) -> None:
    """Raise ValueError unless it is a metric."""
    if not callable(metric) and metric not in ("loss", *SCORERS):
        choices = ", ".join(map(repr, ("loss", *SCORERS)))
        raise ValueError(f"eval_metric is {metric!r}: choose one of {choices}, or a function")


def read_eval_set(
    eval_set: Any, columns: Columns, classes: npt.NDArray[Any], metric: EvalMetric
) -> tuple[Input, IntArray]:
    """The argument ``eval_set``, a pair (X, y) or a dict, and the codes of its labels."""
    given = _named(eval_set)
    y = given.pop("y")
    data = read_input(**given, columns=columns)
    codes = encode(flat_labels(y, data), classes, data, "y of eval_set")
    if not (codes != UNKNOWN).any():
        raise ValueError("eval_set has no position whose label is known: there is nothing to judge")
    if metric != "loss" and (codes == UNKNOWN).any():
        raise ValueError(
            'eval_set has unknown labels (None): only eval_metric="loss" sums over them'
        )
    return data, codes


def _named(eval_set: Any) -> dict[str, Any]:
    if isinstance(eval_set, dict):
        names = ("X", "y", "lengths", "parents", "edge_types")
        if unknown := [name for name in eval_set if name not in names]:
            raise ValueError(f"eval_set has {unknown[0]!r}: its keys are {', '.join(names)}")
        if missing := [name for name in ("X", "y") if name not in eval_set]:
            raise ValueError(f"eval_set has no {missing[0]}")
        return dict(eval_set)
    if isinstance(eval_set, list) and eval_set and all(_is_pair(each) for each in eval_set):
        if len(eval_set) > 1:
            raise ValueError(f"eval_set has {len(eval_set)} sets: pass one, (X, y)")
        eval_set = eval_set[0]  # as XGBoost has it
    if not isinstance(eval_set, list | tuple) or len(eval_set) != 2:
        raise ValueError("eval_set is not a pair (X, y), nor a dict with X and y")
    return dict(zip("Xy", eval_set, strict=True))


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def make_evaluator(
    metric: EvalMetric,
    data: Input,
    codes: IntArray,
    estimator: Any,
    class_weights: npt.NDArray[np.float64] | None = None,
) -> Evaluator:
    """What the metric gives for an estimator in training; the loss has its weights of labels."""
    batch = data.batch
    if metric == "loss":
        structure = estimator.model_.structure(batch)
        truth = Truth(batch, structure, codes, None, estimator.classes_, class_weights)
        # Perceptrons have "likelihood" here: their own loss grows with the scale of scores.
        try:
            objective = bound_objective(estimator, truth)
        except ValueError as error:
            raise ValueError(f"eval_set: {error}") from None
        return Evaluator(data, lambda p: objective.evaluate(p, ()).value / batch.n_rows, False)
    scorer: Any = metric if callable(metric) else SCORERS[metric]
    true = np.split(estimator.classes_[codes], batch.offsets[1:-1])

    def value(problem: Problem) -> float:
        predicted = estimator.classes_[estimator._decode(problem)]
        found = float(scorer(true, np.split(predicted, batch.offsets[1:-1])))
        if np.isnan(found):
            raise ValueError("eval_metric gave NaN on the eval_set: it cannot be compared")
        return found

    return Evaluator(data, value, True)
