"""docs/asks.md has what users of other tools ask for: each with code that runs, and a link."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs/asks.md").read_text(encoding="utf-8")
INTRODUCTION, *SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
ASKS = {
    "less memory than dicts": "Less memory than dicts",
    "NumPy and SciPy input": "NumPy and SciPy input",
    "float vectors": "Float vectors",
    "threads": "Threads",
    "GIL released in training": "GIL released in training",
    "speed on dense data": "Speed on dense data",
    "mini-batches and partial_fit": "Mini-batches and partial_fit",
    "continue training": "Continue training",
    "add a label": "Add a label",
    "k-best": "The k best labellings",
    "forced labels": "Forced labels",
    "no invalid BIO output": "No invalid BIO output",
    "class and sample weights": "Class and sample weights",
    "input-conditioned transitions and higher order": (
        "Transitions that look at the input, and higher order"
    ),
    "marginals": "Marginals",
    "score of a given path": "The score of a given path",
    "explain one prediction": "Explain one prediction",
    "odd feature names": "Odd feature names",
    "working with current scikit-learn": "Works with current scikit-learn",
    "wheels for current Pythons": "Wheels for current Pythons",
    "clear saving and cross-version loading": "Clear saving, and loading across versions",
    "no crash on large data": "No crash on large data",
    "both list and lengths input": "Both lists and lengths",
    "confidence per entity": "Confidence per entity",
    "scorers that work on sequences": "Scorers that work on sequences",
}
"""What is asked for in public trackers, and the heading that answers."""


def test_all_are_there_and_nothing_else():
    assert [section.partition("\n")[0] for section in SECTIONS] == list(ASKS.values())
    assert re.findall(r"^- \[(.+)\]\(#", INTRODUCTION, flags=re.MULTILINE) == list(ASKS.values())


def test_each_has_code_and_a_link():
    for heading, section in zip(ASKS.values(), SECTIONS, strict=True):
        text, *blocks = re.split(r"^```python\n", section, flags=re.MULTILINE)
        assert len(blocks) == 1, heading  # tests/documentation runs it
        assert re.search(r"^[^#\n].*\(", blocks[0], flags=re.MULTILINE), f"{heading}: no call"
        assert re.search(r"\]\([^)]+\)", text), f"{heading}: no link to what goes deeper"
