"""Writes docs/support.md from the table of what estimators support.

python tests/documentation/support_page.py
"""

from __future__ import annotations

from pathlib import Path

from crfx.estimators.support import ESTIMATORS, EXPERIMENTAL, SUPPORT, Entry, Limited, Refusal

PAGE = Path(__file__).parents[2] / "docs" / "support.md"
HEAD = """# What is supported

Which estimator can do what. `tests/documentation/support_page.py` writes this page from the table
in `crfx.estimators.support`, and a test tries every entry. "–" marks what makes no sense for an
estimator.
"""
EXPERIMENTS = """
## Experimental

These parts are tested like all others, but rarely used. Their arguments and defaults may change
from one version to the next.
"""


def page() -> str:
    """Return the page as Markdown."""
    lines = [HEAD]
    for section, rows in SUPPORT.items():
        lines += [f"## {section}", "", f"| | {' | '.join(f'`{name}`' for name in ESTIMATORS)} |"]
        lines += ["|---" * (len(ESTIMATORS) + 1) + "|"]
        lines += [f"| {name} | {' | '.join(map(_cell, row))} |" for name, row in rows.items()]
        lines += [""]
    lines += [EXPERIMENTS.strip(), ""]
    lines += [f"- {name} (`{estimator}`)" for name, (estimator, _) in EXPERIMENTAL.items()]
    return "\n".join(lines) + "\n"


def _cell(entry: Entry) -> str:
    if isinstance(entry, Limited):
        return entry.text
    if isinstance(entry, Refusal):
        return "no"
    return "–" if entry is None else "yes" if entry else "no"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
