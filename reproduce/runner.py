"""Runs of the missing units of a table, one after the other or several at a time."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from reproduce.experiments.task import Experiment, Task
from reproduce.results import (
    UnitKey,
    UnitResult,
    done_units,
    finished,
    note_commit,
    read_units,
    write_units,
)
from reproduce.table import Row, Table

Told = Callable[[Task, UnitResult | None], None]
"""Called with None when a unit begins, and with its result when it is written."""


def missing(
    table: Table,
    results: Path,
    *,
    rows: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
) -> list[Task]:
    """Return the units to run: those that are not stored, or stored with other settings."""
    chosen = [table.row(name) for name in rows] if rows else list(table.rows)
    if rows:
        for row in chosen:
            if row.experiment is None:
                raise ValueError(f"row {row.name!r} has nothing to run: {row.note}")
    if units:
        known = list(dict.fromkeys(unit for row in chosen for unit in row.units))
        if unknown := [unit for unit in units if unit not in known]:
            raise ValueError(f"there is no unit {unknown[0]!r}: units are {', '.join(known)}")
    stored = read_units(results, table)
    return [task for row in chosen for task in _missing_of(table, row, stored, units)]


def _missing_of(
    table: Table, row: Row, stored: Mapping[UnitKey, UnitResult], units: Sequence[str] | None
) -> Iterable[Task]:
    done = done_units(row, stored)
    for unit in row.units:
        if unit not in done and (not units or unit in units):
            yield Task(table.stem, row.name, unit, row.settings_of(unit), row.data)


def run(
    table: Table,
    tasks: Sequence[Task],
    results: Path,
    *,
    experiments: Mapping[str, Experiment],
    jobs: int = 1,
    verbose: int = 0,
    tell: Told = lambda task, result: None,
) -> None:
    """Run the tasks; each is written as soon as it is done, so that nothing done is lost.

    With `jobs` above 1 so many run at the same time, in processes that share the cores.
    """
    for task in tasks:
        _experiment(table, task, experiments)  # an unknown name shows now, not hours later
    if jobs == 1:
        for task in tasks:
            tell(task, None)
            task = replace(task, verbose=verbose)
            _keep(table, task, _done(*_experiment(table, task, experiments), task), results, tell)
        return
    _run_side_by_side(table, tasks, results, experiments, jobs, tell)


def _run_side_by_side(
    table: Table,
    tasks: Sequence[Task],
    results: Path,
    experiments: Mapping[str, Experiment],
    jobs: int,
    tell: Told,
) -> None:
    threads = max(1, (os.cpu_count() or 1) // jobs)
    # Not forked: the threads of OpenMP do not survive that.
    context = multiprocessing.get_context("spawn")
    failure: Exception | None = None
    # Not `as_completed`: it waits for ever for those that `shutdown` cancels.
    ended: SimpleQueue[Future[UnitResult]] = SimpleQueue()
    with ProcessPoolExecutor(jobs, context, initializer=_end_with_parent) as pool:
        running = {}
        for task in tasks:
            task = replace(task, n_jobs=threads)
            future = pool.submit(_done, *_experiment(table, task, experiments), task)
            running[future] = task
            future.add_done_callback(ended.put)
        for _ in tasks:
            future = ended.get()
            if future.cancelled():
                continue
            try:
                _keep(table, running[future], future.result(), results, tell)
            except Exception as error:
                # Those that already run may finish and be kept; no others begin.
                failure = failure or error
                pool.shutdown(wait=False, cancel_futures=True)
    if failure is not None:
        raise failure


def _end_with_parent() -> None:
    """End the workers of a killed run, which would otherwise run for hours."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _experiment(
    table: Table, task: Task, experiments: Mapping[str, Experiment]
) -> tuple[str, Experiment]:
    name = table.row(task.row).experiment
    if name is None or name not in experiments:
        raise ValueError(
            f"row {task.row!r}: there is no experiment {name!r}; "
            f"there are {', '.join(sorted(experiments))}"
        )
    return name, experiments[name]


def _done(name: str, experiment: Experiment, task: Task) -> UnitResult:
    note_commit()  # of the code that runs here and now: hours later there may be another
    begin = time.perf_counter()
    try:
        outcome = experiment(task)
    except ValueError as error:
        raise ValueError(f"{task}: {error}") from error
    return finished(name, task, outcome, time.perf_counter() - begin)


def _keep(table: Table, task: Task, result: UnitResult, results: Path, tell: Told) -> None:
    write_units(results, table, {(task.row, task.unit): result})
    tell(task, result)
