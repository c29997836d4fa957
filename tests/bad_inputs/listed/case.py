"""One bad input: what is tried, and what must come of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LONGEST = 450
"""Characters of a message; those that come near it list all names that there are."""
PATIENCE = 30.0
"""Seconds that a refusal may take, on a machine that has much else to do."""


@dataclass(frozen=True, eq=False)
class Subject:
    """An object that a case might damage; equal looks before and after show that it did not."""

    name: str
    make: Callable[[], Any]
    look: Callable[[Any], Any]


NOTHING = Subject("", lambda: None, lambda subject: None)


class Each(tuple[Any, ...]):
    """Values that are refused alike, each of which is tried."""


def each(*values: Any) -> Each:
    """Return values that are refused alike, in place of one."""
    return Each(values)


def values_of(value: Any) -> Each:
    """Return the values to try: one, or those of `each`."""
    return value if isinstance(value, Each) else Each((value,))


def arguments_of(values: dict[str, Any]) -> Each:
    """Return the arguments to try; a dict for every value of the one that is `each` of some."""
    for name, value in values.items():
        if isinstance(value, Each):
            return Each({**values, name: entry} for entry in value)
    return Each((values,))


@dataclass(frozen=True, eq=False)
class Case:
    """A refusal: ``attempt`` gets a subject and an empty folder, in which it runs, and must raise.

    Where there are ``values``, it is called with each of them too.  ``message`` is a regular
    expression that the error must match.  What goes for several subjects is tried on one of them,
    the next in turn from ``turn`` on.
    """

    area: str
    tried: str
    attempt: Callable[..., Any]
    message: str
    error: type[Exception] = ValueError
    subjects: tuple[Subject, ...] = (NOTHING,)
    values: Each | None = None
    turn: int = 0
    runs: Callable[[Case, Subject, Path, tuple[Any, ...]], Outcome] | None = None
    """In place of `refused`, for commands."""

    @property
    def name(self) -> str:
        """Return the name of the case for pytest and the page."""
        return f"{self.area}: {self.tried}"

    @property
    def n_inputs(self) -> int:
        """Return the number of inputs that are tried."""
        return 1 if self.values is None else len(self.values)


@dataclass
class Outcome:
    """What came of a case: the error, its message, and what is wrong with that."""

    error: str = ""
    raised: str = ""
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    def judge(self, is_fine: bool, problem: str) -> None:
        """Note a problem."""
        if not is_fine:
            self.problems.append(problem)


def tried(case: Case, folder: Path) -> Outcome:
    """Try every input, each in an empty folder; return what came of the first, and all problems."""
    outcomes = []
    for number in range(case.n_inputs):
        inner = folder / str(number)
        inner.mkdir()
        subject = case.subjects[(case.turn + number) % len(case.subjects)]
        value = () if case.values is None else (case.values[number],)
        with chdir(inner):
            outcome = (case.runs or refused)(case, subject, inner, value)
        outcome.raised = outcome.raised.replace(str(inner), "FOLDER")
        outcomes.append(outcome)
        if number:
            outcomes[0].problems += [f"{value[0]!r}: {problem}" for problem in outcome.problems]
    return outcomes[0]


def refused(case: Case, subject: Subject, folder: Path, value: tuple[Any, ...]) -> Outcome:
    """Return whether the right error was raised, in one line and in time, and nothing changed."""
    thing = subject.make()
    before = subject.look(thing)
    outcome = Outcome()
    begin = time.perf_counter()
    try:
        result = case.attempt(thing, folder, *value)
    except Exception as error:
        outcome.error, outcome.raised = type(error).__name__, str(error)
        outcome.judge(isinstance(error, case.error), f"it is no {case.error.__name__}: {error!r}")
        judge_message(outcome, case.message)
    else:
        outcome.problems.append(f"it was accepted, and gave {result!r}"[:LONGEST])
    outcome.seconds = time.perf_counter() - begin
    outcome.judge(outcome.seconds < PATIENCE, f"it took {outcome.seconds:.1f} s")
    outcome.judge(subject.look(thing) == before, f"{subject.name} is not as it was")
    return outcome


def judge_message(outcome: Outcome, message: str) -> None:
    """One line, not long, and about the matter."""
    raised = outcome.raised
    outcome.judge(re.search(message, raised) is not None, f"{message!r} is not in {raised!r}")
    outcome.judge("\n" not in raised, f"more than one line: {raised!r}")
    outcome.judge(len(raised) <= LONGEST, f"{len(raised)} characters: {raised!r}")
