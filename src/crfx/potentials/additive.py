"""What functions of the features offer: scores; and to boosting, that more may be added."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from crfx.scores import FloatArray
from crfx.terms import Names, Terms
from crfx.workers import ALONE, Workers


@dataclass(frozen=True, eq=False)
class Addition:
    """A fitted function, on the training rows and on the rows that are followed.

    Nothing is kept until ``accept`` is called with the step that was taken.
    """

    delta: FloatArray
    followed: list[FloatArray]
    accept: Callable[[float], None]


class Function(Protocol):
    """Scores from features."""

    @property
    def n_outputs(self) -> int:
        """How many scores a row has."""
        ...

    def use_threads(self, n_jobs: int) -> None:
        """Score on so many threads from now on, where that is ours to say."""
        ...

    def scores(self, X: Any, n_rows: int, n_rounds: int | None = None) -> Any:
        """(rows, outputs); of the first rounds only, where the function grew in rounds."""
        ...

    @property
    def method(self) -> str:
        """How `explained` shares scores out among features, in words."""
        ...

    def explained(self, X: Any, names: Names) -> Iterable[Terms]:
        """The scores of every row as a sum over features, whose columns have these names."""
        ...

    @property
    def measure(self) -> str:
        """What `strengths` are, in words; of shares they are the parts, of any total."""
        ...

    def named(self, names: Names) -> Names:
        """The names of its features, given those of columns."""
        ...

    def strengths(self) -> FloatArray:
        """(features,) how much each matters, 0 or more."""
        ...


class AdditiveFunction(Function, Protocol):
    """A function of the features that grows round by round: trees, or any regressor."""

    @property
    def n_rounds(self) -> int:
        """How many rounds there are."""
        ...

    def bind(self, X: Any, followed: list[Any], workers: Workers = ALONE) -> None:
        """Take the rows to learn from, beside those of other ``workers``, and rows to follow."""
        ...

    def rounds_alone(self) -> Iterable[AdditiveFunction]:
        """Every round as a function of its own."""
        ...

    def release(self) -> None:
        """Forget them."""
        ...

    def propose(self, gradient: Any, curvature: Any, number: int) -> Addition:
        """Fit a function to (rows, outputs) gradient and curvature."""
        ...

    def keep(self, n_rounds: int) -> None:
        """Drop the rounds after the first ``n_rounds``."""
        ...
