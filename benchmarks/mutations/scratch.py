"""A copy of the repository in which mutations are applied and tests run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

# Hypothesis tries the same examples in every run, and without a deadline: a slow moment of the
# machine must not look like a mutation that was caught.
SETTINGS = {"HYPOTHESIS_PROFILE": "ci", "OMP_WAIT_POLICY": "passive"}


def copy_repository(tests: Path, src: Path, target: Path) -> Path:
    """Copy ``src/`` with its compiled core from one checkout, and everything else from another."""
    shutil.rmtree(target, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=tests,
        capture_output=True,
        check=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith("src/") and (tests / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tests / name, target / name)
    shutil.copytree(src / "src", target / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return target


def environment(repository: Path) -> dict[str, str]:
    """Return the variables under which Python imports crfx from this copy."""
    return {**os.environ, **SETTINGS, "PYTHONPATH": str(repository / "src")}
