"""The metric of an evaluation set, from scores that are kept up to date during training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from crfx.estimators.inputs import Input, flat_labels, read_input
from crfx.estimators.objective_choice import bound_objective
from crfx.estimators.scheme_labels import scheme_labels, with_allowed
from crfx.estimators.unknown_labels import known_codes, warn_of_unknown
from crfx.features.columns import Columns
from crfx.inference.feasibility import impossible_rows
from crfx.inference.problem import Problem
from crfx.messages import shown
from crfx.metrics import span_f1, token_accuracy
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import IntArray
from crfx.structures import Mask, Structure

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


@dataclass(frozen=True, eq=False)
class Watched:
    """The argument ``eval_set``: its batch, its labels and their codes, `UNKNOWN` where there are
    none, also of labels that the model does not know.
    """

    data: Input
    labels: list[Any]
    codes: IntArray

    def true_labels(self, classes: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Of every instance."""
        found = classes[self.codes]
        strange = np.flatnonzero(self.codes == UNKNOWN)
        if strange.size:
            found = found.astype(object)
            for row in strange:
                found[row] = self.labels[row]
        return np.split(found, self.data.batch.offsets[1:-1])

    def without_impossible(self, structure: Structure, mask: Mask | None, n_labels: int) -> Watched:
        """For the loss, which sums over strange labels: where constraints leave none in their
        place, it sums over the instance as a whole.
        """
        batch = self.data.batch
        is_strange = (self.codes == UNKNOWN) & np.array([own is not None for own in self.labels])
        if not is_strange.any() or (mask is None and batch.allowed is None):
            return self
        bad = impossible_rows(batch, structure, mask, self.codes, n_labels)
        owner = batch.instance_of_row
        lost = np.intersect1d(owner[bad], owner[is_strange])
        codes = np.where(np.isin(owner, lost), UNKNOWN, self.codes)
        if (codes == UNKNOWN).all():
            label = self.labels[int(is_strange.argmax())]
            raise ValueError(
                f"constraints forbid what is known beside labels such as {label!r}, which the "
                "model does not know: there is nothing to judge"
            )
        return replace(self, codes=codes)


def read_eval_set(
    eval_set: Any,
    columns: Columns,
    classes: npt.NDArray[Any],
    metric: EvalMetric,
    constraints: Any = None,
) -> Watched:
    """Read it, a pair (X, y) or a dict; labels in the scheme of the constraints."""
    given = _named(eval_set)
    y, allowed = given.pop("y"), given.pop("allowed", None)
    try:
        data = with_allowed(read_input(**given, columns=columns), allowed, classes)
        if data.weights is not None:
            raise ValueError("its shards have sample_weight, which an eval_set has not")
        labels = scheme_labels(constraints, flat_labels(y, data), data)
    except ValueError as error:
        raise ValueError(f"eval_set: {error}") from None
    codes, is_strange = known_codes(labels, classes)
    if is_strange.any() and (codes == UNKNOWN).all():
        label = labels[int(is_strange.argmax())]
        raise ValueError(f"eval_set has no label that the model knows, but {label!r} for one")
    if not (codes != UNKNOWN).any():
        raise ValueError("eval_set has no position whose label is known: there is nothing to judge")
    if metric != "loss" and None in labels:
        raise ValueError(
            'eval_set has unknown labels (None): only eval_metric="loss" sums over them'
        )
    effect = "the loss sums over them, as over unknown ones"
    if metric != "loss":
        effect = "eval_metric sees them, and no prediction is one of them"
    warn_of_unknown(labels, is_strange, "eval_set", effect)
    return Watched(data, labels, codes)


def _named(eval_set: Any) -> dict[str, Any]:
    if isinstance(eval_set, dict):
        names = ("X", "y", "lengths", "parents", "edge_types", "allowed")
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
    watched: Watched,
    estimator: Any,
    class_weights: npt.NDArray[np.float64] | None = None,
) -> Evaluator:
    """What the metric gives for an estimator in training; the loss has its weights of labels."""
    data, batch = watched.data, watched.data.batch
    if metric == "loss":
        structure = estimator.model_.structure(batch)
        truth = Truth(batch, structure, watched.codes, None, estimator.classes_, class_weights)
        # Perceptrons have "likelihood" here: their own loss grows with the scale of scores.
        try:
            objective = bound_objective(estimator, truth)
        except ValueError as error:
            raise ValueError(f"eval_set: {error}") from None
        return Evaluator(data, lambda p: objective.evaluate(p, ()).value / batch.n_rows, False)
    scorer: Any = metric if callable(metric) else SCORERS[metric]
    true = watched.true_labels(estimator.classes_)

    def value(problem: Problem) -> float:
        predicted = estimator.classes_[estimator._decode(problem)]
        return comparable(scorer(true, np.split(predicted, batch.offsets[1:-1])))

    return Evaluator(data, value, True)
