"""Scores by hidden units as sums over features: integrated gradients, in closed form.

Plain gradient times input does not add up to the score, since units bend.  The mean gradient along
the straight line from the input 0 does (Sundararajan, Taly and Yan 2017, Eq. 1), and a unit sees
nothing of the features but their weighted sum z: along the line it goes from g(b) to g(b + z), so
its mean slope is (g(b + z) - g(b)) / z, and feature j gets its share w_j x_j of z.  No quadrature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit

from crfx.features.conjunctions import canonical
from crfx.terms import Names, Terms

Array64 = npt.NDArray[np.float64]
INTEGRATED = "gradient × input, integrated from the input 0"
SHORTEST_STEP = 1e-5
"""Of z: below it the quotient would lose digits, and the slope in the middle is as good."""


def _softplus(x: Array64) -> Array64:
    return np.logaddexp(0.0, x)


def _relu(x: Array64) -> Array64:
    return np.maximum(x, 0.0)


UNITS: dict[str, tuple[Callable[[Array64], Array64], Callable[[Array64], Array64]]] = {
    "softplus": (_softplus, expit),
    "relu": (_relu, lambda x: (x > 0).astype(np.float64)),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "sigmoid": (expit, lambda x: expit(x) * expit(-x)),
}
"""By activation: what a unit gives, and its slope."""


def hidden_terms(
    X: Any, parts: dict[str, npt.NDArray[Any]], activation: str, names: Names
) -> Iterator[Terms]:
    """Per row of X, dense or CSR: the scores (labels,) as a sum; ``parts`` as in `HiddenShape`.

    O(entries of X * units * labels).
    """
    wide = {name: part.astype(np.float64) for name, part in parts.items()}
    X = canonical(sparse.csr_matrix(X))
    base = wide["constant"] + _added(activation, wide, np.zeros(len(wide["bias"]))).sum(axis=0)
    for row in range(X.shape[0]):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        columns, values = X.indices[entries], X.data[entries].astype(np.float64)
        to_units = wide["weights"][columns] * values[:, None]
        found = to_units @ _mean_slopes(activation, wide, to_units.sum(axis=0))
        if "skip" in wide:
            found = found + wide["skip"][columns] * values[:, None]
        yield Terms.of(base, columns, list(map(names, columns.tolist())), values, found)


def _added(activation: str, parts: dict[str, Array64], z: Array64) -> Array64:
    """(units, labels): what units whose features sum up to ``z`` (units,) add to the scores."""
    function, _ = UNITS[activation]
    inputs = (parts["bias"] + z)[:, None]
    if activation in ("softplus", "relu"):  # the label's weight is inside
        return function(inputs + parts["to_label"])
    return function(inputs) * parts["to_label"]


def _mean_slopes(activation: str, parts: dict[str, Array64], z: Array64) -> Array64:
    """(units, labels): the mean slope of what units add, from 0 to ``z`` (units,)."""
    _, slope = UNITS[activation]
    is_long = np.abs(z) > SHORTEST_STEP
    rise = _added(activation, parts, z) - _added(activation, parts, np.zeros_like(z))
    middle = (parts["bias"] + z / 2)[:, None]
    if activation in ("softplus", "relu"):
        bent = slope(middle + parts["to_label"])
    else:
        bent = slope(middle) * parts["to_label"]
    return np.where(is_long[:, None], rise / np.where(is_long, z, 1.0)[:, None], bent)
