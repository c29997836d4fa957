"""Every file in examples/ runs from an empty folder, without a warning, and prints something."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(ROOT.glob("examples/*.py"))


def test_there_are_examples():
    assert EXAMPLES


def output_of(example, folder):
    """What it prints; where its data are not there, what the loader says is the reason to skip."""
    result = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    complaint = result.stderr.strip().rpartition("\n")[2]
    if complaint.startswith("FileNotFoundError") and "$CRFX_DATA" in complaint:
        pytest.skip(complaint)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, tmp_path):
    assert output_of(example, tmp_path).strip()
