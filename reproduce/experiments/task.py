"""The input and the output of an experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias, TypeVar

Options = TypeVar("Options")


@dataclass(frozen=True, slots=True)
class Task:
    """One unit of one row: a fold, or the one test set.

    `settings` are arguments of the estimator, `data` options of the experiment. `n_jobs` and
    `verbose` change no figure but time, so they are not among the settings.
    """

    table: str
    row: str
    unit: str
    settings: dict[str, Any]
    data: dict[str, Any]
    n_jobs: int | None = None
    verbose: int = 0

    def __str__(self) -> str:
        return f"{self.table}, {self.row}, unit {self.unit}"

    def options(self, kind: type[Options]) -> Options:
        """`data` as a dataclass, which has the defaults; an unknown option is an error."""
        known = {option.name for option in fields(kind)}  # type: ignore[arg-type]
        if unknown := set(self.data) - known:
            raise ValueError(
                f"unknown data option {', '.join(sorted(unknown))}; "
                f"there are {', '.join(sorted(known))}"
            )
        return kind(**self.data)

    def fold(self, n_folds: int) -> int:
        """Return the unit as the number of a fold."""
        if not self.unit.isdecimal() or int(self.unit) >= n_folds:
            raise ValueError(f"units are the folds 0 to {n_folds - 1}")
        return int(self.unit)

    def only_unit(self, name: str) -> None:
        """Raise unless the unit has that name."""
        if self.unit != name:
            raise ValueError(f"the only unit is {name!r}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of a unit by name, and curves with one number per round."""

    figures: dict[str, float]
    curves: dict[str, list[float]] = field(default_factory=dict)


Experiment: TypeAlias = Callable[[Task], Outcome]
