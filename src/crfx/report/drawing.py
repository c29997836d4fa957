"""The one door to matplotlib, an extra (crfx[plot]): figures, colours, files.

Colours are those of Okabe and Ito, which colour-blind people can tell apart; beside them lines have
styles and markers, bars have hatches and cells have numbers, for print without colours.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from crfx.io.whole_file import whole_file

INK, PALETTE = "#222222", ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
HATCHES = ("", "///", "...", "xxx", "---", "++")
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P")
FORMATS = ("png", "svg", "pdf")
MOST_MARKERS = 12
"""A line has so many, however many points it has."""


class MissingPlotLibrary(ImportError):
    """matplotlib is not installed."""


def new_figure(width: float, height: float) -> Any:
    """An empty figure of so many inches, which belongs to no window."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPlotLibrary("pictures need matplotlib: pip install 'crfx[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure whole or not at all, in the format that the name ends in."""
    ending = Path(path).suffix[1:].lower()
    if ending not in FORMATS:
        raise ValueError(
            f"{os.fspath(path)} is no name for a picture: let it end in .png, .svg or .pdf"
        )
    # The same figure gives the same file: no dates.
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with whole_file(path) as file:
        figure.savefig(file, dpi=150, format=ending, metadata=dated.get(ending))


def finished(figure: Any, path: str | os.PathLike[str] | None) -> Any:
    """The figure, written to a file where there is a path."""
    if path is not None:
        save(figure, path)
    return figure


def draw_line(axes: Any, x: Any, y: Any, number: int, name: str) -> None:
    """The line of a number: colour, style and marker are its own, as long as there are enough."""
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
    """What all axes with lines or bars have in common."""
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    axes.set_title(title, color=INK, fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)


def plain(text: Any) -> str:
    """Text that is no formula, though it may have dollar signs."""
    return str(text).replace("$", r"\$")
