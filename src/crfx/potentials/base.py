"""What potentials can do: score, be explained, grow by boosting, follow a gradient, be saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from crfx.batch import Batch
from crfx.features.matrix import take_rows
from crfx.scores import FloatArray, IntArray
from crfx.state import State
from crfx.structures import Chain, Forest
from crfx.terms import Names, Terms
from crfx.workers import ALONE, Workers


@dataclass(frozen=True)
class PotentialShape:
    """The shape that a potential from a file must have.

    ``n_outputs`` labels or entries of an edge table, ``n_features`` columns, of which some have
    ``categories`` (their number by column), ``n_rounds`` (None: any number) and the model's
    ``order``.
    """

    n_outputs: int
    n_features: int
    n_rounds: int | None = None
    categories: Mapping[int, int] = field(default_factory=dict)
    order: int = 1


@dataclass(frozen=True, eq=False)
class Addition:
    """A fitted function, on the training rows and on the rows that are followed.

    It is kept when ``accept`` is called with the step that was taken.
    """

    delta: FloatArray
    followed: list[FloatArray]
    accept: Callable[[float], None]


class Potential(Protocol):
    """Scores of parts of an instance; `registry` has the classes that a file can hold, by ``kind``.

    In a file its arrays, blobs and values have the ``name`` of the potential in the model.
    """

    kind: ClassVar[str]
    takes_labels: ClassVar[bool]
    """Whether scores depend on the labels before, and not on features alone."""
    method: ClassVar[str]
    """How `explained_rows` shares scores out among features, in words."""
    n_outputs: int
    """The number of scores of a row."""
    n_jobs: int
    """The number of threads that score."""

    def parts(
        self, batch: Batch, structure: Chain | Forest, n_rounds: int | None = None
    ) -> dict[str, FloatArray]:
        """Return scores by the name of the part, "node" or "edge", of the first rounds only."""

    def scores_after(self, batch: Batch, structure: Chain | Forest, before: IntArray) -> FloatArray:
        """Return (rows, outputs), what the labels ``before`` (rows, order) add to the scores.

        It is 0 where there are none (-1).
        """

    def explained_rows(
        self, batch: Batch, rows: IntArray, before: IntArray, names: Names, labels: Sequence[Any]
    ) -> Iterable[Terms]:
        """Return the scores of some rows as sums, after the labels ``before`` of all rows.

        ``names`` are those of columns, ``labels`` those of codes.
        """

    def with_outputs(self, places: IntArray, n_outputs: int) -> Self:
        """Return the same with more outputs: output k becomes ``places[k]``, new ones are 0."""

    def use_threads(self, n_jobs: int) -> None:
        """Score on ``n_jobs`` threads from now on."""
        self.n_jobs = n_jobs

    def to_state(self, state: State, name: str) -> None:
        """Write the potential; raise ValueError if no file can hold it."""

    @classmethod
    def from_state(cls, state: State, name: str, shape: PotentialShape) -> Self:
        """Read and check what `to_state` wrote; raise ValueError if it does not fit ``shape``."""


class Function(Potential, Protocol):
    """A function of the features: it scores nodes, whatever labels come before."""

    takes_labels: ClassVar[bool] = False
    measure: str
    """What `strengths` measure, in words."""

    def scores(self, X: Any, n_rows: int, n_rounds: int | None = None) -> Any:
        """Return (rows, outputs), of the first rounds only where the function grew in rounds."""

    def explained(self, X: Any, names: Names) -> Iterable[Terms]:
        """Return the scores of every row as a sum over features; ``names`` are those of columns."""

    def strengths(self) -> FloatArray:
        """Return (features,) how much each matters, 0 or more."""

    def named(self, names: Names) -> Names:
        """Return the names of the features, given those of columns: the same, unless overridden."""
        return names

    def parts(
        self, batch: Batch, structure: Chain | Forest, n_rounds: int | None = None
    ) -> dict[str, FloatArray]:
        """Return the scores of nodes."""
        return {"node": self.scores(batch.X, batch.n_rows, n_rounds)}

    def scores_after(self, batch: Batch, structure: Chain | Forest, before: IntArray) -> FloatArray:
        """Return zeros."""
        return np.zeros((batch.n_rows, self.n_outputs), np.float32)

    def explained_rows(
        self, batch: Batch, rows: IntArray, before: IntArray, names: Names, labels: Sequence[Any]
    ) -> Iterable[Terms]:
        """Return the scores of some rows as sums over features."""
        return self.explained(take_rows(batch.X, rows), names)


class AdditiveFunction(Function, Protocol):
    """A function of the features that grows round by round: trees, or any regressor."""

    @property
    def n_rounds(self) -> int:
        """The number of rounds."""

    def bind(self, X: Any, followed: list[Any], workers: Workers = ALONE) -> None:
        """Take the training rows, beside those of other ``workers``, and rows to follow."""

    def copy(self, learner: Any, seed: int) -> Self:
        """Return the same rounds, to be followed by those of another learner."""

    def rounds_alone(self) -> Iterable[AdditiveFunction]:
        """Return every round as a function of its own."""

    def release(self) -> None:
        """Forget the rows."""

    def propose(self, gradient: Any, curvature: Any, number: int) -> Addition:
        """Fit a function to (rows, outputs) gradient and curvature."""

    def keep(self, n_rounds: int) -> None:
        """Drop the rounds after the first ``n_rounds``."""
