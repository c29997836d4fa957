"""Examples of README.md, docs/ and docstrings: collected, run and counted."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
