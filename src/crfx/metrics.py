"""Measures of labellings: lists of label arrays, one per instance, as `predict` returns them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from crfx.errors import BadInstance

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_AVERAGES = ("macro", "weighted", "micro")


def token_accuracy(
    y_true: Sequence[ArrayLike],
    y_pred: Sequence[ArrayLike],
    sample_weight: Sequence[float] | NDArray[Any] | None = None,
) -> float:
    """Return the share of positions, over all instances together, whose label is right.

    Parameters
    ----------
    y_true : list of lists of labels, one per instance
        Positions with None, whose label is unknown, do not count.
    y_pred : list of lists of labels
        As `predict` returns them.
    sample_weight : (instances,) numbers, optional
        Weights of instances; None: 1 each.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If no position counts, or lengths differ.

    Examples
    --------
    >>> token_accuracy([["A", "B"], ["A"]], [["A", "B"], ["B"]])
    0.6666666666666666
    >>> token_accuracy([["A", "B"], ["A"]], [["A", "B"], ["B"]], sample_weight=[1, 2])
    0.5
    """
    right = total = 0.0
    weights = _weights(sample_weight, y_true)
    for instance, true, predicted in pairs_of_labels(y_true, y_pred):
        weight, known = weights[instance], _is_known(true)
        right += weight * int(np.count_nonzero((true == predicted) & known))
        total += weight * int(known.sum())
    if total == 0:
        raise ValueError(_nothing("position", weights))
    return float(right / total)


def sequence_accuracy(
    y_true: Sequence[ArrayLike],
    y_pred: Sequence[ArrayLike],
    sample_weight: Sequence[float] | NDArray[Any] | None = None,
) -> float:
    """Return the share of instances all of whose labels are right.

    Parameters
    ----------
    y_true : list of lists of labels, one per instance
        Unknown labels (None) may be any; instances without a known label do not count.
    y_pred : list of lists of labels
        As `predict` returns them.
    sample_weight : (instances,) numbers, optional
        Weights of instances; None: 1 each.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If no instance counts, or lengths differ.

    Examples
    --------
    >>> sequence_accuracy([["A", "B"], ["A"]], [["A", "B"], ["B"]])
    0.5
    >>> sequence_accuracy([["A", "B"], ["A"]], [["A", "B"], ["B"]], sample_weight=[3, 1])
    0.75
    """
    right = total = 0.0
    weights = _weights(sample_weight, y_true)
    for instance, true, predicted in pairs_of_labels(y_true, y_pred):
        weight, known = weights[instance], _is_known(true)
        right += weight * bool(known.any() and (true == predicted)[known].all())
        total += weight * bool(known.any())
    if total == 0:
        raise ValueError(_nothing("instance", weights))
    return float(right / total)


def label_f1(
    y_true: Sequence[ArrayLike],
    y_pred: Sequence[ArrayLike],
    *,
    average: Literal["macro", "weighted", "micro"] = "macro",
    labels: Sequence[Any] | None = None,
) -> float:
    """Return the F1 of labels: scikit-learn's ``f1_score`` of all positions together.

    Parameters
    ----------
    y_true : list of lists of labels, one per instance
        Positions with None, whose label is unknown, do not count.
    y_pred : list of lists of labels
        As `predict` returns them.
    average : "macro", "weighted" or "micro", default "macro"
        Over labels: "macro" counts each alike, "weighted" by how often it is true, "micro" adds the
        counts up first.
    labels : list of labels, optional
        The labels that count, for example all but "O"; one that is neither true nor predicted has
        an F1 of 0.  None: all that occur.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If no position counts, or lengths differ.

    Examples
    --------
    >>> label_f1([["A", "B"], ["A"]], [["A", "B"], ["B"]])
    0.6666666666666666
    >>> label_f1([["A", "B"], ["A"]], [["A", "B"], ["B"]], labels=["B"])
    0.6666666666666666
    """
    from sklearn.metrics import f1_score

    if average not in _AVERAGES:
        choices = ", ".join(map(repr, _AVERAGES))
        raise ValueError(f"average is {average!r}: choose one of {choices}")
    all_true: list[Any] = []
    all_predicted: list[Any] = []
    for _, true, predicted in pairs_of_labels(y_true, y_pred):
        known = _is_known(true)
        all_true += true[known].tolist()
        all_predicted += predicted[known].tolist()
    if not all_true:
        raise ValueError(_nothing("position"))
    if labels is not None and not {*all_true, *all_predicted}.intersection(labels):
        raise ValueError(f"none of the labels {list(labels)!r} is there, true or found")
    every = dict.fromkeys([*all_true, *all_predicted, *(() if labels is None else labels)])
    code_of = {label: code for code, label in enumerate(every)}
    counted = None if labels is None else [code_of[label] for label in labels]
    codes = ([code_of[label] for label in part] for part in (all_true, all_predicted))
    return float(f1_score(*codes, average=average, labels=counted, zero_division=0.0))


def _weights(
    sample_weight: Sequence[float] | NDArray[Any] | None, y_true: Sequence[ArrayLike]
) -> NDArray[np.float64]:
    """Return (instances,) weights, 1 by default."""
    if sample_weight is None:
        return np.ones(len(y_true))
    if len(sample_weight) != len(y_true):
        raise ValueError(
            f"sample_weight has {len(sample_weight)} entries, y_true has {len(y_true)} instances"
        )
    return np.asarray(sample_weight, np.float64)


def _nothing(unit: str, weights: NDArray[np.float64] | None = None) -> str:
    """Return the error that there is nothing to measure."""
    if weights is not None and (weights == 0).any():
        return f"there is no {unit} to score: the weights of all that has known labels are 0"
    return f"there is no {unit} to score: every instance is empty, or unknown"


def _is_known(labels: NDArray[Any]) -> NDArray[np.bool_]:
    return np.array([label is not None for label in labels.tolist()], dtype=bool)


def pairs_of_labels(
    y_true: Sequence[ArrayLike], y_pred: Sequence[ArrayLike]
) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
    """Yield number, true labels and predicted labels of every instance.

    Parameters
    ----------
    y_true, y_pred : list of lists of labels, one per instance

    Yields
    ------
    (instance, true, predicted)
        The number from 0 on, and two (length,) arrays.

    Raises
    ------
    ValueError
        If lengths differ.

    Examples
    --------
    >>> for instance, true, predicted in pairs_of_labels([["A", "B"]], [["A", "A"]]):
    ...     print(instance, true == predicted)
    0 [ True False]
    """
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} instances, y_pred has {len(y_pred)}")
    for instance, pair in enumerate(zip(y_true, y_pred, strict=True)):
        true, predicted = map(np.asarray, pair)
        for name, labels in (("y_true", true), ("y_pred", predicted)):
            if labels.ndim != 1:
                raise BadInstance(
                    instance,
                    f"{name} must be one-dimensional, has shape {labels.shape}; split a stacked "
                    "array into instances first",
                )
        if len(true) != len(predicted):
            raise BadInstance(
                instance, f"y_true has {len(true)} labels, y_pred has {len(predicted)}"
            )
        yield instance, true, predicted


def spans(labels: Sequence[str] | NDArray[Any]) -> set[tuple[int, int, str]]:
    """Return the labelled spans of one instance, by conlleval's rule.

    It reads IOB1, IOB2 and IOBES alike: a span ends where the type changes, before B and S, and
    after E and S.

    Parameters
    ----------
    labels : list of str
        "O", or one of B, I, E and S, alone or followed by a hyphen and a type.

    Returns
    -------
    set of (first, last, type)
        Positions from 0 on, both inclusive.

    Raises
    ------
    ValueError
        If a label marks no span.

    Examples
    --------
    >>> sorted(spans(["I-PER", "I-PER", "O", "B-LOC", "B-LOC"]))
    [(0, 1, 'PER'), (3, 3, 'LOC'), (4, 4, 'LOC')]
    """
    complete = set()
    begin, open_type, closed = 0, "", True
    for position, label in enumerate([*labels, "O"]):
        tag, _, kind = str(label).partition("-")
        if tag not in ("B", "I", "E", "S") and label != "O":
            raise ValueError(
                f"position {position}: {str(label)!r} marks no span: labels are 'O', 'B-TYPE', "
                "'I-TYPE', 'E-TYPE' or 'S-TYPE'"
            )
        inside = label != "O"
        if not closed and (not inside or kind != open_type or tag in ("B", "S")):
            complete.add((begin, position - 1, open_type))
            closed = True
        if inside:
            if closed:
                begin, open_type, closed = position, kind, False
            if tag in ("E", "S"):
                complete.add((begin, position, open_type))
                closed = True
    return complete


def span_f1(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> float:
    """Return the F1 of spans, which are right if their ends and type are (CoNLL's rule).

    Parameters
    ----------
    y_true : list of lists of str, one per instance
        Labels as `spans` reads them.  Instances with an unknown label (None) do not count: a span
        might reach over it.
    y_pred : list of lists of str
        As `predict` returns them.

    Returns
    -------
    float
        From 0 to 1; 0 if there are no spans.

    Raises
    ------
    ValueError
        If no instance counts, or lengths differ.

    Examples
    --------
    >>> span_f1([["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-LOC"]])
    0.6666666666666666
    """
    right = n_predicted = n_true = n_judged = 0
    for instance, true, predicted in pairs_of_labels(y_true, y_pred):
        if not _is_known(true).all():
            continue
        n_judged += 1
        try:
            a, b = spans(true), spans(predicted)
        except ValueError as error:
            raise ValueError(f"instance {instance}, {error}") from None
        right += len(a & b)
        n_true += len(a)
        n_predicted += len(b)
    if len(y_true) and not n_judged:
        raise ValueError("there is no instance to score: every one has an unknown label")
    return 2 * right / (n_predicted + n_true) if n_predicted + n_true else 0.0
