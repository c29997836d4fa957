"""Keeps what a unit gave in a file of its own, with everything the figures depend on."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from reproduce.experiments.task import Outcome, Task
from reproduce.table import Row, Table


@dataclass(frozen=True, slots=True)
class UnitResult:
    """A finished unit: its figures and curves, what was asked for, and where it ran."""

    experiment: str
    settings: dict[str, Any]
    data: dict[str, Any]
    seed: Any
    figures: dict[str, float]
    curves: dict[str, list[float]]
    seconds: float
    threads: int
    processor: str
    cores: int
    versions: dict[str, str]
    commit: str | None
    date: str

    def answers(self, row: Row, unit: str) -> bool:
        """Whether it is what the row asks of the unit today."""
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


def unit_path(results: Path, table: Table, row: str, unit: str) -> Path:
    """Return where a unit is kept."""
    return results / table.folder / row / f"{unit}.json"


def write_unit(path: Path, result: UnitResult) -> None:
    """Write whole or not at all."""
    write_whole(path, json.dumps(asdict(result), indent=1) + "\n")


def read_unit(path: Path) -> UnitResult | None:
    """Read a unit; None where there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return UnitResult(**content)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: not the result of a unit ({error}); delete it") from error


def read_row(results: Path, table: Table, row: Row) -> dict[str, UnitResult]:
    """The units of a row that are done, in order; those of other settings are passed over."""
    found = {unit: read_unit(unit_path(results, table, row.name, unit)) for unit in row.units}
    return {unit: result for unit, result in found.items() if result and result.answers(row, unit)}


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
    """The commit of the checkout that crfx runs from, marked if files differ; None elsewhere.

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
