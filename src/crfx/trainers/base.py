"""What all trainers share: settled rounds, and the record of where a training stands."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy.typing as npt

Record = dict[str, float]
"""What a trainer measures in a round: ``objective``, ``seconds``, and more."""

Rounds: TypeAlias = Generator[Record, None, None]


class Trainer(Protocol):
    """Trains a model in rounds; whoever runs the rounds owns the loop and may end it after any."""

    def rounds(self) -> Rounds:
        """Yield a record after each settled round, with the model as the round left it."""
        ...

    def mark(self) -> None:
        """Remember the model of the last round as the best so far."""
        ...

    def keep_best(self, n_done: int) -> None:
        """Return to what `mark` remembered, after ``n_done`` rounds in all."""
        ...


class RowTrainer(Trainer, Protocol):
    """A trainer of functions that are bound to the rows of the training data."""

    def abandon(self, n_done: int) -> None:
        """Drop what a round that was interrupted has left after ``n_done`` rounds."""
        ...

    def release(self) -> None:
        """Let go of the training data."""
        ...


class Training(Protocol):
    """What an estimator knows of its training: the trainer while it lasts, then what is left."""

    def state(self) -> TrainingState | None:
        """Return where training stands, for an exact resume; None if the model says it all."""
        ...

    def frozen(self) -> Training | None:
        """Return what copies of the estimator know: nothing in it is changed later."""
        ...


class ResumableTrainer(Trainer, Training, Protocol):
    """A trainer that can resume a training exactly, from its state."""

    def restore(self, state: TrainingState) -> None:
        """Resume where ``state`` was taken; called before the first round."""
        ...


BEST, VELOCITY = "best", "velocity"
"""Names of arrays in a `TrainingState`: the parameters that early stopping would restore, and the
last change of the mean of several workers."""
ONLY_WHILE_IT_LASTS = {"converged", "induced", "in_round"}
"""Numbers that only an interrupted training needs: whether L-BFGS has converged; the rounds of
feature induction done, and the iterations of the current one."""


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Where a training stands: the trainer, its iterations so far, numbers and arrays by name.

    With it a training resumes as if it had never been interrupted.
    """

    trainer: str
    n_done: int
    numbers: dict[str, float]
    arrays: dict[str, npt.NDArray[Any]]

    def state(self) -> TrainingState:
        """Return this: a training that has stopped stands where it stood."""
        return self

    def frozen(self) -> TrainingState:
        """Return this: nothing changes it any more."""
        return self

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
