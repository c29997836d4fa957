"""The runner keeps results and runs what is missing or has changed."""

import json
import multiprocessing
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reproduce.experiments import Outcome
from reproduce.results import read_units, results_path, write_units
from reproduce.runner import missing, run
from reproduce.table import read_table

IMPORTABLE = """
import time
from reproduce.experiments import Outcome

def run(task):
    if task.unit == "1" and task.data["start"] < 0:
        raise ValueError("heads up")
    if int(task.unit) > 2:
        time.sleep(0.2)
    return Outcome({"error": task.data["start"] + int(task.unit)})
"""


def run_missing(path, coins, results, **arguments):
    table = read_table(path)
    run(table, missing(table, results), results, experiments={"coins": coins}, **arguments)


def units(tasks):
    return [(task.row, task.unit) for task in tasks]


def test_a_second_run_has_nothing_to_do(table_file, coins, tmp_path):
    run_missing(table_file, coins, tmp_path)
    assert coins.asked == [("new", "0"), ("new", "1"), ("new", "2")]
    run_missing(table_file, coins, tmp_path)
    assert len(coins.asked) == 3


def test_a_unit_is_kept_with_what_it_depends_on(table_file, coins, tmp_path):
    run_missing(table_file, coins, tmp_path)
    lines = (tmp_path / "coins.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3
    content = json.loads(lines[1])
    assert list(content)[:3] == ["table", "row", "unit"]
    assert [content[name] for name in ("table", "row", "unit")] == ["coins", "new", "1"]
    assert content["figures"] == {"error": 4.0}
    assert content["curves"] == {"error": [9.0, 4.0]}
    assert content["settings"] == {"random_state": 0, "rounds": 10, "edges": None}
    assert content["data"] == {"start": 3.0}
    assert (content["experiment"], content["seed"]) == ("coins", 0)
    assert set(content["versions"]) == {"crfx", "xgboost", "numpy", "python"}
    assert content["processor"]
    assert content["cores"] >= 1
    assert content["seconds"] >= 0
    assert {"commit", "date", "threads"} <= set(content)
    assert list(tmp_path.glob(".*")) == []  # nothing half written stays


def test_only_curves_that_the_table_shows_or_keeps_are_stored(table_file, tmp_path):
    def traced(task):
        return Outcome({"error": 1.0}, {"error": [1.5], "right": [1.0, 0.0], "loss": [2.0]})

    def stored():
        run_missing(table_file, traced, tmp_path)
        return read_units(tmp_path, read_table(table_file))["new", "0"].curves

    assert stored() == {"error": [1.5]}
    text = table_file.read_text(encoding="utf-8")
    text = text.replace("notes =", 'keep = ["right"]\nnotes =').replace(
        "start = 3.0", "start = 2.0"
    )
    table_file.write_text(text, encoding="utf-8")
    assert stored() == {"error": [1.5], "right": [1, 0]}


def write_some(path, results, digit, begin):
    """Write ten units of the table, one by one."""
    table = read_table(path)
    unit = read_units(results, table)["new", "0"]
    begin.wait()
    for number in range(10):
        key = "new", f"{digit}{number}"
        write_units(results, table, {key: replace(unit, figures={"error": float(number)})})


def test_processes_that_write_to_one_table_lose_no_lines(table_file, coins, tmp_path):
    table = read_table(table_file)
    tasks = missing(table, tmp_path, units=["0"])
    run(table, tasks, tmp_path, experiments={"coins": coins})
    context = multiprocessing.get_context("spawn")
    begin = context.Barrier(2)
    writers = [
        context.Process(target=write_some, args=(table_file, tmp_path, digit, begin))
        for digit in ("1", "2")
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    keys = list(read_units(tmp_path, table))
    assert keys == [("new", unit) for unit in ["0", *map(str, range(10, 30))]]
    assert list(tmp_path.glob(".*")) == []


def test_other_settings_run_again_and_the_rest_does_not(table_file, coins, tmp_path):
    run_missing(table_file, coins, tmp_path)
    text = table_file.read_text(encoding="utf-8")
    for old, new in (("rounds = 10", "rounds = 11"), ("start = 3.0", "start = 2.0")):
        table_file.write_text(text.replace(old, new), encoding="utf-8")
        assert len(missing(read_table(table_file), tmp_path)) == 3
    table_file.write_text(text.replace("published = { error = 4.0 }", ""), encoding="utf-8")
    assert missing(read_table(table_file), tmp_path) == []
    path = results_path(tmp_path, read_table(table_file))
    first, _, last = path.read_text(encoding="utf-8").splitlines()
    path.write_text(f"{first}\n{last}\n", encoding="utf-8")
    assert units(missing(read_table(table_file), tmp_path)) == [("new", "1")]


def test_a_failure_names_the_unit_and_keeps_what_was_done(table_file, coins, tmp_path):
    def failing(task):
        if task.unit == "1":
            raise ValueError("heads up")
        return coins(task)

    with pytest.raises(ValueError, match=r"^coins, new, unit 1: heads up$"):
        run_missing(table_file, failing, tmp_path)
    assert units(missing(read_table(table_file), tmp_path)) == [("new", "1"), ("new", "2")]


def test_rows_and_units_can_be_chosen(table_file, tmp_path):
    table = read_table(table_file)
    assert units(missing(table, tmp_path, rows=["new"], units=["2"])) == [("new", "2")]
    with pytest.raises(ValueError, match="no row 'newer': its rows are old, new"):
        missing(table, tmp_path, rows=["newer"])
    with pytest.raises(ValueError, match="no unit '7': units are 0, 1, 2"):
        missing(table, tmp_path, units=["7"])
    with pytest.raises(ValueError, match="row 'old' has nothing to run: open, comes later"):
        missing(table, tmp_path, rows=["old"])
    with pytest.raises(ValueError, match="no experiment 'coins'; there are dice"):
        run(table, missing(table, tmp_path), tmp_path, experiments={"dice": Outcome})


def test_a_damaged_file_is_named(table_file, coins, tmp_path):
    run_missing(table_file, coins, tmp_path)
    table = read_table(table_file)
    path = results_path(tmp_path, table)
    first, _, last = path.read_text(encoding="utf-8").splitlines()
    for damaged in ("{", "[]", "{}"):
        path.write_text(f"{first}\n{damaged}\n{last}\n", encoding="utf-8")
        with pytest.raises(
            ValueError, match=r"coins\.jsonl, line 2: not the result of a unit .* delete the line"
        ):
            missing(table, tmp_path)
    assert read_units(tmp_path / "nothing", table) == {}


@pytest.fixture
def importable(tmp_path, monkeypatch):
    """An experiment that another process can import."""
    (tmp_path / "coins_experiment.py").write_text(IMPORTABLE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import coins_experiment

    return coins_experiment.run


def test_units_run_side_by_side(table_file, importable, tmp_path):
    results = []
    run_missing(
        table_file, importable, tmp_path, jobs=2, tell=lambda task, result: results.append(result)
    )
    assert sorted(result.figures["error"] for result in results) == [3.0, 4.0, 5.0]
    assert missing(read_table(table_file), tmp_path) == []


def test_parallel_failure_is_reported_and_cancels_waiting_tasks(table_file, importable, tmp_path):
    """More than the workers and their queue take, so that some never begin."""
    text = table_file.read_text(encoding="utf-8")
    text = text.replace("start = 3.0", "start = -3.0")
    table_file.write_text(text.replace("[0, 1, 2]", str([*range(20)])), encoding="utf-8")
    with pytest.raises(ValueError, match="unit 1: heads up"):
        run_missing(table_file, importable, tmp_path, jobs=2)
    left = units(missing(read_table(table_file), tmp_path))
    assert ("new", "0") not in left
    assert ("new", "19") in left


KILLED = """
import sys
from pathlib import Path
from reproduce.runner import missing, run
from reproduce.table import read_table
import endless_experiment

if __name__ == "__main__":
    table, results = read_table(Path(sys.argv[1])), Path(sys.argv[2])
    run(table, missing(table, results), results, experiments={"coins": endless_experiment.run},
        jobs=2)
"""
ENDLESS = """
import os, time

def run(task):
    os.write(1, b"begun\\n")  # whole: by print, the words of two workers may come mixed
    time.sleep(600)
"""


def test_workers_end_with_a_run_that_is_killed(table_file, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (tmp_path / "endless_experiment.py").write_text(ENDLESS, encoding="utf-8")
    script = tmp_path / "killed.py"
    script.write_text(KILLED, encoding="utf-8")
    command = [sys.executable, str(script), str(table_file), str(tmp_path / "results")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as run_to_kill:
        try:
            assert run_to_kill.stdout.readline() == b"begun\n"
        finally:  # also where that fails: leaving the block waits for the process
            run_to_kill.kill()
        # The pipe ends when the last process that holds it does: here, the workers.
        run_to_kill.communicate(timeout=60)
