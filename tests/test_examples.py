"""Every file in examples/ runs from an empty folder, without a warning; its page is true."""

import re
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


PAGE = (ROOT / "docs/examples.md").read_text(encoding="utf-8")
CLOSE = {"rel": 0, "abs": 0.015}
"""Shares that docs/examples.md shows: another machine rounds otherwise, and trees then differ."""


def figures(text):
    """Lines that tell how good something is: their words, and their numbers as shares."""
    found = {}
    for line in text.splitlines():
        if re.search(r"%|F1|NDCG", line):
            shares = [
                float(number) / (100 if percent else 1)
                for number, percent in re.findall(r"(?<![@\w])(\d+\.\d+)(%?)", line)
            ]
            found[re.sub(r"\d+\.\d+", "_", line).strip()] = shares
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_prints_the_figures_of_the_page(example, tmp_path):
    output = output_of(example, tmp_path)
    assert output.strip()
    section = PAGE.partition(f"[examples/{example.name}]")[2].partition("\n## ")[0]
    assert section, "docs/examples.md does not name it"
    shown = "".join(re.findall(r"^    .*\n", section, flags=re.MULTILINE))
    assert figures(output) == {
        line: pytest.approx(shares, **CLOSE) for line, shares in figures(shown).items()
    }


def test_other_figures_are_seen():
    first, second = figures("a  55.0% right"), figures("a  57.0% right")
    assert first.keys() == second.keys()
    assert first["a  _% right"] != pytest.approx(second["a  _% right"], **CLOSE)
