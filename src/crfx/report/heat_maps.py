"""Tables as pictures: a cell has a colour and a number, so that it is read in print too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from crfx.report.drawing import plain

_MANY = 14
MOST_NUMBERS = 60 * 60
"""Cells of a table that have numbers; beyond that nobody reads them, and drawing takes minutes."""
_DARK = 0.45
"""Luminance below which ink is white."""


def cell_size(n_columns: int) -> float:
    """Inches a cell: smaller where there are many, but not too small for its number."""
    if n_columns**2 > MOST_NUMBERS:
        return 0.15
    return 0.62 if n_columns <= _MANY else 0.42


def draw_labels(axes: Any, rows: Sequence[Any], columns: Sequence[Any]) -> None:
    """Names of rows and columns; those of columns upright where they are many or long."""
    upright = len(columns) > _MANY or max((len(str(name)) for name in columns), default=0) > 6
    size = 9 if len(columns) <= _MANY else 7.5
    axes.set_xticks(
        range(len(columns)), [plain(name) for name in columns], rotation=90 if upright else 0
    )
    axes.set_yticks(range(len(rows)), [plain(name) for name in rows])
    axes.tick_params(labelsize=size, length=0)


def write_cells(axes: Any, image: Any, values: Any, texts: Iterable[str]) -> None:
    """Write the texts, row by row, black or white as the colours of the values below want it;
    none where there are more than ``MOST_NUMBERS`` cells.
    """
    if values.size > MOST_NUMBERS:
        return
    size = 8 if values.shape[1] <= _MANY else 6
    for ((row, column), value), text in zip(np.ndenumerate(values), texts, strict=True):
        if text:
            red, green, blue, _ = image.cmap(image.norm(value))
            luminance = 0.299 * red + 0.587 * green + 0.114 * blue
            ink = "white" if luminance < _DARK else "black"
            own = axes.text(column, row, text, ha="center", va="center", fontsize=size, color=ink)
            own.set_in_layout(False)  # it is inside: asking every cell takes most of the time


def short(value: float) -> str:
    """One digit after the point, and no sign of nothing."""
    return f"{value:.1f}".replace("-0.0", "0.0").replace("-", "−")
