"""The rows of a table with their results, to compare with the published figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from reproduce.results import UnitResult, done_units, read_units
from reproduce.table import Published, Row, Table


@dataclass(frozen=True, slots=True)
class RowSummary:
    """A row and its finished units, with the current settings."""

    row: Row
    units: dict[str, UnitResult]

    def ours(self, metric: str) -> Published | None:
        """Mean and standard deviation over the units that are done, in the form of a published
        figure; None where there is none.
        """
        figures = [unit.figures[metric] for unit in self.units.values() if metric in unit.figures]
        if not figures:
            return None
        return Published(mean(figures), stdev(figures) if len(figures) > 1 else None)

    @property
    def done(self) -> str:
        """Return how many units are done, in words."""
        if self.row.experiment is None:
            return "–"
        return f"{len(self.units)} of {len(self.row.units)}"


def summarise(table: Table, results: Path) -> list[RowSummary]:
    """Read what is done of every row."""
    stored = read_units(results, table)
    return [RowSummary(row, done_units(row, stored)) for row in table.rows]


def as_json(table: Table, summaries: list[RowSummary]) -> dict[str, Any]:
    """Return the summary as one object."""

    def figure(of: Published | None) -> dict[str, float | None] | None:
        return None if of is None else {"value": of.value, "spread": of.spread}

    return {
        "table": table.name,
        "title": table.title,
        "quick": table.quick,
        "rows": [
            {
                "name": each.row.name,
                "title": each.row.title,
                "units": list(each.row.units),
                "done": list(each.units),
                "figures": {
                    metric.name: {
                        "ours": figure(each.ours(metric.name)),
                        "published": figure(each.row.published.get(metric.name)),
                    }
                    for metric in table.metrics
                },
            }
            for each in summaries
        ],
    }
