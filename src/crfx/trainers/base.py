"""The protocol of trainers: settled rounds, of which the best can be restored."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol, TypeAlias

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
