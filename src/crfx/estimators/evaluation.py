"""The metric of an evaluation set, from scores that are kept up to date during training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from crfx.estimators.agreed_input import hung_together
from crfx.estimators.inputs import Input, flat_labels, read_input
from crfx.estimators.scheme_labels import scheme_labels, with_allowed
from crfx.estimators.unknown_labels import known_codes, unknown_counts, warn_of_unknown
from crfx.inference.feasibility import impossible_rows
from crfx.inference.problem import Problem
from crfx.messages import shown
from crfx.metrics import span_f1, token_accuracy
from crfx.objectives.base import Objective
from crfx.objectives.registry import ObjectiveSettings
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import IntArray
from crfx.structures import Mask, Structure
from crfx.trainers.shared_evaluation import agreed_objective
from crfx.workers import agreed, count, current, total

if TYPE_CHECKING:
    from crfx.estimators.fitting import Training

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
    """The argument ``eval_set``, or this worker's part of it: its batch, its labels and their
    codes, `UNKNOWN` where there are none, also of labels that the model does not know.
    """

    data: Input
    labels: list[Any]
    codes: IntArray

    @property
    def is_strange(self) -> npt.NDArray[np.bool_]:
        """(rows,) whether the label is one that the model does not know."""
        has_label = np.array([own is not None for own in self.labels], dtype=bool)
        return np.asarray((self.codes == UNKNOWN) & has_label)

    @property
    def first_strange(self) -> Any:
        """The first of these; None where there is none."""
        strange = self.is_strange
        return self.labels[int(strange.argmax())] if strange.any() else None

    @property
    def has_known(self) -> bool:
        """Whether there is a label to compare with."""
        return bool((self.codes != UNKNOWN).any())

    def true_labels(self, classes: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Of every instance."""
        found = classes[self.codes]
        strange = np.flatnonzero(self.codes == UNKNOWN)
        if strange.size:
            found = found.astype(object)
            for row in strange:
                found[row] = self.labels[row]
        return self.data.by_instance(found)

    def without_impossible(self, structure: Structure, mask: Mask | None, n_labels: int) -> Watched:
        """For the loss, which sums over strange labels: where constraints leave none in their
        place, it sums over the instance as a whole.
        """
        batch, is_strange = self.data.batch, self.is_strange
        if not is_strange.any() or (mask is None and batch.allowed is None):
            return self
        bad = impossible_rows(batch, structure, mask, self.codes, n_labels)
        owner = batch.instance_of_row
        lost = np.intersect1d(owner[bad], owner[is_strange])
        return replace(self, codes=np.where(np.isin(owner, lost), UNKNOWN, self.codes))


def read_eval_set(
    eval_set: Any,
    given: Training,
    metric: EvalMetric,
    constraints: Any = None,
) -> Watched:
    """Read it, a pair (X, y) or a dict; labels in the scheme of the constraints.

    None is a worker's part where others have it all.  What is in it is judged over all workers.
    """
    batch = given.data.batch
    is_typed = batch.edge_types is not None

    def read() -> Watched:
        named = _named(([], []) if eval_set is None else eval_set)
        y, allowed = named.pop("y"), named.pop("allowed", None)
        try:
            data = with_allowed(read_input(**named, columns=given.columns), allowed, given.classes)
            if data.weights is not None:
                raise ValueError("its shards have sample_weight, which an eval_set has not")
            data = hung_together(data, forest=batch.parents is not None, typed=is_typed)
            labels = scheme_labels(constraints, flat_labels(y, data), data)
        except ValueError as error:
            raise ValueError(f"eval_set: {error}") from None
        return Watched(data, labels, known_codes(labels, given.classes)[0])

    def tell(found: Watched) -> tuple[int, tuple[Counter[Any], bool, bool]]:
        strange = unknown_counts(found.labels, found.is_strange)
        return found.data.batch.n_instances, (strange, found.has_known, None in found.labels)

    found, told = agreed(read, tell)
    strange = sum((own for own, _, _ in told), Counter[Any]())
    if not any(is_known for _, is_known, _ in told):
        raise ValueError(_nothing_known(strange))
    if metric != "loss" and any(has_none for _, _, has_none in told):
        raise ValueError(
            'eval_set has unknown labels (None): only eval_metric="loss" sums over them'
        )
    effect = "the loss sums over them, as over unknown ones"
    if metric != "loss":
        effect = "eval_metric sees them, and no prediction is one of them"
    warn_of_unknown(strange, "eval_set", effect)
    return found


def _nothing_known(strange: Counter[Any]) -> str:
    if strange:
        label = next(iter(strange))
        return f"eval_set has no label that the model knows, but {label!r} for one"
    return "eval_set has no position whose label is known: there is nothing to judge"


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
        try:
            return ObjectiveSettings.of(vars(estimator)).bind(truth)
        except ValueError as error:
            raise ValueError(f"eval_set: {error}") from None

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
