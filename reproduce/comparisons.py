"""Comparisons of two rows of a table, item by item on their common test data.

In the file of the table::

    [[comparisons]]
    title = "NDCG@5"
    curve = "usual_5"                # of both rows: a number for each query
    pairs = [["trees-kl", "xgboost"]]

The differences, first less second, of all units that both have done are pooled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reproduce.fields import Fields

RESAMPLES = 10_000
EXPLAINED = (
    "Row by row on the same queries of all folds, in points, the first less the second: the mean "
    "difference; the interval that holds the means of 95 % of "
    f"{RESAMPLES:,} samples of as many queries, drawn with replacement; how many queries the first "
    "orders better, equally and worse; and how probable it is that fair coins fall at least as "
    "unevenly as the queries that differ."
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Pairs of rows, compared by one of their curves."""

    title: str
    curve: str
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two rows, in points (hundredths)."""

    mean: float
    interval: tuple[float, float]
    better: int
    equal: int
    worse: int
    sign_test: float


class HasCurves(Protocol):
    """The part of a unit of a row that comparisons need."""

    @property
    def curves(self) -> dict[str, list[float]]:
        """Name of a curve: its values, one per round."""
        ...


def read_comparison(fields: Fields, rows: Sequence[str]) -> Comparison:
    """Read one of `[[comparisons]]`, of a table with such rows."""
    title, curve = fields.text("title"), fields.text("curve")
    fields.place = f"comparison {title!r}"
    pairs = []
    for pair in fields.values("pairs", []):
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"{fields.place}: {pair!r} is not a pair of rows")
        for row in pair:
            if row not in rows:
                raise ValueError(f"{fields.place}: there is no row {row!r}")
        pairs.append((pair[0], pair[1]))
    fields.nothing_left()
    return Comparison(title, curve, tuple(pairs))


def compare(
    one: Mapping[str, HasCurves], other: Mapping[str, HasCurves], curve: str
) -> Difference | None:
    """Compare two rows, each by unit; None where they have no unit in common."""
    pairs = [
        (one[unit].curves[curve], other[unit].curves[curve])
        for unit in one
        if unit in other and curve in one[unit].curves and curve in other[unit].curves
    ]
    if not pairs:
        return None
    first, second = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    return difference(first, second)


def difference(
    first: Sequence[float] | np.ndarray, second: Sequence[float] | np.ndarray
) -> Difference:
    """Return the difference of paired numbers.

    >>> found = difference([0.5, 0.5, 1.0], [0.5, 0.25, 0.5])
    >>> found.mean, found.better, found.equal, found.worse, found.sign_test
    (25.0, 2, 1, 0, 0.5)
    """
    from scipy.stats import binomtest

    gap = 100 * (np.asarray(first, np.float64) - np.asarray(second, np.float64))
    random = np.random.default_rng(0)
    # Each sample as a count of every query: their means are one product.
    counts = random.multinomial(len(gap), np.full(len(gap), 1 / len(gap)), size=RESAMPLES)
    low, high = np.percentile(counts @ gap / len(gap), [2.5, 97.5])
    better, worse = int((gap > 0).sum()), int((gap < 0).sum())
    p = float(binomtest(better, better + worse).pvalue) if better + worse else 1.0
    return Difference(
        float(gap.mean()), (float(low), float(high)), better, len(gap) - better - worse, worse, p
    )
