"""Is crfx ready for real work?  One page from the measurements of other benchmarks.

    python benchmarks/real_work.py

Reads reports/results/{cli,tagging,latency,bad-inputs,fuzz}.json, writes reports/real-work.md.
"""

from __future__ import annotations

import json
from typing import Any

import cli
import latency
import tagging
from instruction_sets import NAMES
from measuring import RESULTS, ROOT, verdict, write_whole

PAGE = ROOT / "reports" / "real-work.md"
LEAST_BAD_INPUTS = 200


def read(name: str) -> Any:
    """Return recorded measurements."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def page() -> str:
    """Return the report, rendered from the measurements."""
    rows = [_entities(read("cli")), _tagging(read("tagging")), _latency(read("latency"))]
    lines = [
        "# Ready for real work",
        "",
        "Rendered by `benchmarks/real_work.py` from the results of the pages it names.",
        "",
        "| what | figure | page |",
        "|---|---|---|",
        "| from a clone to a model of your own file | 2 commands: `make setup`, `crfx train` | "
        "[README](../README.md) |",
        *rows,
        _bad_inputs(read("bad-inputs")),
        "| spans, k best, marginals under constraints | equal to enumeration: spans to 1e-9, what "
        "estimators give from float32 scores to 2e-5 | `tests/inference/test_spans.py`, "
        "`tests/estimators/test_constraints.py` |",
        _fuzz(read("fuzz")),
    ]
    return "\n".join([*lines, ""])


def _entities(result: dict[str, Any]) -> str:
    model = result["models"]["linear"]
    f1, tag, help_seconds = model["testb"]["f1"], model["tag_ten_lines"], result["help"]
    return (
        f"| `crfx train --model linear`, `crfx eval` on CoNLL-2003, the file alone | F1 "
        f"{100 * f1:.2f} on testb (≥ {100 * cli.LEAST_F1:.0f}): {verdict(f1 >= cli.LEAST_F1)}; "
        f"`crfx --help` in {help_seconds:.2f} s (≤ {cli.MOST_SECONDS_HELP}): "
        f"{verdict(help_seconds <= cli.MOST_SECONDS_HELP)}; `crfx tag` of ten lines in {tag:.2f} s "
        f"(≤ {cli.MOST_SECONDS_TAG}): {verdict(tag <= cli.MOST_SECONDS_TAG)} | [cli](cli.md) |"
    )


def _tagging(result: dict[str, Any]) -> str:
    isa = next(iter(result["sets"]))
    target = tagging.TARGETS[0]
    figure = target.cell(isa, result["figures"][target.key][isa])
    return (
        f"| tagging testb, file to file, beside python-crfsuite, one thread, {NAMES[isa]} | times "
        f"as fast: {figure} | [tagging](tagging.md) |"
    )


def _latency(result: dict[str, Any]) -> str:
    isa = next(iter(result["sets"]))
    (target,) = latency.TARGETS
    figure = target.cell(isa, result["figures"][target.key][isa])
    return (
        f"| `GBCRF`, one sentence of 20 tokens, 300 rounds, 9 labels, {NAMES[isa]} | of XGBoost's "
        f"time: {figure} | [latency](latency.md) |"
    )


def _bad_inputs(result: dict[str, Any]) -> str:
    n_cases = len(result["cases"])
    n_refused = sum(case["refused"] for case in result["cases"])
    reached = n_refused == n_cases >= LEAST_BAD_INPUTS
    return (
        f"| bad inputs, each with a clear error | {n_refused} of {n_cases} (≥ {LEAST_BAD_INPUTS}): "
        f"{verdict(reached)} | [bad-inputs](bad-inputs.md) |"
    )


def _fuzz(result: dict[str, Any]) -> str:
    minutes = min(loader["minutes"] for loader in result.values())
    executions = sum(loader["executions"] for loader in result.values())
    findings = sum(len(loader["findings"]) for loader in result.values())
    return (
        f"| coverage-guided fuzzing of {len(result)} loaders | {minutes:.0f} minutes each or more, "
        f"{executions:,} inputs, {findings} findings left | [fuzz](fuzz.md) |"
    )


def main() -> None:
    """Write the page."""
    text = page()
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
