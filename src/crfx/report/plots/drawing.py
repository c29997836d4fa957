"""The one door to matplotlib, an extra (crfx[plot]): charts, heat maps, files.

Colours are those of Okabe and Ito, which colour-blind people can distinguish.  Lines also have
styles and markers, and cells have numbers, for print without colours.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crfx.io.whole_file import whole_file

Curve = tuple[Sequence[float], Sequence[float]]
"""x and y of the points of a line."""
Target = str | os.PathLike[str] | None

INK, PALETTE = "#222222", ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P")
FORMATS = ("png", "svg", "pdf")
MOST_MARKERS = 12
"""Limit for the markers of a line."""
MOST_NUMBERS = 60 * 60
"""Limit for the cells of a heat map that have numbers: more are not legible and take minutes."""
_MANY = 14
"""Columns of a heat map beyond which its cells are smaller."""
_DARK = 0.45
"""Luminance below which text is white."""


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of some inches, without a window."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'crfx[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, path: Target) -> Any:
    """Return the figure; write it to a file, whole or not at all, unless the path is None."""
    if path is None:
        return figure
    ending = Path(path).suffix[1:].lower()
    if ending not in FORMATS:
        raise ValueError(
            f"{os.fspath(path)} is no name for a picture: let it end in .png, .svg or .pdf"
        )
    # The same figure gives the same file: no dates.
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with whole_file(path) as file:
        figure.savefig(file, dpi=150, format=ending, metadata=dated.get(ending))
    return figure


def draw_line(axes: Any, x: Any, y: Any, number: int, name: str) -> None:
    """Draw a line with the colour, style and marker of its number."""
    every = max(1, -(-len(y) // MOST_MARKERS))
    axes.plot(
        x,
        y,
        label=name,
        color=PALETTE[number % len(PALETTE)],
        linestyle=STYLES[number % len(STYLES)],
        marker=MARKERS[number % len(MARKERS)],
        markevery=(min(number, len(y) - 1) % every if len(y) else 0, every),
        markersize=4.5,
        linewidth=1.8,
    )


def dress(axes: Any, x_label: str, y_label: str, title: str = "") -> None:
    """Set the labels and the title of axes, and hide their upper and right edge."""
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    axes.set_title(title, color=INK, fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)


def plain(text: Any) -> str:
    """Return text with escaped dollar signs, which would begin a formula."""
    return str(text).replace("$", r"\$")


def counted(values: Sequence[float]) -> Curve:
    """Return a curve of values over 1, 2, 3, ..."""
    return range(1, len(values) + 1), values


def line_chart(
    path: str | os.PathLike[str],
    curves: Mapping[str, Curve],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    log_scale: bool = False,
) -> None:
    """Draw one line per curve into a file, which is written whole or not at all."""
    figure = new_figure(7, 4.2)
    axes = figure.add_subplot()
    for number, (name, points) in enumerate(curves.items()):
        draw_line(axes, *points, number, name)
    dress(axes, x_label, y_label, title)
    axes.set_yscale("log" if log_scale else "linear")
    axes.grid(alpha=0.25)
    if curves:
        axes.legend(frameon=True, framealpha=0.9, edgecolor="none")
    save(figure, path)


def cell_size(n_columns: int) -> float:
    """Return the size of a cell in inches, smaller if there are many."""
    if n_columns**2 > MOST_NUMBERS:
        return 0.15
    return 0.62 if n_columns <= _MANY else 0.42


def draw_labels(axes: Any, rows: Sequence[Any], columns: Sequence[Any]) -> None:
    """Write the names of rows and columns, upright if columns are many or their names long."""
    upright = len(columns) > _MANY or max((len(str(name)) for name in columns), default=0) > 6
    size = 9 if len(columns) <= _MANY else 7.5
    axes.set_xticks(
        range(len(columns)), [plain(name) for name in columns], rotation=90 if upright else 0
    )
    axes.set_yticks(range(len(rows)), [plain(name) for name in rows])
    axes.tick_params(labelsize=size, length=0)


def write_cells(axes: Any, image: Any, values: Any, texts: Iterable[str]) -> None:
    """Write texts into cells, row by row, in black or white, whichever is more legible.

    Nothing is written if there are more than ``MOST_NUMBERS`` cells.
    """
    if values.size > MOST_NUMBERS:
        return
    size = 8 if values.shape[1] <= _MANY else 6
    for ((row, column), value), text in zip(np.ndenumerate(values), texts, strict=True):
        if text:
            red, green, blue, _ = image.cmap(image.norm(value))
            luminance = 0.299 * red + 0.587 * green + 0.114 * blue
            ink = "white" if luminance < _DARK else "black"
            label = axes.text(column, row, text, ha="center", va="center", fontsize=size, color=ink)
            label.set_in_layout(False)  # it lies inside the axes; layout of all cells is slow
