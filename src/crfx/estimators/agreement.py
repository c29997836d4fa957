"""What workers that train together agree on before they do: errors, columns and structure.

Each has read its own instances.  What they find is told to all, so that all go on with the same
columns and labels, or stop with the same error.  One worker alone agrees with itself at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from crfx.batch import Batch
from crfx.objectives.base import Objective
from crfx.trainers.communicator import Communicator, current

Result = TypeVar("Result")
Told = TypeVar("Told")

_INSTANCE = re.compile(r"\b(instance|query) (\d+)")


def attempt(
    workers: Communicator,
    work: Callable[[], Result],
    tell: Callable[[Result], tuple[int, Told]],
) -> tuple[Result, list[Told]]:
    """What ``work`` gives here, and what every worker tells of what it gave there.

    ``tell`` gives the number of instances and anything else.  Where work fails by a ValueError, all
    raise that of the first worker where it does, in which instances have the numbers that they have
    among those of all.
    """
    if workers.size == 1:
        found = work()
        return found, [tell(found)[1]]
    error, own = None, None
    try:
        found = work()
        own = tell(found)
    except ValueError as raised:
        error = str(raised)
    answers = workers.gather((error, own))
    errors = [error for error, _ in answers]
    for rank, error in enumerate(errors):
        if error is not None:
            n_before = sum(told[0] for _, told in answers[:rank])
            raise ValueError(_of_all(error, n_before, rank, errors)) from None
    return found, [told for _, (_, told) in answers]


def renumbered(error: str, n_before: int) -> str:
    """An error of some instances, in which they have the numbers that they have among all."""
    return _INSTANCE.sub(lambda found: f"{found[1]} {int(found[2]) + n_before}", error)


def _of_all(error: str, n_before: int, rank: int, errors: list[str | None]) -> str:
    """An error of one worker in terms of all; the worker is named where no instance is."""
    if _INSTANCE.search(error):
        return renumbered(error, n_before)
    return error if all(other == error for other in errors) else f"worker {rank}: {error}"


def agreed_objective(bind: Callable[[], Objective], batch: Batch) -> Objective:
    """The objective for the instances of this worker; what it refuses is refused by all."""
    return attempt(current(), bind, lambda _: (batch.n_instances, None))[0]
