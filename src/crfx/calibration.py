"""Calibration of probabilities: reliability bins and the expected calibration error.

Of all labels predicted with probability p, a share p should be right (Guo et al. 2017).  Labels are
counted instance by instance, in constant memory, or from lists as in `crfx.metrics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.errors import BadInstance
from crfx.metrics import pairs_of_labels

ROUNDING = 1e-3
"""How far from 0 or 1 a probability may be by rounding."""


@dataclass(frozen=True)
class Bin:
    """Labels whose probability lies above ``low`` and up to ``high`` (the first bin has 0 too).

    ``probability`` is their mean probability, ``right`` the share that is right; both 0 where
    ``count`` is.
    """

    low: float
    high: float
    count: int
    probability: float
    right: float

    @property
    def gap(self) -> float:
        """The difference of both; positive where the model is surer than it should be."""
        return self.probability - self.right


class Reliability:
    """Counts of right labels by their probability, in ``n_bins`` bins of equal width.

    >>> counted = Reliability(n_bins=2)
    >>> counted.add([0.9, 0.7, 0.4], [True, False, True])
    >>> [(each.count, round(each.gap, 3)) for each in counted.bins()]
    [(1, -0.6), (2, 0.3)]
    >>> round(counted.error(), 3)
    0.4
    """

    def __init__(self, n_bins: int = 10) -> None:
        whole = isinstance(n_bins, int | np.integer) and not isinstance(n_bins, bool)
        if not whole or n_bins < 1:
            raise ValueError(f"n_bins is {n_bins!r}: it must be a whole number of 1 or more")
        self.n_bins = int(n_bins)
        self._edges = np.linspace(0.0, 1.0, self.n_bins + 1)
        self._sums = np.zeros((3, self.n_bins))
        """How many, the sum of their probabilities, how many are right."""

    def add(self, probabilities: npt.ArrayLike, right: npt.ArrayLike) -> None:
        """Count some labels.

        Parameters
        ----------
        probabilities : (labels,) numbers from 0 to 1
        right : (labels,) bool
            Whether each label is right.
        """
        p, good = np.asarray(probabilities, np.float64), np.asarray(right, bool)
        if p.ndim != 1 or p.shape != good.shape:
            raise ValueError(
                f"probabilities have shape {p.shape} and right has {good.shape}: both must be one "
                "entry a label"
            )
        p = _checked(p)
        at = np.clip(np.searchsorted(self._edges, p, side="left") - 1, 0, self.n_bins - 1)
        for row, weights in zip(self._sums, (None, p, good), strict=True):
            row += np.bincount(at, weights, self.n_bins)

    @property
    def n_labels(self) -> int:
        """The number of labels that were counted."""
        return int(self._sums[0].sum())

    def bins(self) -> list[Bin]:
        """Return all bins, from the least probable."""
        counts = np.maximum(self._sums[0], 1)
        means, shares = self._sums[1] / counts, self._sums[2] / counts
        columns = (self._edges[:-1], self._edges[1:], self._sums[0], means, shares)
        return [
            Bin(float(low), float(high), int(count), float(mean), float(share))
            for low, high, count, mean, share in zip(*columns, strict=True)
        ]

    def error(self) -> float:
        """Return the expected calibration error: the mean size of gaps, weighted by counts."""
        if not self.n_labels:
            raise ValueError("there is no label to judge by: every instance is empty, or unknown")
        return float(np.abs(self._sums[1] - self._sums[2]).sum() / self.n_labels)


def _checked(p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return probabilities clipped to 0 and 1, which sums in float32 may exceed a little."""
    bad = p[~((p >= -ROUNDING) & (p <= 1 + ROUNDING))]  # NaN is among them
    if len(bad):
        raise ValueError(f"{bad[0]} is no probability: it must lie between 0 and 1")
    return np.clip(p, 0.0, 1.0)


def reliability(
    y_true: Sequence[Any], y_pred: Sequence[Any], probabilities: Sequence[Any], *, n_bins: int = 10
) -> Reliability:
    """Count the labels of all instances by their probability.

    Parameters
    ----------
    y_true : list of lists of labels, one per instance
        Positions with None do not count.
    y_pred : list of lists of labels
        The predicted labels.
    probabilities : list of (length,) arrays
        The probability of every label of ``y_pred``, such as ``labels`` of
        ``predict_confidence(X)``.
    n_bins : int, default 10
        Bins of equal width.

    Returns
    -------
    Reliability

    Examples
    --------
    >>> counted = reliability([["A", "B"]], [["A", "A"]], [[0.9, 0.6]], n_bins=2)
    >>> [each.count for each in counted.bins()]
    [0, 2]
    """
    counted = Reliability(n_bins)
    if len(probabilities) != len(y_pred):
        raise ValueError(
            f"y_pred has {len(y_pred)} instances, probabilities have {len(probabilities)}"
        )
    for instance, true, predicted in pairs_of_labels(y_true, y_pred):
        p = np.asarray(probabilities[instance], np.float64)
        if p.shape != predicted.shape:
            raise BadInstance(
                instance,
                f"y_pred has {len(predicted)} labels, probabilities have shape {p.shape}; pass "
                "that of the label at every position",
            )
        known = np.array([label is not None for label in true.tolist()], dtype=bool)
        try:
            counted.add(p[known], (true == predicted)[known])
        except ValueError as error:
            raise BadInstance(instance, str(error)) from None
    return counted


def expected_calibration_error(
    y_true: Sequence[Any], y_pred: Sequence[Any], probabilities: Sequence[Any], *, n_bins: int = 10
) -> float:
    """Return the mean distance of probability and share of right labels, by bin.

    It is 0 for perfect calibration, and depends on the bins.

    Parameters
    ----------
    y_true, y_pred, probabilities, n_bins
        As in `reliability`.

    Returns
    -------
    float

    Examples
    --------
    >>> expected_calibration_error([["A", "B"]], [["A", "A"]], [[0.75, 0.75]])
    0.25
    """
    return reliability(y_true, y_pred, probabilities, n_bins=n_bins).error()
