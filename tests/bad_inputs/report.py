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
_SWEPT = {id(case) for case in sweep.CASES}
LISTED = [case for case in CASES if id(case) not in _SWEPT]
"""Without the sweep over all arguments, which has a table of its own."""


def run() -> dict[str, Any]:
    """Try every case on all its subjects."""
    begin = time.perf_counter()
    warnings.simplefilter("error")  # as the tests have it
    warnings.filterwarnings("ignore", "L-BFGS stopped at max_iter", ConvergenceWarning)
    found = {
        "command": "python tests/bad_inputs/report.py",
        "versions": {name: version(name) for name in ("crfx", "numpy", "scikit-learn", "xgboost")},
        "python": platform.python_version(),
        "cases": [{"area": case.area, "tried": case.tried, **_outcome(case)} for case in LISTED],
        "sweep": _swept(),
    }
    return {**found, "took": round(time.perf_counter() - begin)}


def _outcome(case: Case) -> dict[str, Any]:
    """What the first subject told, and how many passed."""
    outcomes = []
    for subject in case.subjects:
        with tempfile.TemporaryDirectory() as folder:
            outcome = tried(case, subject, Path(folder))
        outcome.told = outcome.told.replace(folder, "FOLDER")
        outcomes.append(outcome)
    return {
        "subjects": len(outcomes),
        "error": outcomes[0].error,
        "told": outcomes[0].told,
        "refused": all(not outcome.problems for outcome in outcomes),
    }


def _swept() -> list[dict[str, Any]]:
    """Per estimator and argument: what was refused, and what was told of the first."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for case in sweep.CASES:
        argument, _, value = case.tried.partition(" is ")
        row = rows.setdefault(
            (case.area, argument), {"area": case.area, "argument": argument, "values": []}
        )
        outcome = _outcome(case)
        row["values"].append(value)
        row.setdefault("told", outcome["told"])
        row["refused"] = row.get("refused", True) and outcome["refused"]
    return list(rows.values())


def page(found: dict[str, Any]) -> str:
    """The results as Markdown."""
    cases, swept = found["cases"], found["sweep"]
    n_swept = sum(len(row["values"]) for row in swept)
    n_runs = sum(case["subjects"] for case in cases) + n_swept
    passed = sum(case["refused"] for case in cases)
    lines = [
        "# Bad inputs, and what is said about them",
        "",
        "Rendered by `tests/bad_inputs/report.py` from "
        "[results/bad-inputs.json](results/bad-inputs.json); the list itself is in "
        "`tests/bad_inputs/listed`, and a test each.",
        "",
        f"*`{found['command']}`; Python {found['python']}; "
        f"{', '.join(f'{name} {own}' for name, own in found['versions'].items())}; "
        f"{found['took']} s.*",
        "",
        f"{len(cases)} distinct inputs (≥ {WANTED}), {passed} of them refused as they should be: "
        "an error of the right kind, on one line, within seconds, which names the place; an "
        "estimator is left as it was, and a command ends with code 2, prints nothing and leaves no "
        "file behind. What goes for several estimators or functions was tried on each "
        f"({n_runs} runs). Beyond that, every argument of every estimator was given values that "
        f"make no sense: {n_swept} combinations, the last table.",
        "",
        "| area | inputs |",
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
        f"| {row['area'].removeprefix('arguments of ')} | `{row['argument']}` | "
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


def _json(found: dict[str, Any]) -> str:
    """With a line for each case, so that changes can be read."""
    parts = []
    for name, value in found.items():
        rows = value if isinstance(value, list) else [value]
        lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
        parts.append(
            f'"{name}": [\n  {lines}\n]' if isinstance(value, list) else f'"{name}": {lines}'
        )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> int:
    """Write both files; 1 where a case went wrong."""
    found = run()
    RESULTS.write_text(_json(found), encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    wrong = [row for row in [*found["cases"], *found["sweep"]] if not row["refused"]]
    for row in wrong:
        print(row, file=sys.stderr)
    print(f"{len(found['cases'])} inputs, {len(wrong)} wrong; written: {PAGE.relative_to(ROOT)}")
    return min(1, len(wrong))


if __name__ == "__main__":
    sys.exit(main())
