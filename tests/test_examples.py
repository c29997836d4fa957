"""Every file in examples/ runs from an empty folder, without a warning; its page is true."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(ROOT.glob("examples/*.py"))


def output_of(example, folder):
    """Return what an example prints; if its data are missing, skip with the loader's message."""
    result = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    complaint = result.stderr.strip().rpartition("\n")[2]
    if complaint.startswith("FileNotFoundError") and "$CRFX_DATA" in complaint:
        pytest.skip(complaint)
    assert result.returncode == 0, result.stderr
    return result.stdout


PAGE = (ROOT / "docs/examples.md").read_text(encoding="utf-8")
CLOSE = {"rel": 0.02, "abs": 0.015}
"""Numbers that docs/examples.md shows: another machine rounds otherwise, and trees then differ."""
NUMBER = re.compile(r"(?<![@\w])([-+]?\d+\.\d+)(%?)")


def lines_of(text):
    """The words of every line, and the numbers with a point in it; those with % are shares."""
    return [
        (
            NUMBER.sub("_", line).split(),
            [float(n) / (100 if percent else 1) for n, percent in NUMBER.findall(line)],
        )
        for line in text.splitlines()
        if line.strip()
    ]


def about(lines):
    return [(words, pytest.approx(numbers, **CLOSE)) for words, numbers in lines]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_prints_what_the_page_shows(example, tmp_path):
    output = output_of(example, tmp_path)
    section = PAGE.partition(f"[examples/{example.name}]")[2].partition("\n## ")[0]
    shown = "".join(re.findall(r"^    .*\n", section, flags=re.MULTILINE))
    assert shown, "docs/examples.md does not show what it prints"
    assert lines_of(output) == about(lines_of(shown))


def test_other_lines_are_seen():
    assert EXAMPLES
    for other in ("a  57.0% right", "b  55.0% right", "a right", ""):
        assert lines_of("a  55.4% right") == about(lines_of("a  55.0% right"))
        assert lines_of("a  55.0% right") != about(lines_of(other))
