"""Which labels were taken for which, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.tag_report import TagReport


@dataclass(frozen=True)
class Confusion:
    """``counts`` (labels, labels): how often a true label (row) was found as another (column)."""

    labels: list[str]
    counts: npt.NDArray[np.int64]

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """(labels, labels) of the row; 0 where it is empty."""
        return np.asarray(self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1))


def confusion(report: TagReport, names: Sequence[Any]) -> Confusion:
    """Of all that was counted: the labels ``names`` of a model that occur, then those it does not
    know.
    """
    seen = report.confusion()
    occur = list(report.labels())
    known = list(map(str, names))
    labels = [name for name in known if name in occur]
    labels += [name for name in occur if name not in known]
    counts = [[seen.get(true, {}).get(found, 0) for found in labels] for true in labels]
    return Confusion(labels, np.array(counts, np.int64).reshape(len(labels), len(labels)))
