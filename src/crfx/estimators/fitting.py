"""What `fit` does in every labelling estimator before and after it trains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.agreed_input import agreed_input, agreed_rows
from crfx.estimators.class_weight import ClassWeight, class_weights
from crfx.estimators.evaluation import Watched, read_eval_set
from crfx.estimators.inputs import Input, encode, find_classes, flat_labels, weights_of
from crfx.estimators.labelling import LabellingEstimator
from crfx.estimators.more_labels import read_classes
from crfx.estimators.padding import found_padding, warn_of_padding
from crfx.estimators.scheme_labels import scheme_classes, scheme_labels, with_allowed
from crfx.features.columns import Columns
from crfx.features.matrix import take_rows, unwrapped
from crfx.features.words import Numbering
from crfx.inference.feasibility import check_allowed, check_possible
from crfx.model.model import Model
from crfx.objectives.truth import Truth
from crfx.structures import Chain, Forest, Mask
from crfx.structures.constraints import mask_of
from crfx.workers import agreed, count, current


@dataclass(frozen=True, eq=False)
class Training:
    """What is learned from: the batch, its columns, labels and truth, and a model to begin with."""

    data: Input
    columns: Columns
    classes: npt.NDArray[Any]
    truth: Truth
    init_model: LabellingEstimator | None
    mask: Mask | None = None


def read_training(
    order: int,
    X: Any,
    y: Any,
    lengths: Any,
    parents: Any,
    edge_types: Any,
    sample_weight: Any,
    *,
    start: LabellingEstimator | None = None,
    grows: bool = False,
    classes: Any = None,
    numbering: Numbering | None = None,
    class_weight: ClassWeight = None,
    constraints: Any = None,
    allowed: Any = None,
) -> Training:
    """Read and check the arguments of ``fit``.

    ``start`` is the model to begin with.  Where it ``grows``, features may be new.  ``classes`` are
    labels beside those of y, or of ``start``.  ``numbering`` says how dicts and texts become
    columns.  ``constraints`` and ``allowed`` labels, by position, must allow what is true.
    """
    workers = current()
    columns = None if start is None else start.columns_
    rows = agreed_rows(workers, X, lengths, columns, grows=grows, numbering=numbering)
    data = agreed_input(workers, rows, parents, edge_types)
    if not count(workers, data.batch.n_rows):
        raise ValueError("every instance of X is empty: there is nothing to learn from")
    if data.batch.parents is not None and order != 1:
        raise ValueError(
            f"parents are given with order={order}: a node of a forest has one parent and no "
            "sequence of labels before it; use order=1"
        )
    n_instances = data.batch.n_instances
    labels, told = agreed(
        lambda: scheme_labels(constraints, flat_labels(y, data), data, strict=True),
        lambda labels: (n_instances, (set(labels), found_padding(unwrapped(X), labels))),
    )
    warn_of_padding([padding for _, padding in told if padding is not None])
    known = list(set().union(*(own for own, _ in told)))
    if start is not None:
        known = start.classes_.tolist()
    if classes is not None:
        known = [*known, *read_classes(classes)]
    known = scheme_classes(constraints, known)
    distinct = find_classes(known) if start is None or classes is not None else start.classes_
    seen_in = "training"
    if start is not None:
        seen_in = "training before; if it is a new label, name it in classes"
    mask = mask_of(constraints, distinct, is_forest=data.batch.parents is not None)

    def read_truth() -> tuple[Input, Truth]:
        own = with_allowed(data, allowed, distinct)
        truth = Truth(
            own.batch,
            Chain(order) if own.batch.parents is None else Forest(),
            encode(labels, distinct, own, "y", seen_in),
            weights_of(sample_weight, own),
            distinct,
        )
        truth.structure.check(own.batch)
        if start is not None and not grows:
            start.model_.check_structure(own.batch)
        check_allowed(own.batch, truth.structure, truth.labels, mask, distinct)
        return own, truth

    (data, truth), _ = agreed(read_truth, lambda _: (n_instances, None))
    if truth.weights is not None and not truth.weights.all():
        data, truth = _without_weightless(data, truth)
    if not count(workers, data.batch.n_rows):
        raise ValueError(
            "sample_weight is zero for every instance that has positions: there is nothing to "
            "learn from"
        )
    weights = class_weights(class_weight, distinct, truth, workers.sum)
    truth = replace(truth, class_weights=weights)
    return Training(data, data.columns, distinct, truth, start, mask)


def _without_weightless(data: Input, truth: Truth) -> tuple[Input, Truth]:
    """Leave out the instances of weight 0: nothing is to be learned from them, bins included."""
    assert truth.weights is not None
    kept = np.flatnonzero(truth.weights > 0)
    part, rows = truth.take(kept)
    batch = replace(part.batch, X=take_rows(data.batch.X, rows))
    return replace(data, batch=batch), replace(part, batch=batch)


def read_watched(estimator: Any, eval_set: Any, given: Training, model: Model) -> Watched | None:
    """The argument ``eval_set``, which early stopping needs; a part of it may be with any worker,
    None or ``([], [])`` where there is none.
    """
    workers = current()
    if not any(workers.gather(eval_set is not None)):
        if estimator.early_stopping_rounds is not None:
            raise ValueError("early_stopping_rounds needs an eval_set to watch")
        return None
    own = read_eval_set(eval_set, given, estimator.eval_metric, estimator.constraints)
    batch, mask = own.data.batch, given.mask
    structure, n_labels = model.structure(batch), len(given.classes)

    def check() -> Watched:
        model.check_structure(batch)
        try:
            if estimator.eval_metric != "loss":
                check_possible(batch, structure, mask, None, n_labels, estimator.n_jobs)
                return own
            # The only one that asks how probable the truth is.
            found = own.without_impossible(structure, mask, n_labels)
            check_allowed(batch, structure, found.codes, mask, given.classes)
        except ValueError as error:
            raise ValueError(f"eval_set: {error}") from None
        return found

    found, told = agreed(check, lambda found: (batch.n_instances, found.has_known))
    if not any(told):
        label = next(label for label in workers.gather(own.first_strange) if label is not None)
        raise ValueError(
            f"eval_set: constraints forbid what is known beside labels such as {label!r}, which "
            "the model does not know: there is nothing to judge"
        )
    return found
