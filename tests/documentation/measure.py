"""Runs every block and example, and writes what was counted: reports/documentation.md.

python tests/documentation/measure.py
"""

from __future__ import annotations

import json
import os
import platform
import re
import tempfile
import time
import warnings
from collections import Counter
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the tests have it

from documented import ROOT
from documented.blocks import Block, blocks_of, pages
from documented.coverage import (
    COMMANDS,
    ESTIMATORS,
    examples_of_command,
    examples_of_estimator,
    public_names,
)
from documented.explanations import sums
from documented.files import write_files
from documented.running import Page

RESULTS = ROOT / "reports" / "results" / "documentation.json"
PAGE = ROOT / "reports" / "documentation.md"
OPTIONAL = {"dask", "torch"}
"""What pages may import that an environment for the tests need not have."""


def run() -> dict[str, Any]:
    """Run all pages, and count."""
    begin = time.perf_counter()
    explanations = sums()  # of small models, whose training may warn
    warnings.simplefilter("error")  # as the tests have it
    return {
        "command": "python tests/documentation/measure.py",
        "versions": {name: version(name) for name in ("crfx", "numpy", "scikit-learn", "xgboost")},
        "python": platform.python_version(),
        "pages": [ran(row) for row in counted()],
        **described(),
        "explanations": explanations,
        "took": round(time.perf_counter() - begin),
    }


def counted() -> list[dict[str, Any]]:
    """Every page that has blocks: how many of which kind."""
    rows = ((page, blocks_of(page)) for page in pages())
    return [
        {"page": page, "blocks": dict(sorted(Counter(block.kind for block in blocks).items()))}
        for page, blocks in rows
        if blocks
    ]


def ran(row: dict[str, Any]) -> dict[str, Any]:
    """The same with whether all of them did what the page says."""
    blocks = blocks_of(row["page"])
    if missing := needed(blocks):
        return {**row, "ran": False, "why": f"needs {', '.join(missing)}"}
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        Page(Path(folder)).run(blocks)
    return {**row, "ran": True}


def needed(blocks: list[Block]) -> list[str]:
    """The optional libraries that a page imports and that are not here."""
    code = "".join(block.text for block in blocks if block.kind == "python")
    imported = set(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE))
    return sorted(name for name in OPTIONAL & imported if find_spec(name) is None)


def described() -> dict[str, Any]:
    """Return what has a docstring or an example."""
    names = dict(public_names())
    return {
        "public": len(names),
        "documented": sum(names.values()),
        "estimators": {name: examples_of_estimator(name) for name in ESTIMATORS},
        "commands": {" ".join(name): len(examples_of_command(name)) for name in COMMANDS},
    }


def page(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    rows = results["pages"]
    kinds = sorted({kind for row in rows for kind in row["blocks"]})
    total = sum(sum(row["blocks"].values()) for row in rows)
    done = sum(sum(row["blocks"].values()) for row in rows if row["ran"])
    shown = [
        ("code blocks in README.md and docs/ executed", done, total),
        ("public names with a docstring", results["documented"], results["public"]),
        ("estimators with an executed example", *_with(results["estimators"])),
        ("commands with an executed example", *_with(results["commands"])),
    ]
    lines = [
        "# What the documentation shows is run",
        "",
        "Rendered by `tests/documentation/measure.py` from "
        "[results/documentation.json](results/documentation.json); the tests in "
        "`tests/documentation` run the same.",
        "",
        f"*`{results['command']}`; Python {results['python']}; "
        f"{', '.join(f'{name} {number}' for name, number in results['versions'].items())}; "
        f"{results['took']} s.*",
        "",
        "| what | of | share |",
        "|---|---|---|",
        *(f"| {what} | {part} of {whole} | {part / whole:.0%} |" for what, part, whole in shown),
        "",
        "Explanations add up: base + contributions differ from the score of a label by "
        f"{results['explanations']['worst']:.1e} at most (1e-4 asked for), over models of "
        f"{results['explanations']['kinds']} kinds on sequences they were not fitted on.",
        "",
        "Python blocks of a page run one after the other in one namespace and print what the page "
        "says they print. Lines of the shell run in the same folder; `make` words and `pip` extras "
        "are seen to exist. A block of text is what the block above it printed, or a file that "
        "crfx reads. Public are modules, classes, functions and methods without an underscore; "
        "examples of estimators are doctests, those of commands stand on their help pages.",
        "",
        f"| page | {' | '.join(kinds)} | |",
        f"|---|{'---|' * len(kinds)}---|",
        *(_row(row, kinds) for row in rows),
        "",
        "| estimator or command | examples |",
        "|---|---|",
        *(f"| `{name}` | {count} |" for name, count in results["estimators"].items()),
        *(f"| `crfx {name}` | {count} |" for name, count in results["commands"].items()),
    ]
    return "\n".join(lines) + "\n"


def _with(examples: dict[str, int]) -> tuple[int, int]:
    return sum(count > 0 for count in examples.values()), len(examples)


def _row(row: dict[str, Any], kinds: list[str]) -> str:
    counts = " | ".join(str(row["blocks"].get(kind, "")) for kind in kinds)
    status = "executed" if row["ran"] else f"**not executed**: {row['why']}"
    return f"| [{row['page']}](../{row['page']}) | {counts} | {status} |"


if __name__ == "__main__":
    results = run()
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(results), encoding="utf-8")
