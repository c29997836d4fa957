"""The metric of an evaluation set, from scores that are kept up to date during training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from crfx.estimators.inputs import Input
from crfx.inference.problem import Problem
from crfx.metrics import span_f1, token_accuracy
from crfx.objectives.curvature import Curvature
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import IntArray

EvalMetric: TypeAlias = (
    Literal["loss", "token_accuracy", "span_f1"] | Callable[[list[Any], list[Any]], float]
)


@dataclass(frozen=True, eq=False)
class Evaluator:
    """``value`` gives the metric at the scores of the evaluation set."""

    data: Input
    value: Callable[[Problem], float]
    larger_is_better: bool


def make_evaluator(metric: EvalMetric, data: Input, codes: IntArray, estimator: Any) -> Evaluator:
    """Read the argument ``eval_metric``."""
    batch = data.batch
    if metric == "loss":
        truth = Truth(batch, estimator.model_.structure(batch), codes)
        likelihood, n_rows = Likelihood(truth, estimator.n_jobs), max(batch.n_rows, 1)
        plain = Curvature(None)
        return Evaluator(data, lambda p: likelihood.evaluate(p, (), plain).value / n_rows, False)
    scorers = {"token_accuracy": token_accuracy, "span_f1": span_f1}
    scorer: Any = metric if callable(metric) else scorers.get(metric)
    if scorer is None:
        choices = ", ".join(map(repr, ("loss", *scorers)))
        raise ValueError(f"eval_metric is {metric!r}: choose one of {choices}, or a function")
    if (codes == UNKNOWN).any():
        raise ValueError(
            'eval_set has unknown labels (None): only eval_metric="loss" sums over them'
        )
    true = np.split(estimator.classes_[codes], batch.offsets[1:-1])

    def value(problem: Problem) -> float:
        predicted = estimator.classes_[estimator._decode(problem)]
        return float(scorer(true, np.split(predicted, batch.offsets[1:-1])))

    return Evaluator(data, value, True)
