"""Shared parts of benchmarks: fair timing, a description of the machine, results on disk."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "reports" / "results"
# Scripts get their own folder on the path; data sets and peers are in `reproduce/`, beside it.
sys.path.append(str(ROOT))


def fastest(tasks: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Seconds of the fastest of several runs of each task, the tasks taking turns.

    Taking turns lets a slow moment of the machine hit all of them; the minimum then leaves it out.
    """
    best = dict.fromkeys(tasks, float("inf"))
    for task in tasks.values():
        task()  # pays for page faults, caches and thread pools
    for _ in range(repeats):
        for name, task in tasks.items():
            begin = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def machine(sets: Sequence[str] = ()) -> dict[str, object]:
    """Return the machine and the software that figures depend on.

    ``sets`` are the instruction sets measured, if they are not just the best one.
    """
    from crfx._core import instruction_set

    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "instruction_set": instruction_set(),
        **({"instruction_sets": list(sets)} if sets else {}),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {
            name: _version(name)
            for name in (
                "crfx",
                "numpy",
                "xgboost",
                "torch",
                "pytorch-crf",
                "python-crfsuite",
                "dask",
            )
        },
        "commit": _commit(),
        "date": datetime.date.today().isoformat(),
    }


def peak_memory() -> int:
    """Most bytes this process has held so far (Linux).

    Not getrusage: its maximum is inherited from the process that started this one.
    """
    return _status_bytes("VmHWM:")


def held_memory() -> int:
    """Bytes this process holds now (Linux)."""
    return _status_bytes("VmRSS:")


def watched(script: str, *arguments: str) -> dict[str, Any]:
    """Run ``script --work ARGUMENTS`` in a process of its own; return its JSON and ``bytes``.

    These are its largest anonymous memory, without pages that the system can read from files again.
    """
    asked = [sys.executable, "-W", "ignore", script, "--work", *arguments]
    child = subprocess.Popen(asked, stdout=subprocess.PIPE, text=True)
    most = 0
    while child.poll() is None:
        most = max(most, _status_bytes("RssAnon:", child.pid))
        time.sleep(0.01)
    assert child.stdout is not None
    output = child.stdout.read()
    if child.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: it ended with {child.returncode}")
    return {**json.loads(output), "bytes": most}


def command_line() -> str:
    """Return the command that repeats the run from the root of the checkout."""
    return " ".join(["python", str(Path(sys.argv[0]).resolve().relative_to(ROOT)), *sys.argv[1:]])


def say(text: str) -> None:
    """Print progress; results have standard output to themselves."""
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def verdict(reached: bool) -> str:
    """Return whether a target was reached, in a word."""
    return "reached" if reached else "**missed**"


def host_line(part: dict[str, Any], named: tuple[str, ...]) -> str:
    """Return the machine, date, versions and command of a part."""
    host = part["machine"]
    sets = ", ".join(host.get("instruction_sets", [host["instruction_set"]]))
    versions = ", ".join(
        f"{name} {host['versions'][name]}" for name in named if host["versions"].get(name)
    )
    return (
        f"*`{part['command']}`; {host['processor']}, {host['cores']} cores, "
        f"{sets}; {host['system']}, Python {host['python']}; {versions}; "
        f"commit {host['commit']}, {host['date']}; {part['took']:.0f} s.*"
    )


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False
    ) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def write_json(path: Path, content: object) -> None:
    """Write readable JSON, whole or not at all."""
    write_whole(path, json.dumps(content, indent=1) + "\n")


def _status_bytes(name: str, process: int | str = "self") -> int:
    """Return a number of bytes from Linux's status of a process; 0 if it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    values = [line.split()[1] for line in status.splitlines() if line.startswith(name)]
    return int(values[0]) * 1024 if values else 0


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit() -> str:
    """Return the measured commit, marked if the code differs from it; results may differ."""

    def git(*arguments: str) -> str:
        asked = ["git", *arguments]
        done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    commit = git("describe", "--always", "--abbrev=12") or "unknown"
    return commit + ("+changes" if git("status", "--porcelain", "src", "cpp", "benchmarks") else "")
