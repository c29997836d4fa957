"""What README.md, docs/ and docstrings show: found, run, counted."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
