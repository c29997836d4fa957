"""Scores as sums: what they are without any feature, and what every feature adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array64 = npt.NDArray[np.float64]
Names = Callable[[int], str]
"""The name of a column of X, by its number."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Terms:
    """Scores of some outputs (labels) as a sum: ``base`` plus the ``contributions`` of features.

    ``base`` (outputs,) is the score without any feature; ``contributions`` (active, outputs).  Of
    every feature that adds something: its number in ``columns`` (active,), -1 where it is not one
    column of X at this very position; its name; and its value in ``inputs`` (active,), of objects,
    None where it is missing.
    """

    base: Array64
    columns: npt.NDArray[np.int64]
    features: list[str]
    inputs: npt.NDArray[np.object_]
    contributions: Array64

    @classmethod
    def of(
        cls, base: Any, columns: Any, features: Sequence[str], inputs: Any, values: Any
    ) -> Terms:
        """Return terms from plain values, without features that add nothing to any output."""
        base, values = np.asarray(base, np.float64), np.asarray(values, np.float64)
        values = values.reshape(-1, len(base))
        kept = np.flatnonzero(values.any(axis=1))
        return cls(
            base=base,
            columns=np.asarray(columns, np.int64)[kept],
            features=[features[k] for k in kept.tolist()],
            inputs=_objects([inputs[k] for k in kept.tolist()]),
            contributions=values[kept],
        )

    @classmethod
    def nothing(cls, n_outputs: int) -> Terms:
        """Return a sum of nothing."""
        return cls.of(np.zeros(n_outputs), [], [], [], np.zeros((0, n_outputs)))

    def take(self, outputs: npt.NDArray[np.int64]) -> Terms:
        """Return the terms of some outputs."""
        values = self.contributions[:, outputs]
        return Terms.of(self.base[outputs], self.columns, self.features, self.inputs, values)

    def plus(self, other: Terms) -> Terms:
        """Return the sum of two terms; features of the same name are added up."""
        place: dict[str, int] = {}
        both = [self, other]
        at = [[place.setdefault(name, len(place)) for name in terms.features] for terms in both]
        firsts = np.unique(np.concatenate(at).astype(np.int64), return_index=True)[1]
        total = np.zeros((len(place), len(self.base)))
        for terms, places in zip(both, at, strict=True):
            np.add.at(total, places, terms.contributions)
        return Terms.of(
            self.base + other.base,
            np.concatenate([terms.columns for terms in both])[firsts],
            list(place),
            np.concatenate([terms.inputs for terms in both])[firsts],
            total,
        )


def _objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    objects = np.empty(len(values), dtype=object)
    objects[:] = [value.item() if isinstance(value, np.generic) else value for value in values]
    return objects
