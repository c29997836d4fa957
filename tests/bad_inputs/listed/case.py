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
    """What might be harmed, and a look at it: equal looks before and after mean that it was not."""

    name: str
    make: Callable[[], Any]
    look: Callable[[Any], Any]


NOTHING = Subject("", lambda: None, lambda subject: None)


@dataclass(frozen=True, eq=False)
class Case:
    """``attempt`` gets a subject and an empty folder, in which it runs, and must raise.

    ``message`` is a regular expression that what is told must match.
    """

    area: str
    tried: str
    attempt: Callable[[Any, Path], Any]
    message: str
    error: type[Exception] = ValueError
    subjects: tuple[Subject, ...] = (NOTHING,)
    runs: Callable[[Case, Subject, Path], Outcome] | None = None
    """In place of `refused`, for commands."""

    @property
    def name(self) -> str:
        """For pytest and the page."""
        return f"{self.area}: {self.tried}"


@dataclass
class Outcome:
    """What came of a case: the error, what it told, and what is wrong with that."""

    error: str = ""
    told: str = ""
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    def judge(self, is_fine: bool, problem: str) -> None:
        """Note a problem."""
        if not is_fine:
            self.problems.append(problem)


def tried(case: Case, subject: Subject, folder: Path) -> Outcome:
    """Run a case on one of its subjects, in an empty folder."""
    with chdir(folder):
        return (case.runs or refused)(case, subject, folder)


def refused(case: Case, subject: Subject, folder: Path) -> Outcome:
    """Whether the right error came, in one line, in time, and left all as it was."""
    thing = subject.make()
    before = subject.look(thing)
    found = Outcome()
    begin = time.perf_counter()
    try:
        given = case.attempt(thing, folder)
    except Exception as error:
        found.error, found.told = type(error).__name__, str(error)
        found.judge(isinstance(error, case.error), f"it is no {case.error.__name__}: {error!r}")
        judge_message(found, case.message)
    else:
        found.problems.append(f"it was accepted, and gave {given!r}"[:LONGEST])
    found.seconds = time.perf_counter() - begin
    found.judge(found.seconds < PATIENCE, f"it took {found.seconds:.1f} s")
    found.judge(subject.look(thing) == before, f"{subject.name} is not as it was")
    return found


def judge_message(found: Outcome, message: str) -> None:
    """One line, not long, and about the matter."""
    told = found.told
    found.judge(re.search(message, told) is not None, f"{message!r} is not in {told!r}")
    found.judge("\n" not in told, f"more than one line: {told!r}")
    found.judge(len(told) <= LONGEST, f"{len(told)} characters: {told!r}")
