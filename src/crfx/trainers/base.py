"""What all trainers share: settled rounds, and the record of where a training stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeAlias

import numpy.typing as npt

Record = dict[str, float]
"""What a trainer measures in a round: ``objective``, ``seconds``, and more."""

Rounds: TypeAlias = Generator[Record, None, None]


class Standing(Protocol):
    """The state of a training, for an exact resume."""

    def copied(self) -> Self:
        """Return a copy that the trainer does not change."""
        ...

    def ended(self) -> Self | None:
        """Return what a longer training needs of one that has ended; None: the model is enough."""
        ...


class Trainer(ABC):
    """Trains a model in rounds; whoever runs the rounds owns the loop and may end it after any."""

    @abstractmethod
    def rounds(self) -> Rounds:
        """Yield a record after each settled round, with the model as the round left it."""

    @abstractmethod
    def mark(self) -> None:
        """Remember the model of the last round as the best so far."""

    @abstractmethod
    def keep_best(self, n_done: int) -> None:
        """Return to what `mark` remembered, after ``n_done`` rounds in all."""

    @property
    @abstractmethod
    def can_restore(self) -> bool:
        """Whether the best of the rounds of an earlier run can be restored."""

    def state(self) -> Standing | None:
        """Return the state of training; None if the model is all there is."""
        return None

    def restore(self, state: Any) -> None:
        """Resume where `state` was taken; called before the first round."""
        raise ValueError(f"{type(self).__name__} resumes from the model alone")

    def abandon(self, n_done: int) -> None:  # noqa: B027 - nothing to drop by default
        """Drop what an interrupted round has left after ``n_done`` rounds."""

    def release(self) -> None:  # noqa: B027 - nothing to release by default
        """Let go of the training data."""


BEST, VELOCITY = "best", "velocity"
"""Names of arrays in a `TrainingState`: the parameters that early stopping would restore, and the
last change of the mean of several workers."""
ONLY_WHILE_IT_LASTS = {"converged", "induced", "in_round"}
"""Numbers that only an interrupted training needs: whether L-BFGS has converged; the rounds of
feature induction done, and the iterations of the current one."""


@dataclass(frozen=True, eq=False)
class TrainingState:
    """The state of a training: the trainer, its iterations so far, numbers and arrays by name.

    With it a training resumes as if it had never been interrupted.
    """

    trainer: str
    n_done: int
    numbers: dict[str, float]
    arrays: dict[str, npt.NDArray[Any]]

    def copied(self) -> TrainingState:
        """Return a copy; the trainer may change the arrays of this one in place."""
        return replace(self, arrays={name: array.copy() for name, array in self.arrays.items()})

    @property
    def best(self) -> npt.NDArray[Any] | None:
        """The best parameters so far; None without early stopping."""
        return self.arrays.get(BEST)

    @property
    def velocity(self) -> npt.NDArray[Any] | None:
        """The last change of the mean over several workers."""
        return self.arrays.get(VELOCITY)

    def with_best(self, best: npt.NDArray[Any] | None) -> TrainingState:
        """Return the state with the best parameters so far."""
        return self if best is None else replace(self, arrays={**self.arrays, BEST: best})

    def ended(self) -> TrainingState:
        """Return what a longer training needs of one that has ended."""
        return replace(
            self,
            numbers={k: v for k, v in self.numbers.items() if k not in ONLY_WHILE_IT_LASTS},
            arrays={name: array for name, array in self.arrays.items() if name != BEST},
        )


@dataclass(frozen=True, eq=False)
class Training:
    """What an estimator knows of its training; files, copies and warm starts ask it.

    ``to_go`` are the rounds, iterations or epochs still to do; None: training has ended.  While it
    lasts the ``trainer`` knows where it stands, afterwards ``standing`` does; without both the
    model is enough to continue.
    """

    to_go: int | None = None
    trainer: Trainer | None = None
    standing: Standing | None = None

    def state(self) -> Any:
        """Return the state of training; None if the model is all there is."""
        return self.standing if self.trainer is None else self.trainer.state()

    def frozen(self) -> Training:
        """Return what copies of the estimator know: nothing in it is changed later."""
        if self.trainer is None:
            return self
        state = self.trainer.state()
        return Training(self.to_go, standing=None if state is None else state.copied())

    def one_less(self) -> Training:
        """Return the record after one more round."""
        return replace(self, to_go=None if self.to_go is None else self.to_go - 1)
