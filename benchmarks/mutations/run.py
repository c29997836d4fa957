"""Count the mutations of crfx that the tests catch.

    python benchmarks/mutations/run.py NAME [--tests DIR] [--src DIR] [--work DIR]

NAME is what the result is called: benchmarks/mutations/NAME.json. The tests are those of the
checkout --tests, the source is that of --src with its compiled core. The first run measures which
tests cover what, into --work; run again with the same --work, it resumes. Needs pytest-cov and
Linux. The mutations are those of draw.py.

Every mutation is applied in a copy, and the tests that cover its line run in a forked process,
whose parent has imported the libraries but not crfx. The first test that fails ends the run.
"""

from __future__ import annotations

import argparse
import compileall
import fcntl
import importlib
import importlib.util
import json
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from covering import Coverage, measure_coverage
from draw import DRAWN, ROOT, apply_mutation, folder
from scratch import SETTINGS, copy_repository

WORKERS = 2
PRELOADED = ("numpy", "pandas", "pytest", "rich.progress", "threadpoolctl", "xgboost")
PRELOADED += tuple(f"scipy.{name}" for name in ("optimize", "sparse", "special", "stats"))
PRELOADED += tuple(f"sklearn.{name}" for name in ("base", "metrics", "model_selection", "utils"))
PRELOADED += ("hypothesis.strategies", "hypothesis.extra.numpy")
FACTOR, GRACE = 3, 60  # a run may take this many times the recorded seconds, and as many more
MOST_BYTES = 8 << 30  # of memory: a mutation may allocate without end

OUTCOMES = ("caught", "survived", "uncovered", "gone")


class Report:
    """A pytest plugin that runs the chosen tests in their order and keeps what failed first."""

    def __init__(self, tests: list[str]) -> None:
        self._rank = {test: number for number, test in enumerate(tests)}
        self.failed: str | None = None
        self.n_passed = 0

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep the chosen tests, file by file so that fixtures of files are made once."""
        chosen = [item for item in items if item.nodeid in self._rank]
        first: dict[Any, int] = {}
        for item in sorted(chosen, key=lambda item: self._rank[item.nodeid]):
            first.setdefault(item.path, self._rank[item.nodeid])
        items[:] = sorted(chosen, key=lambda item: (first[item.path], self._rank[item.nodeid]))

    def pytest_collectreport(self, report: Any) -> None:
        """Keep a file that could not be imported."""
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep a test that failed in any phase."""
        if report.failed:
            self.failed = self.failed or report.nodeid
        self.n_passed += report.when == "call" and report.passed


def run_tests(repository: Path, tests: list[str], limit: float) -> dict[str, Any]:
    """Run tests of a copy in a forked process; return what failed first, if anything did."""
    outcome_file = repository.parent / f"{repository.name}.json"
    outcome_file.unlink(missing_ok=True)
    process = multiprocessing.get_context("fork").Process(
        target=_run_here, args=(repository, tests, outcome_file)
    )
    process.start()
    process.join(limit)
    is_hanging = process.is_alive()
    try:
        os.killpg(process.pid, signal.SIGKILL)  # with processes that a test has left
    except ProcessLookupError:
        process.kill()
    process.join()
    if is_hanging:
        return {"failed": "no end", "n_passed": 0}
    if not outcome_file.exists():
        return {"failed": f"exit code {process.exitcode}", "n_passed": 0}
    return json.loads(outcome_file.read_text(encoding="utf-8"))


def _run_here(repository: Path, tests: list[str], outcome_file: Path) -> None:
    """Run tests of a copy in this process, and write the outcome."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    log = os.open(outcome_file.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.chdir(repository)
    sys.path.insert(0, str(repository / "src"))
    os.environ |= {"PYTHONPATH": str(repository / "src")}
    importlib.invalidate_caches()

    import pytest

    report = Report(tests)
    temporary = outcome_file.with_suffix(".tmp")
    options = ["-q", "-x", "-p", "no:cacheprovider", f"--basetemp={temporary}"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what is preloaded
    functions = dict.fromkeys(test.partition("[")[0] for test in tests)
    code = pytest.main([*options, *functions], plugins=[report])
    if code not in (0, 1, 5):
        report.failed = report.failed or f"pytest exit code {int(code)}"
    outcome = {"failed": report.failed, "n_passed": report.n_passed}
    outcome_file.write_text(json.dumps(outcome), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)


class Worker:
    """A copy of the repository, in which one mutation after another is tried."""

    def __init__(self, repository: Path, coverage: Coverage, arguments: Any) -> None:
        self._repository = repository
        self._coverage = coverage
        self._most_tests, self._most_seconds = arguments.most_tests, arguments.most_seconds
        self._fit: set[str] = set()  # tests that pass without a mutation as well

    def outcome(self, mutation: dict[str, Any]) -> dict[str, Any]:
        """Return what becomes of a mutation: gone, uncovered, caught by a test or survived."""
        path = self._repository / "src" / mutation["module"]
        original = path.read_bytes() if path.exists() else b""
        applied = apply_mutation(original.decode(), mutation)
        if applied is None:
            return {"outcome": "gone"}
        mutated, line = applied
        covering, is_executed = self._coverage.tests_of(mutation["module"], line)
        while True:
            tests = self._chosen(covering)
            if not tests:
                return {"outcome": "uncovered", "n_chosen": 0, "n_covering": len(covering)}
            path.write_text(mutated, encoding="utf-8")
            result = run_tests(self._repository, tests, self._limit(tests))
            path.write_bytes(original)
            Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
            failed = result["failed"]
            if failed is None or not (unfit := self._unfit(failed, tests)):
                break
            covering = [test for test in covering if test not in unfit]
        return {
            "outcome": "caught" if failed else "survived" if is_executed else "uncovered",
            "by": failed,
            "n_passed": result["n_passed"],
            "n_chosen": len(tests),
            "n_covering": len(covering),
        }

    def _chosen(self, covering: list[str]) -> list[str]:
        """Return the first tests, as many as the limits of number and time allow."""
        chosen, left = [], self._most_seconds
        for test in covering:
            seconds = self._coverage.seconds[test]
            if seconds <= left and len(chosen) < self._most_tests:
                chosen.append(test)
                left -= seconds
        return chosen

    def _limit(self, tests: list[str]) -> float:
        return FACTOR * sum(self._coverage.seconds[test] for test in tests) + GRACE

    def _unfit(self, failed: str, tests: list[str]) -> set[str]:
        """Return the tests to blame for a failure if they fail without the mutation as well.

        To blame is a test, the chosen tests of a file, or after a crash all of them.
        """
        blamed = [test for test in tests if test == failed or test.startswith(failed + "::")]
        blamed = blamed or tests
        if not self._fit.issuperset(blamed):
            unfit = run_tests(self._repository, blamed, self._limit(blamed))
            if unfit["failed"] is not None:
                return set(blamed)
            self._fit.update(blamed)
        return set()


def work(number: int, pending: list[dict[str, Any]], arguments: Any, results: Path) -> None:
    """Try every second mutation, and append each outcome to the results."""
    repository = copy_repository(arguments.tests, arguments.src, arguments.work / f"copy{number}")
    compileall.compile_dir(repository / "src", quiet=1)
    worker = Worker(repository, Coverage(arguments.work), arguments)
    for mutation in pending[number::WORKERS]:
        begin = time.perf_counter()
        outcome = worker.outcome(mutation)
        outcome |= {"key": key(mutation), "seconds": round(time.perf_counter() - begin, 1)}
        outcome |= {"most_tests": arguments.most_tests, "most_seconds": arguments.most_seconds}
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(outcome) + "\n")


def key(mutation: dict[str, Any]) -> list[Any]:
    """Return what identifies a mutation when lines have moved."""
    return [mutation[name] for name in ("module", "repeat", "before", "after")]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file in JSON Lines; none if it is not there."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def is_settled(outcome: dict[str, Any] | None, arguments: Any) -> bool:
    """Tell whether these limits of number and time can tell nothing more about a mutation."""
    if outcome is None:
        return False
    return (
        outcome["outcome"] in ("caught", "gone")
        or outcome.get("n_chosen") == outcome["n_covering"]
        or (
            outcome["most_tests"] >= arguments.most_tests
            and outcome["most_seconds"] >= arguments.most_seconds
        )
    )


def table(drawn: list[dict[str, Any]], outcomes: dict[str, dict[str, Any]]) -> list[str]:
    """Return the outcomes by folder, as lines of Markdown; the share is that of what was tried."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutation in drawn:
        result = outcomes.get(json.dumps(key(mutation)))
        for place in (folder(mutation["module"]), "all"):
            counts[place][result["outcome"] if result else "not tried"] += 1
    lines = [
        "| folder | drawn | caught | survived | not covered | gone | share caught |",
        "|---|---|---|---|---|---|---|",
    ]
    for place in [*sorted(counts.keys() - {"all"}), "all"]:
        count = counts[place]
        tried = count["caught"] + count["survived"] + count["uncovered"]
        share = f"{100 * count['caught'] / tried:.0f} %" if tried else "-"
        cells = (count.total(), *(count[name] for name in OUTCOMES), share)
        lines.append(f"| {place} | {' | '.join(map(str, cells))} |")
    return lines


def main() -> None:
    """Measure coverage if need be, try what has not been tried, and write the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name")
    parser.add_argument("--tests", type=Path, default=ROOT, help="checkout whose tests run")
    parser.add_argument("--src", type=Path, default=ROOT, help="checkout whose src is mutated")
    parser.add_argument("--work", type=Path, help="scratch folder (build/mutations/NAME)")
    parser.add_argument("--most-tests", type=int, default=40, help="per mutation")
    parser.add_argument("--most-seconds", type=float, default=60, help="recorded, per mutation")
    parser.add_argument("--table", action="store_true", help="only print what is there")
    arguments = parser.parse_args()
    arguments.work = (arguments.work or ROOT / "build" / "mutations" / arguments.name).resolve()
    arguments.work.mkdir(parents=True, exist_ok=True)
    results = arguments.work / "results.jsonl"

    def outcomes() -> dict[str, dict[str, Any]]:
        return {json.dumps(outcome["key"]): outcome for outcome in read_lines(results)}

    drawn = read_lines(DRAWN)
    if not arguments.table:
        lock = (arguments.work / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if another run uses the folder
        if not (arguments.work / "durations.json").exists():
            measure_coverage(arguments.tests, arguments.src, arguments.work)
        known = outcomes()
        pending = [m for m in drawn if not is_settled(known.get(json.dumps(key(m))), arguments)]
        run_all(pending, arguments, results)
    known = outcomes()
    lines = table(drawn, known)
    print(*lines, sep="\n")
    tried = [known.get(json.dumps(key(mutation)), {}) for mutation in drawn]
    brief = [[outcome.get("outcome"), outcome.get("by")] for outcome in tried]
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in brief)
    text = f'{{"table": {json.dumps(lines, indent=1)},\n"outcomes": [\n{rows}\n]}}\n'
    (DRAWN.parent / f"{arguments.name}.json").write_text(text, encoding="utf-8")


def run_all(pending: list[dict[str, Any]], arguments: Any, results: Path) -> None:
    """Try mutations in several workers that have imported the libraries, but not crfx."""
    os.environ |= SETTINGS
    for name in PRELOADED:
        importlib.import_module(name)
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=work, args=(number, pending, arguments, results))
        for number in range(WORKERS)
    ]
    for process in workers:
        process.start()
    for process in workers:
        process.join()


if __name__ == "__main__":
    main()
