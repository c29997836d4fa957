"""Any regressor with ``sample_weight`` as the function of a round: one clone per output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyRegressor

from crfx.features.matrix import inputs_at, is_categorical, is_frame, single_entries
from crfx.potentials.base import Addition, AdditiveFunction, PotentialShape
from crfx.scores import IntArray
from crfx.state import State
from crfx.terms import Names, Terms
from crfx.workers import ALONE, Workers

Array32 = npt.NDArray[np.float32]
Round: TypeAlias = tuple[list[Any], float]
"""A regressor per output, and the step that was taken."""

ORDERS = 16
"""Half of them drawn, the others these read backwards: exact where features interact by twos."""
MOST_CELLS = 2**22
"""Cells (rows times features) that are held at a time, unless one row has more: 32 MiB."""


def sampled_terms(
    scores: Callable[[Any], npt.NDArray[Any]], X: Any, names: Names
) -> Iterator[Terms]:
    """Yield the scores of every row of X as a sum of sampled Shapley values.

    X is an array, CSR matrix or data frame of numbers, and any function will do.  Starting from the
    input 0, features are put in one after the other, and each gets the change that it makes
    (Strumbelj and Kononenko 2010), averaged over several orders, always the same ones.  In any
    order the changes add up to the score less that of the input 0, so the sum holds however few
    orders there are.

    ``scores`` returns (rows, outputs) of rows like those of X; it is called with ``ORDERS`` times
    as many rows as a row of X has features that are not 0.
    """
    if is_frame(X) and any(is_categorical(X[name]) for name in X.columns):
        raise ValueError(
            "categories of a base_learner cannot be explained: there is no category 0 to compare "
            "with; encode them, one column per category"
        )
    for row in range(X.shape[0]):
        columns, values = _present(X, row)
        orders = _orders(len(columns))
        shares: Any = 0.0
        for order in orders:
            steps = np.concatenate(
                [
                    np.asarray(scores(_rows_like(X, columns, part)), np.float64)
                    for part in _arriving(order, values, X.shape[1])
                ]
            )
            shares = shares + np.diff(steps, axis=0)[np.argsort(order)] / len(orders)
        inputs = inputs_at(X, row, columns)
        yield Terms.of(steps[0], columns, list(map(names, columns.tolist())), inputs, shares)


def _present(X: Any, row: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the columns that are not 0, missing ones included, and their values."""
    if sparse.issparse(X):
        entries = single_entries(X[row])
        columns, numbers = entries.indices.astype(np.int64), entries.data
    else:
        numbers = X.iloc[row].to_numpy(dtype=np.float64, na_value=np.nan) if is_frame(X) else X[row]
        columns = np.arange(len(numbers))
    kept = numbers != 0
    return columns[kept], numbers[kept].astype(np.float64)


def _orders(n: int) -> list[npt.NDArray[np.int64]]:
    random = np.random.default_rng(0)
    drawn = [random.permutation(n) for _ in range(ORDERS // 2)]
    return [*drawn, *(order[::-1] for order in drawn)]


def _arriving(
    order: npt.NDArray[np.int64], values: npt.NDArray[np.float64], width: int
) -> Iterator[npt.NDArray[np.float64]]:
    """Yield blocks of (n + 1, n): the values once 0, 1, ..., n of them have come, 0 before."""
    arrival, n_steps = np.argsort(order), len(order) + 1
    at_once = max(1, MOST_CELLS // width)
    for begin in range(0, n_steps, at_once):
        n_come = np.arange(begin, min(begin + at_once, n_steps))
        yield np.where(arrival[None, :] < n_come[:, None], values, 0.0)


def _rows_like(X: Any, columns: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> Any:
    """Return rows of the kind of X: ``values`` (rows, columns) in their columns, else 0."""
    shape = len(values), X.shape[1]
    dtype = np.float64 if is_frame(X) else np.result_type(X.dtype, np.float32)
    if sparse.issparse(X):
        rows, places = np.nonzero(values)
        entries = values[rows, places], (rows, columns[places])
        return sparse.csr_matrix(entries, shape=shape, dtype=dtype)
    wide = np.zeros(shape, dtype)
    wide[:, columns] = values
    return type(X)(wide, columns=X.columns) if is_frame(X) else wide


class BoostedRegressors(AdditiveFunction):
    """A sum of rounds, each with one regressor per output, fitted to -G/H with weights H."""

    kind: ClassVar = "regressors"
    method: ClassVar = f"Shapley values against the input 0, sampled over {ORDERS} orders"
    measure = (
        "nothing: a base_learner does not tell which features matter over all, `explain` tells it "
        "of single predictions"
    )
    _X: Any
    _followed: list[Any]

    def __init__(
        self, regressor: Any, n_outputs: int, seed: int, rounds: Iterable[Round] = ()
    ) -> None:
        self.regressor, self.n_outputs, self.seed = regressor, n_outputs, seed
        self._rounds = list(rounds)
        self.release()

    def to_state(self, state: State, name: str) -> None:
        """Raise ValueError: a model file holds no foreign objects."""
        raise ValueError("a model with a base_learner cannot be saved")

    @classmethod
    def from_state(cls, state: State, name: str, shape: PotentialShape) -> Self:
        """Raise ValueError: see `to_state`."""
        raise ValueError("it has a base_learner, which no file can hold")

    def bind(self, X: Any, followed: list[Any], workers: Workers = ALONE) -> None:
        """Take the training rows and rows to follow; raise ValueError if there are ``workers``."""
        if len(workers.gather(None)) > 1:
            raise ValueError(
                "a base_learner learns from the rows of one worker: leave it out, trees learn from "
                "those of many"
            )
        self._X, self._followed = X, followed

    def release(self) -> None:
        """Forget the rows."""
        self._X, self._followed = None, []

    def rounds_alone(self) -> Iterator[BoostedRegressors]:
        """Yield every round as a function of its own."""
        for each in self._rounds:
            yield BoostedRegressors(self.regressor, self.n_outputs, self.seed, [each])

    @classmethod
    def without_rounds(cls, regressor: Any, n_outputs: int, seed: int) -> BoostedRegressors:
        """Return a function to be fitted by clones of a regressor."""
        return cls(regressor, n_outputs, seed)

    def copy(self, regressor: Any, seed: int) -> BoostedRegressors:
        """Return the same rounds, to be followed by those of another regressor."""
        return BoostedRegressors(regressor, self.n_outputs, seed, self._rounds)

    def with_outputs(self, places: IntArray, n_outputs: int) -> BoostedRegressors:
        """Return the rounds with more outputs: output k becomes ``places[k]``, new ones are 0."""
        rounds, zero = [], _zero()
        for fitted, step in self._rounds:
            regressor_of = dict(zip(places.tolist(), fitted, strict=True))
            rounds.append(([regressor_of.get(k, zero) for k in range(n_outputs)], step))
        return BoostedRegressors(self.regressor, n_outputs, self.seed, rounds)

    def propose(self, gradient: Array32, curvature: Array32, number: int) -> Addition:
        """Fit one regressor per column of (rows, outputs) gradient and curvature."""
        fitted = [
            self._fit(gradient[:, k], curvature[:, k], number * self.n_outputs + k)
            for k in range(self.n_outputs)
        ]
        return Addition(
            _predict(fitted, self._X),
            [_predict(fitted, rows) for rows in self._followed],
            lambda step: self._rounds.append((fitted, step)),
        )

    def _fit(self, gradient: Array32, curvature: Array32, number: int) -> Any:
        if not len(gradient):  # regressors of scikit-learn refuse to learn from nothing
            return _zero()
        regressor = clone(self.regressor)
        if "random_state" in regressor.get_params():
            state = np.random.SeedSequence([self.seed, number]).generate_state(1)[0]
            regressor.set_params(random_state=int(state >> 1))
        # A row without curvature (left out of this round) counts for nothing, whatever its target;
        # where no row counts the function is 0.  float64: the quotient may exceed float32.
        counts = curvature > 0
        target = np.zeros(len(gradient))
        np.divide(-gradient, curvature, out=target, where=counts, dtype=np.float64)
        weights = curvature if counts.any() else np.ones_like(curvature)
        return regressor.fit(self._X, target, sample_weight=weights)

    @property
    def n_rounds(self) -> int:
        """The number of rounds."""
        return len(self._rounds)

    def keep(self, n_rounds: int) -> None:
        """Drop the rounds after the first ``n_rounds``."""
        del self._rounds[n_rounds:]

    def scores(self, X: Any, n_rows: int, n_rounds: int | None = None) -> Array32:
        """Return (rows, outputs) of the first ``n_rounds`` rounds, by default all."""
        total = np.zeros((n_rows, self.n_outputs), dtype=np.float32)
        if n_rows:
            for fitted, step in self._rounds[:n_rounds]:
                total += np.float32(step) * _predict(fitted, X)
        return total

    def strengths(self) -> npt.NDArray[np.float64]:
        """Return none: regressors do not say how much their features matter."""
        return np.zeros(0)

    def explained(self, X: Any, names: Names) -> Iterator[Terms]:
        """Yield the scores of every row of X as sums, see `sampled_terms`."""
        return sampled_terms(lambda rows: self.scores(rows, rows.shape[0]), X, names)


def _zero() -> DummyRegressor:
    """Return a regressor that predicts 0: what is learned from no rows."""
    return DummyRegressor(strategy="constant", constant=0.0).fit([[0.0]], [0.0])


def _predict(fitted: list[Any], X: Any) -> Array32:
    if not X.shape[0]:  # regressors of scikit-learn refuse to predict nothing
        return np.zeros((0, len(fitted)), dtype=np.float32)
    return np.stack([regressor.predict(X) for regressor in fitted], axis=1).astype(np.float32)
