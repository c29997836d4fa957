"""How good a labelling is. Works on lists of label arrays, one per instance, as `predict` gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def token_accuracy(y_true: Sequence[ArrayLike], y_pred: Sequence[ArrayLike]) -> float:
    """The share of positions, over all instances together, whose label is right.

    >>> token_accuracy([["A", "B"], ["A"]], [["A", "B"], ["B"]])
    0.6666666666666666
    """
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} instances, y_pred has {len(y_pred)}")
    right = total = 0
    for instance, (true, predicted) in enumerate(zip(y_true, y_pred, strict=True)):
        true, predicted = np.asarray(true), np.asarray(predicted)
        for name, labels in (("y_true", true), ("y_pred", predicted)):
            if labels.ndim != 1:
                raise ValueError(
                    f"instance {instance}: {name} must be one-dimensional, "
                    f"has shape {labels.shape}; split a stacked array into instances first"
                )
        if len(true) != len(predicted):
            raise ValueError(
                f"instance {instance}: y_true has {len(true)} labels, y_pred has {len(predicted)}"
            )
        right += int(np.count_nonzero(true == predicted))
        total += len(true)
    if total == 0:
        raise ValueError("there is no position to score: every instance is empty")
    return right / total
