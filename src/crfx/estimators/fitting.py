"""What `fit` does in every labelling estimator before and after it trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.class_weight import ClassWeight, class_weights
from crfx.estimators.evaluation import Watched, read_eval_set
from crfx.estimators.inputs import (
    Input,
    encode,
    find_classes,
    flat_labels,
    read_input,
    weights_of,
)
from crfx.estimators.labelling import LabellingEstimator
from crfx.estimators.more_labels import read_classes
from crfx.estimators.padding import warn_of_padding
from crfx.estimators.scheme_labels import scheme_classes, scheme_labels, with_allowed
from crfx.features import matrices
from crfx.features.columns import Columns
from crfx.features.words import Numbering
from crfx.inference.feasibility import check_allowed, check_possible
from crfx.messages import shown
from crfx.model import Model
from crfx.objectives.truth import Truth
from crfx.structures import Chain, Forest, Mask
from crfx.structures.constraints import mask_of
from crfx.trainers.callbacks import Callback


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
    columns = None if start is None else start.columns_
    data = read_input(
        X,
        lengths,
        parents,
        edge_types,
        columns=columns,
        training=True,
        grows=grows,
        numbering=numbering,
    )
    if not data.batch.n_rows:
        raise ValueError("every instance of X is empty: there is nothing to learn from")
    if data.batch.parents is not None and order != 1:
        raise ValueError(
            f"parents are given with order={order}: a node of a forest has one parent and no "
            "sequence of labels before it; use order=1"
        )
    labels = scheme_labels(constraints, flat_labels(y, data), data, strict=True)
    warn_of_padding(matrices.unwrapped(X), labels)
    known = labels if start is None else start.classes_.tolist()
    if classes is not None:
        known = [*known, *read_classes(classes)]
    known = scheme_classes(constraints, known)
    distinct = find_classes(known) if start is None or classes is not None else start.classes_
    seen_in = "training"
    if start is not None:
        seen_in = "training before; if it is a new label, name it in classes"
    data = with_allowed(data, allowed, distinct)
    truth = Truth(
        data.batch,
        Chain(order) if data.batch.parents is None else Forest(),
        encode(labels, distinct, data, "y", seen_in),
        weights_of(sample_weight, data),
        distinct,
    )
    truth.structure.check(data.batch)
    if start is not None and not grows:
        start.model_.check_structure(data.batch)
    is_forest = data.batch.parents is not None
    mask = mask_of(constraints, distinct, is_forest=is_forest)
    check_allowed(data.batch, truth.structure, truth.labels, mask, distinct)
    if truth.weights is not None and not truth.weights.all():
        data, truth = _without_weightless(data, truth)
    truth = replace(truth, class_weights=class_weights(class_weight, distinct, truth))
    return Training(data, data.columns, distinct, truth, start, mask)


def _without_weightless(data: Input, truth: Truth) -> tuple[Input, Truth]:
    """Leave out the instances of weight 0: nothing is to be learned from them, bins included."""
    assert truth.weights is not None
    kept = np.flatnonzero(truth.weights > 0)
    if not truth.batch.lengths[kept].any():
        raise ValueError(
            "sample_weight is zero for every instance that has positions: there is nothing to "
            "learn from"
        )
    part, rows = truth.take(kept)
    batch = replace(part.batch, X=matrices.take_rows(data.batch.X, rows))
    return replace(data, batch=batch), replace(part, batch=batch)


def read_watched(estimator: Any, eval_set: Any, given: Training, model: Model) -> Watched | None:
    """The argument ``eval_set``, which early stopping needs."""
    if eval_set is None:
        if estimator.early_stopping_rounds is not None:
            raise ValueError("early_stopping_rounds needs an eval_set to watch")
        return None
    found = read_eval_set(
        eval_set,
        given.columns,
        given.classes,
        estimator.eval_metric,
        estimator.constraints,
    )
    batch, mask = found.data.batch, given.mask
    model.check_structure(batch)
    structure, n_labels = model.structure(batch), len(given.classes)
    try:
        if estimator.eval_metric == "loss":  # the only one that asks how probable the truth is
            found = found.without_impossible(structure, mask, n_labels)
            check_allowed(batch, structure, found.codes, mask, given.classes)
        else:
            check_possible(batch, structure, mask, None, n_labels, estimator.n_jobs)
    except ValueError as error:
        raise ValueError(f"eval_set: {error}") from None
    return found


def listed_callbacks(callbacks: Sequence[Callback] | None) -> list[Callback]:
    """The argument ``callbacks``."""
    if callable(callbacks):
        raise ValueError("callbacks is one function: pass a list, [callback]")
    if callbacks is not None and not isinstance(callbacks, list | tuple):
        raise ValueError(f"callbacks is {shown(callbacks)}: pass a list of functions, or None")
    for each in callbacks or ():
        if not callable(each) or isinstance(each, type):
            raise ValueError(f"callbacks holds {shown(each)}, which is no function of the progress")
    return list(callbacks or ())


@contextmanager
def as_before_unless(learned: Callable[[], bool], estimator: Any) -> Iterator[None]:
    """Where fitting fails before anything is learned, leave the estimator as if never called."""
    arguments = estimator.get_params(deep=False)
    before = {name: value for name, value in vars(estimator).items() if name not in arguments}
    try:
        yield
    except BaseException:
        if not learned():
            for name in [name for name in vars(estimator) if name not in arguments]:
                delattr(estimator, name)
            for name, value in before.items():
                setattr(estimator, name, value)
        raise
