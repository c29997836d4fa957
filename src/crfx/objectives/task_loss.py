"""Task losses: what a labelling costs, given the truth.

Two kinds.  A `PositionLoss` is a sum over positions of costs[true label, predicted label], 0 for
the true one: exact sums over all labellings exist for it.  A `WholeLoss` judges a labelling as a
whole: sums run over samples or k-best lists.  Positions whose label is unknown cost nothing.

These objects are settings, kept by estimators as they are; `costs` binds them to data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.metrics import spans
from crfx.scores import Array64

MOST = 1e9
"""The largest cost of a mistake: sums of larger costs would leave the range of scores."""
_COSTS_ARE = "a mistake costs between 0 and 1e9"


def is_number(value: Any) -> bool:
    """Return whether a setting is a real number, not a bool."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _check_normalize(value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"normalize is {value!r}: it must be True or False")


class PositionLoss(ABC):
    """A loss that is a sum over positions."""

    normalize: bool

    @abstractmethod
    def costs(self, classes: npt.NDArray[Any]) -> Array64:
        """Return (K, K) the cost of the second label where the first is true; 0 on the diagonal."""


class WholeLoss(ABC):
    """A loss of whole labellings, between 0 and 1."""

    @abstractmethod
    def losses(self, true: npt.NDArray[Any], predicted: list[npt.NDArray[Any]]) -> Array64:
        """Return (candidates,) the losses of labels (length,) of one instance."""


TaskLoss = PositionLoss | WholeLoss


@dataclass(frozen=True)
class Hamming(PositionLoss):
    """The number of wrong positions.

    Parameters
    ----------
    weights : dict, optional
        The cost of a mistake by true label; 1 for labels that are not named.
    normalize : bool
        Divide by the length of the instance: the share of wrong positions.  It changes the scale
        of weights and temperatures that objectives put on the loss.

    Examples
    --------
    >>> Hamming(weights={"B": 2.0}).costs(np.array(["A", "B"]))
    array([[0., 1.],
           [2., 0.]])
    """

    weights: Mapping[Any, float] | None = None
    normalize: bool = False

    def __post_init__(self) -> None:
        if self.weights is not None and not isinstance(self.weights, Mapping):
            raise ValueError(f"weights is {self.weights!r}: pass a dict from labels to weights")
        for label, weight in (self.weights or {}).items():
            if not is_number(weight) or not 0 <= weight <= MOST:
                raise ValueError(f"the weight of {label!r} is {weight!r}: {_COSTS_ARE}")
        _check_normalize(self.normalize)

    def costs(self, classes: npt.NDArray[Any]) -> Array64:
        """Return the weight of the true label where the other differs."""
        costs, codes = np.ones(len(classes)), {label: k for k, label in enumerate(classes.tolist())}
        for label, weight in (self.weights or {}).items():
            if label not in codes:
                raise ValueError(f"task_loss has a weight for {label!r}, a label that y has not")
            costs[codes[label]] = weight
        return costs[:, None] * (1.0 - np.eye(len(classes)))


@dataclass(frozen=True, eq=False)
class CostMatrix(PositionLoss):
    """Any cost of confusing two labels.

    Parameters
    ----------
    matrix : (K, K) numbers
        ``matrix[i][j]`` is the cost of label j where label i is true: from 0 to 1e9, 0 on the
        diagonal.  A data frame is read by the labels of its rows and columns.
    normalize : bool
        Divide by the length of the instance.
    labels : list, optional
        Labels in the order of rows and columns; None: sorted, the order of ``classes_``.
    """

    matrix: Any
    normalize: bool = False
    labels: Any = None

    def __post_init__(self) -> None:
        try:
            matrix = np.asarray(self.matrix)
        except ValueError:
            raise ValueError("the cost matrix has rows of unequal lengths") from None
        if matrix.dtype.kind not in "iuf" or not ((matrix >= 0) & (matrix <= MOST)).all():
            raise ValueError(f"the cost matrix holds something else than costs: {_COSTS_ARE}")
        _check_normalize(self.normalize)
        if hasattr(self.matrix, "columns"):
            rows, columns = self.matrix.index.tolist(), self.matrix.columns.tolist()
            if rows != columns:
                raise ValueError("the cost matrix has other labels for its rows than its columns")
            object.__setattr__(self, "labels", rows if self.labels is None else self.labels)

    def costs(self, classes: npt.NDArray[Any]) -> Array64:
        """Return the matrix in the order of labels, checked."""
        matrix, n = np.asarray(self.matrix, np.float64), len(classes)
        if self.labels is not None:
            matrix = matrix[np.ix_(*[self._order(classes.tolist())] * 2)]
        if matrix.shape != (n, n):
            raise ValueError(
                f"task_loss: the cost matrix has shape {matrix.shape}, but y has {n} labels: it "
                f"must be ({n}, {n}), in the order of sorted labels"
            )
        if np.diagonal(matrix).any():
            label = classes.tolist()[np.flatnonzero(np.diagonal(matrix))[0]]
            raise ValueError(f"task_loss: the right label {label!r} must cost 0")
        return matrix

    def _order(self, classes: list[Any]) -> list[int]:
        """Return the place of each label in the matrix."""
        labels = list(self.labels)
        if len(labels) != len(np.asarray(self.matrix)) or len(set(labels)) < len(labels):
            raise ValueError("task_loss: the cost matrix needs one label for every row, each once")
        if missing := [label for label in classes if label not in labels]:
            raise ValueError(f"task_loss: the cost matrix has no label {missing[0]!r}, which y has")
        return [labels.index(label) for label in classes]


@dataclass(frozen=True)
class SpanF1(WholeLoss):
    """1 - F1 of the spans of an instance (labels in BIO or BIOES); 0 where neither has any."""

    def losses(self, true: npt.NDArray[Any], predicted: list[npt.NDArray[Any]]) -> Array64:
        """Return 1 - F1 of each."""
        true_spans, losses = spans(true), np.zeros(len(predicted))
        for number, labels in enumerate(predicted):
            predicted_spans = spans(labels)
            if true_spans or predicted_spans:
                right = len(true_spans & predicted_spans)
                losses[number] = 1.0 - 2 * right / (len(true_spans) + len(predicted_spans))
        return losses


@dataclass(frozen=True)
class ZeroOne(WholeLoss):
    """1 where any label of an instance is wrong."""

    def losses(self, true: npt.NDArray[Any], predicted: list[npt.NDArray[Any]]) -> Array64:
        """Return 1 for those that differ from the truth."""
        return np.array([float((labels != true).any()) for labels in predicted])


NAMED: dict[str, TaskLoss] = {"hamming": Hamming(), "span_f1": SpanF1(), "zero_one": ZeroOne()}


def parse(task_loss: Any) -> TaskLoss:
    """Read the estimators' argument ``task_loss``; None is the Hamming loss."""
    if task_loss is None:
        return NAMED["hamming"]
    if isinstance(task_loss, PositionLoss | WholeLoss):
        return task_loss
    if isinstance(task_loss, str) and task_loss in NAMED:
        return NAMED[task_loss]
    choices = ", ".join(map(repr, NAMED))
    value = repr(task_loss) if isinstance(task_loss, str) else f"a {type(task_loss).__name__}"
    raise ValueError(
        f"task_loss is {value}: choose one of {choices}, Hamming(weights={{label: cost}}) or "
        "CostMatrix(array) of crfx.objectives"
    )


def to_plain(task_loss: Any) -> Any:
    """Return a name or a dict of settings, for JSON; a user's own is needed in training only."""
    if task_loss is None or isinstance(task_loss, str):
        return task_loss
    if type(task_loss) is Hamming:
        weights = task_loss.weights
        pairs = None if weights is None else [[label, float(w)] for label, w in weights.items()]
        return {"task_loss": "hamming", "weights": pairs, "normalize": task_loss.normalize}
    if type(task_loss) is CostMatrix:
        matrix = np.asarray(task_loss.matrix, np.float64).tolist()
        labels = None if task_loss.labels is None else list(task_loss.labels)
        settings = {"normalize": task_loss.normalize, "labels": labels}
        return {"task_loss": "matrix", "matrix": matrix, **settings}
    return next((name for name, known in NAMED.items() if type(known) is type(task_loss)), None)


def from_plain(value: Any) -> Any:
    """Return what `to_plain` wrote."""
    if not isinstance(value, dict):
        return value
    settings = dict(value)
    kind = settings.pop("task_loss")
    if kind not in ("hamming", "matrix"):
        raise ValueError(f"it has a task loss {kind!r}")
    if kind == "matrix":
        return CostMatrix(**settings)
    if settings["weights"] is not None:
        settings["weights"] = dict(settings["weights"])
    return Hamming(**settings)
