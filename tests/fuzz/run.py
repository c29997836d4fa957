"""Fuzz the loaders: ``python tests/fuzz/run.py --minutes 10 [NAME ...]``.

Runs each harness (fuzz_NAME.py) for so long in a process of its own, with atheris (crfx[fuzz]),
writes reports/results/fuzz.json and renders reports/fuzz.md.  Names that are not given keep the
results they have.  Inputs that were found stay in build/fuzz/NAME; the corpus grows there from run
to run.  A harness that crashed is started anew until its time is over.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "fuzz"
RESULTS = ROOT / "reports" / "results" / "fuzz.json"
PAGE = ROOT / "reports" / "fuzz.md"
NAMES = sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.py"))
VERSIONS = ("crfx", "atheris", "numpy", "scikit-learn", "xgboost")
MOST_STARTS = 30
COVERED = re.compile(rb"cov: (\d+) ft: (\d+) corp: (\d+)")
EXECUTED = re.compile(rb"^#(\d+)\s", re.MULTILINE)
PEAK = re.compile(rb"peak_rss_mb:\s+(\d+)")


def main() -> None:
    """Fuzz, write, render; the exit status is 1 where something was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="of each harness")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", help=f"of harnesses: {', '.join(NAMES)}; default: all")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"there is no harness {', '.join(sorted(unknown))}: {', '.join(NAMES)}")
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in options.names or NAMES:
        results[name] = fuzzed(name, options.minutes, options.seed)
        print(name, json.dumps({k: v for k, v in results[name].items() if k != "versions"}))
        write_whole(RESULTS, json.dumps(dict(sorted(results.items())), indent=1) + "\n")
        write_whole(PAGE, page(dict(sorted(results.items()))))
    sys.exit(any(results[name]["findings"] for name in options.names or NAMES))


def fuzzed(name: str, minutes: float, seed: int) -> dict[str, Any]:
    """Return what one harness did in its time."""
    folder = WORK / name
    for part in ("findings", "crashes"):
        shutil.rmtree(folder / part, ignore_errors=True)
    for part in ("corpus", "findings", "crashes"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    totals = {"executions": 0, "coverage": 0, "features": 0, "corpus": 0, "peak_mb": 0}
    start, end = time.monotonic(), time.monotonic() + 60 * minutes
    starts = 0
    while (left := end - time.monotonic()) > 1 and starts < MOST_STARTS:
        done = run_once(name, folder, max(1, round(left)), seed + starts)
        starts += 1
        count(totals, done.stderr)
        if done.returncode != 0 and not crashed(folder):
            sys.exit(f"{name} does not run:\n{done.stderr.decode(errors='replace')[-2000:]}")
    return {
        "command": f"python tests/fuzz/run.py --minutes {minutes:g} {name}",
        "minutes": round((time.monotonic() - start) / 60, 2),
        "starts": starts,
        **totals,
        "findings": findings(folder),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in VERSIONS},
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def run_once(
    name: str, folder: Path, seconds: int, seed: int
) -> subprocess.CompletedProcess[bytes]:
    """One process, until the time is over or it crashes."""
    command = [sys.executable, str(HERE / f"fuzz_{name}.py"), "--folder", str(folder)]
    command += ["--seconds", str(seconds), "--seed", str(seed)]
    quiet = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, stderr=subprocess.PIPE, env=quiet, cwd=folder, check=False)


def count(totals: dict[str, int], log: bytes) -> None:
    """Add what the fuzzer said: executions add up, of the rest the most."""
    totals["executions"] += max((int(number) for number in EXECUTED.findall(log)), default=0)
    for numbers in COVERED.findall(log)[-1:]:
        for key, value in zip(("coverage", "features", "corpus"), map(int, numbers), strict=True):
            totals[key] = max(totals[key], value)
    for peak in PEAK.findall(log)[-1:]:
        totals["peak_mb"] = max(totals["peak_mb"], int(peak))


def crashed(folder: Path) -> list[Path]:
    """Inputs that ended a process: crash-…, timeout-… and oom-…; slow-unit-… did not."""
    paths = sorted((folder / "crashes").iterdir())
    return [path for path in paths if not path.name.startswith("slow-unit")]


def findings(folder: Path) -> list[dict[str, str]]:
    """Errors that are not allowed, and ends of the process, each with the head of its input."""
    records = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((folder / "findings").glob("*.json"))
    ]
    for path in crashed(folder):
        kind = {"oom": "too much memory", "timeout": "hang"}.get(path.name.split("-")[0], "crash")
        raw = path.read_bytes()
        digest = hashlib.sha1(raw).hexdigest()[:12]
        records.append({"what": kind, "message": f"input {digest}", "input": raw[:200].hex()})
    return records


def page(results: dict[str, Any]) -> str:
    """The page of the report."""
    lines = [
        "# Fuzzing the loaders",
        "",
        "Coverage-guided, by atheris, from small valid files. Anything but `ValueError` in one",
        "line is a finding: another error, a crash, 20 seconds for one input, 3 GB of memory. Zip",
        "files and trees are taken apart, changed and put together again, so that checksums do not",
        "stop what is changed. Coverage counts branches of the loader's own modules.",
        "",
        "| loader | minutes | executions | branches | corpus | peak MB | findings |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for name, record in results.items():
        findings_text = "; ".join(finding["what"] for finding in record["findings"]) or "none"
        lines.append(
            f"| {name} | {record['minutes']:.1f} | {record['executions']:,} | "
            f"{record['coverage']} | {record['corpus']} | {record['peak_mb']} | {findings_text} |"
        )
    lines += ["", *mended(), ""]
    for record in results.values():
        versions = ", ".join(
            f"{package} {number}" for package, number in record["versions"].items()
        )
        lines.append(
            f"- `{record['command']}`: Python {record['python']}, {versions}; "
            f"commit {record['commit']}, {record['date']}"
        )
    return "\n".join(lines) + "\n"


def mended() -> list[str]:
    """Return the fixed findings from found.md."""
    return (HERE / "found.md").read_text(encoding="utf-8").rstrip().splitlines()


def commit() -> str:
    """The commit, marked if the code differs from it."""

    def git(*arguments: str) -> str:
        asked = ["git", *arguments]
        done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    result = git("describe", "--always", "--abbrev=12") or "unknown"
    return result + ("+changes" if git("status", "--porcelain", "src", "tests/fuzz") else "")


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


if __name__ == "__main__":
    main()
