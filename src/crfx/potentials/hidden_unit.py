"""Functions with hidden units between features and labels.

Binary units that are summed out (van der Maaten, Welling and Saul 2011, section 2):

    score_k = c_k + sum_h log(1 + exp(b_h + w_h x + V_hk))

or maximised over, with max(0, .) in place of log(1 + exp(.)); or units that are functions of their
input (conditional neural fields, Peng, Bo and Xu 2010): score_k = c_k + sum_h V_hk g(b_h + w_h x).
To all of them weights from features straight to labels may be added (``skip``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit

from crfx import _core
from crfx.features.matrix import is_on_disk
from crfx.potentials.base import Function, PotentialShape
from crfx.potentials.linear import entries_by_row
from crfx.potentials.linear_features import Prepared, ShardedFeatures, prepared, touched_columns
from crfx.potentials.numbers import as_numbers
from crfx.potentials.weight_pattern import WeightPattern
from crfx.scores import FloatArray, IntArray
from crfx.state import State
from crfx.terms import Names, Terms

Array32 = npt.NDArray[np.float32]
Array64 = npt.NDArray[np.float64]
Activation = Literal["softplus", "relu", "tanh", "sigmoid"]

ROWS_AT_ONCE = 16384
"""Inputs of the units, (rows, units), are held for this many rows at a time when scoring."""


@dataclass(frozen=True)
class HiddenShape:
    """The size of a function, and where its parameters lie in one flat vector."""

    n_features: int
    n_hidden: int
    n_labels: int
    activation: Activation = "softplus"
    skip: bool = False

    @property
    def parts(self) -> dict[str, tuple[int, ...]]:
        """Shapes by name, in order: W, b, V, c, and U where there is a skip connection."""
        shapes: dict[str, tuple[int, ...]] = {
            "weights": (self.n_features, self.n_hidden),
            "bias": (self.n_hidden,),
            "to_label": (self.n_hidden, self.n_labels),
            "constant": (self.n_labels,),
        }
        if self.skip:
            shapes["skip"] = (self.n_features, self.n_labels)
        return shapes

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(int(np.prod(shape)) for shape in self.parts.values())

    def places_in(self, old: HiddenShape, places: IntArray) -> IntArray:
        """Return (size,) where parameters were in the shape ``old`` with fewer labels, or -1.

        Label k of the old shape is label ``places[k]`` of this one.
        """
        origin = np.full(self.size, -1)
        old_places = old.split(np.arange(old.size))
        for name, part in self.split(origin).items():
            by_label = name in ("to_label", "constant", "skip")
            part[(..., places) if by_label else ...] = old_places[name]
        return origin

    def split(self, values: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return the parameters by name, as views of a flat vector."""
        parts, begin = {}, 0
        for name, shape in self.parts.items():
            end = begin + int(np.prod(shape))
            parts[name], begin = values[begin:end].reshape(shape), end
        return parts


class HiddenUnitFunction(Function):
    """A parametric function with hidden units: (rows, labels) from (rows, features).

    ``weights`` are all parameters in one flat vector of float32, see `HiddenShape`.
    """

    kind: ClassVar = "hidden"
    method: ClassVar = "gradient × input, integrated from the input 0"
    measure = "weights to hidden units, times how far units part the labels"
    n_rounds = 0

    def __init__(self, shape: HiddenShape, weights: Array32, n_jobs: int = 1) -> None:
        self.shape, self.weights, self.n_jobs = shape, weights, n_jobs
        self.n_outputs = shape.n_labels

    def to_state(self, state: State, name: str) -> None:
        """Write the weights, and the settings that say how many there are."""
        state.values["hidden"] = {
            "n_hidden": self.shape.n_hidden,
            "activation": self.shape.activation,
            "skip": self.shape.skip,
        }
        state.put(f"{name}.weights", self.weights)

    @classmethod
    def from_state(cls, state: State, name: str, shape: PotentialShape) -> Self:
        """Read and check what `to_state` wrote."""
        values = state.values["hidden"]
        n_hidden, activation, skip = (values[part] for part in ("n_hidden", "activation", "skip"))
        if activation not in get_args(Activation):
            raise ValueError(f"unknown activation {activation!r}")
        if type(n_hidden) is not int or n_hidden < 0 or not isinstance(skip, bool):
            raise ValueError(f"it has {n_hidden!r} hidden units")
        sizes = HiddenShape(shape.n_features, n_hidden, shape.n_outputs, activation, skip)
        weights = state.array(f"{name}.weights", np.float32)
        if weights.shape != (sizes.size,):
            raise ValueError(f"the weights {name} are not those of {n_hidden} hidden units")
        return cls(sizes, weights)

    @classmethod
    def random(
        cls, shape: HiddenShape, scale: float, random: np.random.Generator
    ) -> HiddenUnitFunction:
        """Return a function with weights from a normal distribution and biases of 0."""
        function = cls(shape, np.zeros(shape.size, np.float32))
        parts = shape.split(function.weights)
        for name in ("weights", "to_label"):
            random.standard_normal(dtype=np.float32, out=parts[name])
            parts[name] *= np.float32(scale)
        return function

    @property
    def maximised(self) -> HiddenUnitFunction:
        """The same weights, with units maximised over instead of summed out."""
        if self.shape.activation not in ("softplus", "relu"):
            raise ValueError(
                f"units with activation {self.shape.activation!r} are functions of their input: "
                "there is nothing to maximise over"
            )
        return HiddenUnitFunction(replace(self.shape, activation="relu"), self.weights, self.n_jobs)

    def with_outputs(self, places: IntArray, n_outputs: int) -> HiddenUnitFunction:
        """Return the same units with more labels: old label k becomes ``places[k]``.

        New labels have weights of 0: their scores are those of the units alone.
        """
        shape = replace(self.shape, n_labels=n_outputs)
        origin = shape.places_in(self.shape, places)
        weights = np.where(origin >= 0, self.weights[origin], np.float32(0))
        return HiddenUnitFunction(shape, weights)

    def prepare(self, X: Any) -> Prepared:
        """Return features in the form that training uses again and again."""
        if is_on_disk(X):
            return ShardedFeatures(X, self.prepare, self.n_outputs, looks_back=True)
        return HiddenFeatures(self.checked(X), self.shape, self.n_jobs)

    def prepare_part(self, X: Any) -> tuple[Prepared, IntArray]:
        """Return features of some rows with the weights that they touch, and their places."""
        if not sparse.issparse(X):
            return self.prepare(X), np.arange(self.shape.size)
        X = self.checked(X)
        matrix, touched = touched_columns(X)
        shape = replace(self.shape, n_features=len(touched))
        parts = self.shape.split(np.arange(self.shape.size))
        places = [
            (part[touched] if name in ("weights", "skip") else part).reshape(-1)
            for name, part in parts.items()
        ]
        return HiddenFeatures(matrix, shape, self.n_jobs), np.concatenate(places)

    def scores(self, X: Any, n_rows: int, n_rounds: int | None = None) -> Array32:
        """Return (rows, labels).  O(rows (features + labels) units) time."""
        X = self.checked(X)
        weights = self.weights.astype(np.float32)
        scores = np.empty((n_rows, self.shape.n_labels), np.float32)
        for begin in range(0, n_rows, ROWS_AT_ONCE):
            rows = slice(begin, begin + ROWS_AT_ONCE)
            scores[rows] = HiddenFeatures(X[rows], self.shape, self.n_jobs).scores(weights)
        return scores

    def explained(self, X: Any, names: Names) -> Iterator[Terms]:
        """Yield the scores of every row of X as sums: integrated gradients, see `hidden_terms`."""
        parts = self.shape.split(self.weights)
        return hidden_terms(self.checked(X), parts, self.shape.activation, names)

    def strengths(self) -> Array64:
        """Return (features,) the sum over units of |W| times the spread of V over labels.

        A label's score changes by at most |W_jh| if feature j changes by 1 and unit h is on; how
        much it changes *between* labels depends on how far their V lie apart.
        """
        parts = self.shape.split(self.weights)
        apart = np.ptp(parts["to_label"], axis=1) if self.shape.n_hidden else np.zeros(0)
        strengths = np.abs(parts["weights"]) @ apart
        if self.shape.skip:
            strengths = strengths + np.ptp(parts["skip"], axis=1)
        return np.asarray(strengths, np.float64)

    def checked(self, X: Any) -> Any:
        """Return X as numbers, dense or CSR; raise ValueError if its columns do not fit."""
        X = as_numbers(X)
        if X.shape[1] != self.shape.n_features:  # the core would read beyond the weights
            raise ValueError(
                f"X has {X.shape[1]} features, the weights are for {self.shape.n_features}"
            )
        return X


class HiddenFeatures:
    """Features of some rows; keeps the inputs of the units from scores to gradient.

    Both are formed in the dtype of the parameters.
    """

    def __init__(self, X: Any, shape: HiddenShape, n_jobs: int) -> None:
        self._shape, self._n_jobs, self._n_rows = shape, n_jobs, X.shape[0]
        n_outputs = {"weights": shape.n_hidden, "skip": shape.n_labels if shape.skip else 0}
        self._products = {
            name: prepared(X, WeightPattern.all(X.shape[1], n), n_jobs)
            for name, n in n_outputs.items()
            if n
        }
        """What multiplies the features by W and U, where there are some."""
        self._last: tuple[FloatArray, dict[str, Any]] | None = None

    def scores(self, values: FloatArray) -> FloatArray:
        """Return (rows, labels)."""
        parts = {
            name: np.ascontiguousarray(part) for name, part in self._shape.split(values).items()
        }
        inputs: FloatArray = np.zeros((self._n_rows, 0), values.dtype)
        if "weights" in self._products:
            inputs = self._products["weights"].scores(parts["weights"].reshape(-1))
        scores: FloatArray = np.empty((self._n_rows, self._shape.n_labels), values.dtype)
        _core.hidden_scores(inputs, *self._units(parts), scores, self._n_jobs)
        if "skip" in self._products:
            scores += self._products["skip"].scores(parts["skip"].reshape(-1))
        self._last = inputs, parts
        return scores

    def gradient(self, slope: FloatArray) -> Array64:
        """Return (parameters,) from slopes (rows, labels) at the scores of the last call."""
        assert self._last is not None, "scores come first"
        inputs, parts = self._last
        gradient = np.zeros(self._shape.size)
        to = self._shape.split(gradient)
        slope = np.ascontiguousarray(slope, inputs.dtype)
        input_slope = np.empty_like(inputs)
        by_unit = to["bias"], to["to_label"], to["constant"]
        _core.hidden_gradient(
            inputs, *self._units(parts), slope, input_slope, *by_unit, self._n_jobs
        )
        for name, product in self._products.items():
            product_slope = input_slope if name == "weights" else slope
            to[name].reshape(-1)[:] = product.gradient(product_slope)
        return gradient

    def _units(self, parts: dict[str, Any]) -> tuple[Any, Any, Any, str]:
        return parts["bias"], parts["to_label"], parts["constant"], self._shape.activation


SHORTEST_STEP = 1e-5
"""Of z: below it the quotient would lose digits, and the slope in the middle is as good."""
UNITS: dict[str, tuple[Callable[[Array64], Array64], Callable[[Array64], Array64]]] = {
    "softplus": (lambda x: np.logaddexp(0.0, x), expit),
    "relu": (lambda x: np.maximum(x, 0.0), lambda x: (x > 0).astype(np.float64)),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "sigmoid": (expit, lambda x: expit(x) * expit(-x)),
}
"""By activation: the output of a unit and its slope, as functions of its input."""


def hidden_terms(
    X: Any, parts: dict[str, npt.NDArray[Any]], activation: str, names: Names
) -> Iterator[Terms]:
    """Yield, for each row of X, dense or CSR, the scores (labels,) as a sum over features.

    Plain gradient times input does not add up to the score, since units bend.  The mean gradient
    along the straight line from the input 0 does (Sundararajan, Taly and Yan 2017, Eq. 1), and a
    unit sees nothing of the features but their weighted sum z: along the line it goes from g(b) to
    g(b + z), so its mean slope is (g(b + z) - g(b)) / z, and feature j gets its share w_j x_j of z.

    ``parts`` are those of `HiddenShape`.  O(entries of X * units * labels).
    """
    wide = {name: part.astype(np.float64) for name, part in parts.items()}
    base = wide["constant"] + _added(activation, wide, np.zeros(len(wide["bias"]))).sum(axis=0)
    for columns, values in entries_by_row(X):
        to_units = wide["weights"][columns] * values[:, None]
        shares = to_units @ _mean_slopes(activation, wide, to_units.sum(axis=0))
        if "skip" in wide:
            shares = shares + wide["skip"][columns] * values[:, None]
        yield Terms.of(base, columns, list(map(names, columns.tolist())), values, shares)


def _at_units(
    function: Callable[[Array64], Array64],
    activation: str,
    parts: dict[str, Array64],
    z: Array64,
) -> Array64:
    """Return (units, labels) ``function`` of units whose features add up to ``z`` (units,)."""
    inputs = (parts["bias"] + z)[:, None]
    if activation in ("softplus", "relu"):  # the label's weight is inside
        return function(inputs + parts["to_label"])
    return function(inputs) * parts["to_label"]


def _added(activation: str, parts: dict[str, Array64], z: Array64) -> Array64:
    """Return (units, labels) what units add to the scores."""
    return _at_units(UNITS[activation][0], activation, parts, z)


def _mean_slopes(activation: str, parts: dict[str, Array64], z: Array64) -> Array64:
    """Return (units, labels) the mean slope of what units add, from 0 to ``z`` (units,)."""
    is_long = np.abs(z) > SHORTEST_STEP
    rise = _added(activation, parts, z) - _added(activation, parts, np.zeros_like(z))
    middle = _at_units(UNITS[activation][1], activation, parts, z / 2)
    return np.where(is_long[:, None], rise / np.where(is_long, z, 1.0)[:, None], middle)
