"""Tables whose cells have a colour: confusion and transitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crfx.report.confusion import Confusion
from crfx.report.page.templating import signed
from crfx.report.transition_table import TransitionTable

_MOST_HEAT = 52.0
"""Percent of colour: text on it stays readable, on light and on dark."""


@dataclass(frozen=True)
class Cell:
    """``heat`` is the percentage of colour; ``kind`` a class of the style sheet."""

    text: str
    heat: float
    kind: str = ""


@dataclass(frozen=True)
class CellTable:
    """Names of columns, and rows with their names."""

    columns: list[str]
    rows: list[tuple[str, list[Cell]]]


def confusion_cells(found: Confusion) -> CellTable:
    """Counts, coloured by their share of the row; the diagonal is what is right."""
    rows = []
    shares = found.shares
    for at, name in enumerate(found.labels):
        cells = [
            Cell(
                f"{count:,}" if count else "",
                round(_MOST_HEAT * float(np.sqrt(shares[at, column])), 1),
                "right" if column == at else "wrong",
            )
            for column, count in enumerate(found.counts[at].tolist())
        ]
        rows.append((name, cells))
    return CellTable(found.labels, rows)


def transition_cells(table: TransitionTable) -> CellTable:
    """Scores, coloured by sign and size; what is forbidden is a dash."""
    names = [" ".join(map(str, row)) for row in table.rows]
    rows = [
        (name, [_transition(value, table.largest) for value in values.tolist()])
        for name, values in zip(names, table.values, strict=True)
    ]
    return CellTable([str(name) for name in table.columns], rows)


def _transition(value: Any, largest: float) -> Cell:
    if np.isnan(value):
        return Cell("–", 0.0, "never")
    kind = "plus" if value >= 0 else "minus"
    return Cell(signed(value, 1), round(_MOST_HEAT * abs(value) / largest, 1), kind)
