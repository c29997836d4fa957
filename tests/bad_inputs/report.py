"""Tries the whole list, and writes what was told: reports/results/bad-inputs.json and the page.

python tests/bad_inputs/report.py
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
import warnings
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the tests have it

from listed import CASES, sweep
from listed.case import Case, tried
from sklearn.exceptions import ConvergenceWarning

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "reports" / "results" / "bad-inputs.json"
PAGE = ROOT / "reports" / "bad-inputs.md"
WANTED = 200


def run() -> dict[str, Any]:
    """Try every input of every case."""
    begin = time.perf_counter()
    warnings.simplefilter("error")  # as the tests have it
    warnings.filterwarnings("ignore", "L-BFGS stopped at max_iter", ConvergenceWarning)
    results = {
        "command": "python tests/bad_inputs/report.py",
        "versions": {name: version(name) for name in ("crfx", "numpy", "scikit-learn", "xgboost")},
        "python": platform.python_version(),
        "cases": [_outcome(case) for case in CASES],
        "sweep": [{**_outcome(case), "values": case.values} for case in sweep.CASES],
    }
    return {**results, "took": round(time.perf_counter() - begin)}


def _outcome(case: Case) -> dict[str, Any]:
    """Return the message for the first input and whether every input raised."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = tried(case, Path(folder))
    return {
        "area": case.area,
        "tried": case.tried,
        "inputs": case.n_inputs,
        "error": outcome.error,
        "told": outcome.raised,
        "refused": not outcome.problems,
    }


def page(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    cases, swept = results["cases"], results["sweep"]
    n_inputs, n_swept = (sum(row["inputs"] for row in rows) for rows in (cases, swept))
    passed = sum(case["refused"] for case in cases)
    lines = [
        "# Bad inputs, and what is said about them",
        "",
        "Rendered by `tests/bad_inputs/report.py` from "
        "[results/bad-inputs.json](results/bad-inputs.json); the list itself is in "
        "`tests/bad_inputs/listed`, and a test each.",
        "",
        f"*`{results['command']}`; Python {results['python']}; "
        f"{', '.join(f'{name} {number}' for name, number in results['versions'].items())}; "
        f"{results['took']} s.*",
        "",
        f"{len(cases)} refusals (≥ {WANTED}), tried with {n_inputs} inputs; {passed} of them are "
        "as they should be: an error of the right kind, on one line, within seconds, which names "
        "the place; an estimator is left as it was, and a command ends with code 2, prints nothing "
        "and leaves no file behind. What goes for several estimators or functions is tried on one "
        "after the other. Beyond that, every argument of every estimator was given values that "
        f"make no sense: {n_swept} combinations, the last table.",
        "",
        "| area | refusals |",
        "|---|---|",
        *(f"| {area} | {count} |" for area, count in _counted(cases).items()),
    ]
    for area in _counted(cases):
        lines += [
            "",
            f"## {area[0].upper()}{area[1:]}",
            "",
            "| tried | error | told |",
            "|---|---|---|",
        ]
        lines += [
            f"| {_cell(case['tried'])}{_mark(case)} | {case['error']} | {_cell(case['told'])} |"
            for case in cases
            if case["area"] == area
        ]
    lines += ["", "## Every argument of every estimator", "", "| of | argument | refused | told |"]
    lines += ["|---|---|---|---|"]
    lines += [
        f"| {row['area'].removeprefix('arguments of ')} | `{row['tried']}` | "
        f"{_cell(', '.join(row['values']))}{_mark(row)} | {_cell(row['told'])} |"
        for row in swept
    ]
    return "\n".join(lines) + "\n"


def _counted(cases: list[dict[str, Any]]) -> dict[str, int]:
    return dict(Counter(case["area"] for case in cases))


def _mark(row: dict[str, Any]) -> str:
    return "" if row["refused"] else " **not refused as it should be**"


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")


def _json(results: dict[str, Any]) -> str:
    """Return the results as JSON, one line per case, so that diffs are readable."""
    parts = []
    for name, value in results.items():
        rows = value if isinstance(value, list) else [value]
        lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
        parts.append(
            f'"{name}": [\n  {lines}\n]' if isinstance(value, list) else f'"{name}": {lines}'
        )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> int:
    """Write both files; 1 where a case went wrong."""
    results = run()
    RESULTS.write_text(_json(results), encoding="utf-8")
    PAGE.write_text(page(results), encoding="utf-8")
    wrong = [row for row in [*results["cases"], *results["sweep"]] if not row["refused"]]
    for row in wrong:
        print(row, file=sys.stderr)
    print(f"{len(results['cases'])} inputs, {len(wrong)} wrong; written: {PAGE.relative_to(ROOT)}")
    return min(1, len(wrong))


if __name__ == "__main__":
    sys.exit(main())
