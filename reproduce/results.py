"""Storage of the results of a table: a file per table, a line per unit.

A line of ``<table>.jsonl`` is a JSON object that begins with its key: table, row and unit. Its
figures follow, and everything they depend on. Lines are sorted by their keys. Of the curves of a
unit a line has those that the table keeps (`Table.curves_of`).
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from reproduce.experiments.task import Outcome, Task
from reproduce.table import Row, Table

UnitKey: TypeAlias = tuple[str, str]
"""The names of a row and of one of its units."""


@dataclass(frozen=True, slots=True)
class UnitResult:
    """A finished unit: its figures and curves, its settings, and where it ran."""

    seed: Any
    figures: dict[str, float]
    seconds: float
    experiment: str
    settings: dict[str, Any]
    data: dict[str, Any]
    threads: int
    processor: str
    cores: int
    versions: dict[str, str]
    commit: str | None
    date: str
    curves: dict[str, list[float]]

    def answers(self, row: Row, unit: str) -> bool:
        """Return whether it is what the row asks of the unit today."""
        asked = (row.experiment, row.settings_of(unit), row.data)
        return (self.experiment, self.settings, self.data) == asked


def finished(experiment: str, task: Task, outcome: Outcome, seconds: float) -> UnitResult:
    """Put the outcome of a task together with the machine and the software."""
    cores = _cores()
    return UnitResult(
        experiment=experiment,
        settings=task.settings,
        data=task.data,
        seed=task.settings.get("random_state"),
        figures=outcome.figures,
        curves=outcome.curves,
        seconds=round(seconds, 2),
        threads=task.n_jobs or cores,
        processor=_processor(),
        cores=cores,
        versions={
            "crfx": version("crfx"),
            "xgboost": version("xgboost"),
            "numpy": version("numpy"),
            "python": platform.python_version(),
        },
        commit=note_commit(),
        date=datetime.date.today().isoformat(),
    )


def results_path(results: Path, table: Table) -> Path:
    """Return the file with the units of a table."""
    return results / f"{table.stem}.jsonl"


def read_units(results: Path, table: Table) -> dict[UnitKey, UnitResult]:
    """Read all units that are stored for a table, of whatever settings."""
    return {key: result for key, (_, result) in _stored(results_path(results, table)).items()}


def done_units(row: Row, stored: Mapping[UnitKey, UnitResult]) -> dict[str, UnitResult]:
    """Return the units of a row that are stored with today's settings, in the order of the row."""
    results = {unit: stored.get((row.name, unit)) for unit in row.units}
    return {
        unit: result for unit, result in results.items() if result and result.answers(row, unit)
    }


def write_units(results: Path, table: Table, units: Mapping[UnitKey, UnitResult]) -> None:
    """Add or replace the lines of units; processes that write to one folder take turns."""
    path = results_path(results, table)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.parent):
        lines = {key: line for key, (line, _) in _stored(path).items()}
        lines |= {key: _line(table, key, result) for key, result in units.items()}
        write_whole(path, "".join(f"{lines[key]}\n" for key in sorted(lines)))


def _stored(path: Path) -> dict[UnitKey, tuple[str, UnitResult]]:
    """Read every line of a file, as text and as a result; a file that is missing has none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    stored = {}
    for number, line in enumerate(lines, 1):
        try:
            content = json.loads(line)
            key = content.pop("row"), content.pop("unit")
            del content["table"]
            stored[key] = line, UnitResult(**content)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"{path}, line {number}: not the result of a unit ({error}); delete the line"
            ) from error
    return stored


def _line(table: Table, key: UnitKey, result: UnitResult) -> str:
    row, unit = key
    content = {"table": table.stem, "row": row, "unit": unit, **asdict(result)}
    kept = table.curves_of(row)
    content["curves"] = {
        name: [int(value) if float(value).is_integer() else value for value in values]
        for name, values in result.curves.items()
        if name in kept
    }
    return json.dumps(content, separators=(",", ":"))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from changing the files of a folder in the meantime."""
    try:
        from fcntl import LOCK_EX, flock
    except ImportError:  # Windows: there one process at a time may write results
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def _cores() -> int:
    # Those this process may use; not every system tells.
    asked = getattr(os, "sched_getaffinity", None)
    return len(asked(0)) if asked else os.cpu_count() or 1


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


@cache
def note_commit() -> str | None:
    """Return the commit of the checkout that crfx runs from, marked if files differ; else None.

    Noted once for every process: when first asked, which is when it begins to work.
    """
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        return None
    asked = ["git", "describe", "--always", "--dirty=+changes", "--abbrev=12"]
    try:
        done = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None
