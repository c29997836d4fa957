"""The training set, read in stages, and the evaluation set beside it.

Workers that train together take every stage together: each ends with one collective call, at which
an error of one worker becomes the error of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.errors import about
from crfx.features.columns import Columns
from crfx.features.matrix import take_rows, unwrapped
from crfx.features.words import Numbering
from crfx.inference.feasibility import check_allowed, check_possible, impossible_rows
from crfx.inputs.label_codes import (
    encode,
    find_classes,
    flat_labels,
    known_codes,
    read_classes,
    scheme_classes,
    scheme_labels,
    unknown_counts,
    warn_of_unknown,
    with_allowed,
)
from crfx.inputs.passed import Input, Passed, agreed_batch, like_others, read_input
from crfx.inputs.rows import agreed_rows, padding_of, warn_of_padding
from crfx.inputs.weights import ClassWeight, class_weights, weights_of
from crfx.model.model import Model
from crfx.objectives.truth import UNKNOWN, Truth
from crfx.scores import IntArray
from crfx.structures import Chain, Forest, Mask, Structure
from crfx.structures.constraints import mask_of
from crfx.workers import agreed, count, current

EvalMetric: TypeAlias = (
    Literal["loss", "token_accuracy", "span_f1"] | Callable[[list[Any], list[Any]], float]
)


@dataclass(frozen=True)
class InputSettings:
    """The settings by which an estimator reads its training set.

    ``numbering`` says how names of features become columns; with ``grows``, names that the model
    to start from does not know become new columns of it.  ``classes`` are labels beside those of y
    and of the model to start from.
    """

    order: int = 1
    constraints: Any = None
    class_weight: ClassWeight = None
    numbering: Numbering | None = None
    grows: bool = False
    classes: Any = None


@dataclass(frozen=True, eq=False)
class Start:
    """What is known of the model that training starts from; without a model nothing is."""

    model: Model | None = None
    classes: npt.NDArray[Any] | None = None
    columns: Columns | None = None


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What a model learns from: instances with their columns, labels and truth."""

    input: Input
    columns: Columns
    classes: npt.NDArray[Any]
    truth: Truth
    mask: Mask | None = None

    @property
    def batch(self) -> Batch:
        """The instances."""
        return self.input.batch


def read_training_set(passed: Passed, settings: InputSettings, start: Start) -> TrainingSet:
    """Read and check what users pass to ``fit``, stage by stage."""
    rows = agreed_rows(
        passed.X,
        passed.lengths,
        start.columns,
        grows=settings.grows,
        numbering=settings.numbering,
    )
    batch = agreed_batch(rows, passed.parents, passed.edge_types)
    if not count(current(), batch.n_rows):
        raise ValueError("every instance of X is empty: there is nothing to learn from")
    data = Input(batch, rows.columns, rows.as_list, rows.weights)
    labels, known = _agreed_labels(passed, data, settings.constraints)
    classes = _classes(known, settings, start)
    mask = mask_of(settings.constraints, classes, is_forest=batch.parents is not None)
    data, truth = _agreed_truth(passed, data, labels, classes, mask, settings, start)
    data, truth = _without_weightless(data, truth)
    truth = replace(truth, class_weights=class_weights(settings.class_weight, truth))
    return TrainingSet(data, data.columns, classes, truth, mask)


def _agreed_labels(passed: Passed, data: Input, constraints: Any) -> tuple[list[Any], set[Any]]:
    """Return the labels of all rows, and the set of those of all workers; warn about padding."""
    labels, answers = agreed(
        lambda: scheme_labels(constraints, flat_labels(passed.y, data), data, strict=True),
        lambda labels: (
            data.batch.n_instances,
            (set(labels), padding_of(unwrapped(passed.X), labels)),
        ),
    )
    warn_of_padding([padding for _, padding in answers if padding is not None])
    return labels, set[Any]().union(*(labels for labels, _ in answers))


def _classes(known: set[Any], settings: InputSettings, start: Start) -> npt.NDArray[Any]:
    """Return the labels of the model: those of y or of the model to start from, and more."""
    if start.classes is not None and settings.classes is None:
        return start.classes
    labels = list(known) if start.classes is None else start.classes.tolist()
    if settings.classes is not None:
        labels = [*labels, *read_classes(settings.classes)]
    return find_classes(scheme_classes(settings.constraints, labels))


def _agreed_truth(
    passed: Passed,
    data: Input,
    labels: list[Any],
    classes: npt.NDArray[Any],
    mask: Mask | None,
    settings: InputSettings,
    start: Start,
) -> tuple[Input, Truth]:
    """Return the input with its allowed labels, and the truth, which must be among them."""
    seen_in = "training"
    if start.model is not None:
        seen_in = "training before; if it is a new label, name it in classes"

    def read() -> tuple[Input, Truth]:
        checked = with_allowed(data, passed.allowed, classes)
        truth = Truth(
            checked.batch,
            Chain(settings.order) if checked.batch.parents is None else Forest(),
            encode(labels, classes, checked, "y", seen_in),
            weights_of(passed.sample_weight, checked),
            classes,
        )
        truth.structure.check(checked.batch)
        if start.model is not None and not settings.grows:
            start.model.check_structure(checked.batch)
        check_allowed(checked.batch, truth.structure, truth.labels, mask, classes)
        return checked, truth

    return agreed(read, lambda _: (data.batch.n_instances, None))[0]


def _without_weightless(data: Input, truth: Truth) -> tuple[Input, Truth]:
    """Leave out the instances of weight 0, from which nothing is learned, bins included."""
    if truth.weights is not None and not truth.weights.all():
        part, rows = truth.take(np.flatnonzero(truth.weights > 0))
        batch = replace(part.batch, X=take_rows(data.batch.X, rows))
        data, truth = replace(data, batch=batch), replace(part, batch=batch)
    if not count(current(), data.batch.n_rows):
        raise ValueError(
            "sample_weight is zero for every instance that has positions: there is nothing to "
            "learn from"
        )
    return data, truth


# The evaluation set -------------------------------------------------------------------------------


@dataclass(frozen=True)
class EvalSettings:
    """What an estimator's arguments ask of an evaluation set."""

    eval_metric: EvalMetric = "loss"
    constraints: Any = None
    n_jobs: int | None = None
    early_stopping_rounds: int | None = None


@dataclass(frozen=True, eq=False)
class Watched:
    """The argument ``eval_set``, or this worker's part of it: its batch, labels and their codes.

    Codes are `UNKNOWN` for labels that are unknown, and for those that the model does not know.
    """

    data: Input
    labels: list[Any]
    codes: IntArray

    @property
    def batch(self) -> Batch:
        """The instances."""
        return self.data.batch

    @property
    def is_strange(self) -> npt.NDArray[np.bool_]:
        """(rows,) whether the label is one that the model does not know."""
        has_label = np.array([label is not None for label in self.labels], dtype=bool)
        return np.asarray((self.codes == UNKNOWN) & has_label)

    @property
    def first_strange(self) -> Any:
        """The first of these; None if there is none."""
        strange = self.is_strange
        return self.labels[int(strange.argmax())] if strange.any() else None

    @property
    def has_known(self) -> bool:
        """Whether there is a label to compare with."""
        return bool((self.codes != UNKNOWN).any())

    def true_labels(self, classes: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Return the labels of every instance."""
        labels = classes[self.codes]
        strange = np.flatnonzero(self.codes == UNKNOWN)
        if strange.size:
            labels = labels.astype(object)
            for row in strange:
                labels[row] = self.labels[row]
        return self.data.by_instance(labels)

    def without_impossible(self, structure: Structure, mask: Mask | None, n_labels: int) -> Watched:
        """Prepare for the loss, which sums over labels that the model does not know.

        Where constraints leave no label in their place, the loss sums over the whole instance.
        """
        batch, is_strange = self.batch, self.is_strange
        if not is_strange.any() or (mask is None and batch.allowed is None):
            return self
        bad = impossible_rows(batch, structure, mask, self.codes, n_labels)
        owner = batch.instance_of_row
        lost = np.intersect1d(owner[bad], owner[is_strange])
        return replace(self, codes=np.where(np.isin(owner, lost), UNKNOWN, self.codes))


def read_eval_set(
    eval_set: Any, data: TrainingSet, model: Model, settings: EvalSettings
) -> Watched | None:
    """Read the argument ``eval_set``, a pair (X, y) or a dict; early stopping needs it.

    Any worker may have a part of it, or None or ``([], [])`` for no part.
    """
    workers = current()
    if not any(workers.gather(eval_set is not None)):
        if settings.early_stopping_rounds is not None:
            raise ValueError("early_stopping_rounds needs an eval_set to watch")
        return None
    watched = _agreed_eval_set(eval_set, data, settings)
    batch, mask = watched.batch, data.mask
    structure, n_labels = model.structure(batch), len(data.classes)

    def check() -> Watched:
        model.check_structure(batch)
        with about("eval_set"):
            if settings.eval_metric != "loss":
                check_possible(batch, structure, mask, None, n_labels, settings.n_jobs)
                return watched
            # Only the loss asks how probable the truth is.
            possible = watched.without_impossible(structure, mask, n_labels)
            check_allowed(batch, structure, possible.codes, mask, data.classes)
        return possible

    possible, answers = agreed(check, lambda own: (batch.n_instances, own.has_known))
    if not any(answers):
        strange = workers.gather(watched.first_strange)
        label = next(label for label in strange if label is not None)
        raise ValueError(
            f"eval_set: constraints forbid what is known beside labels such as {label!r}, which "
            "the model does not know: there is nothing to judge"
        )
    return possible


def _agreed_eval_set(eval_set: Any, data: TrainingSet, settings: EvalSettings) -> Watched:
    """Read this worker's part, with labels in the scheme of the constraints.

    Labels are judged over all workers: some must be known, and a warning names strange ones.
    """
    is_forest, is_typed = data.batch.parents is not None, data.batch.edge_types is not None

    def read() -> Watched:
        passed = _passed_eval_set(([], []) if eval_set is None else eval_set)
        with about("eval_set"):
            part = with_allowed(read_input(passed, data.columns), passed.allowed, data.classes)
            if part.weights is not None:
                raise ValueError("its shards have sample_weight, which an eval_set has not")
            batch = like_others(part.batch, is_forest=is_forest, is_typed=is_typed)
            part = replace(part, batch=batch)
            labels = scheme_labels(settings.constraints, flat_labels(passed.y, part), part)
        return Watched(part, labels, known_codes(labels, data.classes)[0])

    def tell(part: Watched) -> tuple[int, tuple[Counter[Any], bool, bool]]:
        strange = unknown_counts(part.labels, part.is_strange)
        return part.batch.n_instances, (strange, part.has_known, None in part.labels)

    watched, answers = agreed(read, tell)
    strange = sum((counts for counts, _, _ in answers), Counter[Any]())
    if not any(has_known for _, has_known, _ in answers):
        nothing = "has no position whose label is known: there is nothing to judge"
        if strange:
            nothing = f"has no label that the model knows, but {next(iter(strange))!r} for one"
        raise ValueError(f"eval_set {nothing}")
    is_loss = settings.eval_metric == "loss"
    if not is_loss and any(has_none for _, _, has_none in answers):
        raise ValueError(
            'eval_set has unknown labels (None): only eval_metric="loss" sums over them'
        )
    effect = "eval_metric sees them, and no prediction is one of them"
    if is_loss:
        effect = "the loss sums over them, as over unknown ones"
    warn_of_unknown(strange, "eval_set", effect)
    return watched


def _passed_eval_set(eval_set: Any) -> Passed:
    if isinstance(eval_set, dict):
        names = ("X", "y", "lengths", "parents", "edge_types", "allowed")
        if unknown := [name for name in eval_set if name not in names]:
            raise ValueError(f"eval_set has {unknown[0]!r}: its keys are {', '.join(names)}")
        if missing := [name for name in ("X", "y") if name not in eval_set]:
            raise ValueError(f"eval_set has no {missing[0]}")
        return Passed(**eval_set)
    is_list = isinstance(eval_set, list) and len(eval_set) > 0
    if is_list and all(isinstance(pair, tuple) and len(pair) == 2 for pair in eval_set):
        if len(eval_set) > 1:
            raise ValueError(f"eval_set has {len(eval_set)} sets: pass one, (X, y)")
        eval_set = eval_set[0]  # as XGBoost has it
    if not isinstance(eval_set, list | tuple) or len(eval_set) != 2:
        raise ValueError("eval_set is not a pair (X, y), nor a dict with X and y")
    return Passed(*eval_set)
