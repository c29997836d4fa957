"""Which tests execute which lines, and how long they take: measured once for all mutations."""

from __future__ import annotations

import ast
import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from scratch import copy_repository, environment

# Left out, because they are slow and test other things than `src`: pages, tables, harnesses.
LEFT_OUT = ("tests/documentation", "tests/reproduce", "tests/fuzz", "tests/wheel")
AHEAD, RARE = 5, 50  # cases, tests
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def measure_coverage(tests: Path, src: Path, work: Path) -> None:
    """Run the tests in a copy; write `coverage`, and `durations.json` of the tests that passed."""
    repository = copy_repository(tests, src, work / "covered")
    subprocess.run(
        [sys.executable, __file__, str(work)],
        cwd=repository,
        env={**environment(repository), "COVERAGE_FILE": str(work / "coverage")},
        check=True,
    )


def run_covered(work: Path) -> None:
    """Run the tests of the current folder with coverage by test; write their durations."""
    import pytest

    durations = Durations()
    pytest.main(
        [
            *("-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider", "--tb=native"),
            *("--cov", "src/crfx", "--cov-context", "test", "--cov-report", ""),
            *(f"--ignore={folder}" for folder in LEFT_OUT),
            *(f"--basetemp={work / 'temporary'}", "tests", "src"),
        ],
        plugins=[durations],
    )
    passed = {test: s for test, s in durations.seconds.items() if test not in durations.bad}
    (work / "durations.json").write_text(json.dumps(passed, indent=0), encoding="utf-8")


class Durations:
    """A pytest plugin that records the seconds of every test, and which ones did not pass."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.bad: set[str] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add the time of one phase: setup, call or teardown."""
        self.seconds[report.nodeid] += report.duration
        if report.outcome != "passed":
            self.bad.add(report.nodeid)
        if report.failed:
            print(report.nodeid, report.when, report.longreprtext, sep="\n", file=sys.stderr)


class Coverage:
    """The tests that passed: their durations and the lines that each of them executes."""

    def __init__(self, work: Path) -> None:
        from coverage import CoverageData

        self.seconds: dict[str, float] = json.loads((work / "durations.json").read_text("utf-8"))
        self._data = CoverageData(str(work / "coverage"))
        self._data.read()
        self._source = work / "covered" / "src"
        self._n_lines = _lines_by_test(work / "coverage")

    def tests_of(self, module: str, line: int) -> tuple[list[str], bool]:
        """Return the tests that execute a line, those first that are most specific to it.

        What is executed by an import is tested by what it serves: the function of a signature, the
        methods of a class, all functions of a module.  Those of the module also stand in for a line
        of a function that no test executes (False): another process may execute it.
        """
        source = (self._source / module).read_text(encoding="utf-8")
        by_line = self._data.contexts_by_lineno(str(self._source / module))
        in_function, choices = lines_to_cover(ast.parse(source), line)
        for lines in choices:
            tests = {test for number in lines for test in self._tests(by_line.get(number, ()))}
            if tests:
                is_executed = not in_function or lines is choices[0]
                text = source.splitlines()[line - 1]
                return self._specific_first(module, text, tests), is_executed
        return [], False

    def _tests(self, contexts: Any) -> Iterator[str]:
        """Yield the tests of contexts such as `FILE::TEST|run`; a fixture serves its whole file."""
        for context in contexts:
            test, _, phase = context.rpartition("|")
            if test in self.seconds:
                yield test
            if phase == "setup":
                file = test.partition("::")[0] + "::"
                yield from (other for other in self.seconds if other.startswith(file))

    def _specific_first(self, module: str, text: str, tests: set[str]) -> list[str]:
        """Sort tests: a case of every function, then the next; near ones first, then small ones.

        A test gets ahead by some cases for each word of the line that its name has, and few others.
        """
        shared = {test: words(text) & words(test.partition("::")[2]) for test in tests}
        n_tests = Counter(word for words in shared.values() for word in words)
        cases: Counter[str] = Counter()
        keys = {}
        for test in sorted(tests, key=lambda test: (self._n_lines.get(test, 0), test)):
            function = test.partition("[")[0]
            n_rare = sum(n_tests[word] <= RARE for word in shared[test])
            keys[test] = (cases[function] - AHEAD * n_rare, distance(module, test), len(keys))
            cases[function] += 1
        return sorted(tests, key=keys.__getitem__)


def words(text: str) -> set[str]:
    """Return the longer words of a text, and the names in it."""
    return set(re.findall(r"[a-z][a-z_]{3,}", text.lower()))


def distance(module: str, test: str) -> int:
    """Return 0 for a test whose file is named after the module, 1 for the same folder, else 2."""
    of_module, of_test = PurePosixPath(module), PurePosixPath(test.partition("::")[0])
    if of_test == "src" / of_module or of_test.stem == f"test_{of_module.stem}":
        return 0
    return 1 if of_test.parent.name == of_module.parent.name else 2


def lines_to_cover(tree: ast.Module, line: int) -> tuple[bool, list[set[int]]]:
    """Tell whether a line is in a function, and return sets of lines.

    The first set of which a test executes any says who tests the line.
    """
    around = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _spans(node, line)]
    around.sort(key=lambda node: (node.lineno, -node.end_lineno))
    statement = around[-1]
    within = [node for node in around[:-1] if isinstance(node, FUNCTION) and _in_body(node, line)]
    if within:
        header = _header(statement)
        lines = header if line in header else {line}  # a line such as `except ValueError:`
        return True, [lines, _bodies(tree)]
    owners = [node for node in around if isinstance(node, FUNCTION | ast.ClassDef)]
    return False, [_bodies(node) for node in [*reversed(owners), tree]]


def _spans(node: ast.stmt, line: int) -> bool:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return first <= line <= node.end_lineno


def _in_body(node: FUNCTION, line: int) -> bool:
    return node.body[0].lineno <= line


def _header(statement: ast.stmt) -> set[int]:
    """Return the lines of a simple statement, or those of a compound one before its body."""
    body = getattr(statement, "body", None)
    if body is None:
        return set(range(statement.lineno, statement.end_lineno + 1))
    return set(range(statement.lineno, max(body[0].lineno, statement.lineno + 1)))


def _bodies(node: ast.AST) -> set[int]:
    """Return the lines in the bodies of all functions in a node."""
    functions = [inner for inner in ast.walk(node) if isinstance(inner, FUNCTION)]
    return {i for f in functions for i in range(f.body[0].lineno, f.end_lineno + 1)}


def _lines_by_test(coverage_file: Path) -> Counter[str]:
    """Return how many lines each test executes, over all modules."""
    n_lines: Counter[str] = Counter()
    query = "SELECT context, numbits FROM line_bits JOIN context ON context.id = context_id"
    with sqlite3.connect(coverage_file) as database:
        for context, bits in database.execute(query):
            n_lines[context.rpartition("|")[0]] += int.from_bytes(bits, "little").bit_count()
    return n_lines


if __name__ == "__main__":
    run_covered(Path(sys.argv[1]))
