"""Groups of bars, for the pages of published tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from crfx.report.plots.drawing import INK, PALETTE, new_figure, save

HATCHES = ("", "///", "...", "xxx", "---", "++")
"""Patterns of the series, which distinguish bars in print without colours."""


def bar_chart(
    path: str | os.PathLike[str],
    panels: Mapping[str, Mapping[str, Mapping[str, float | None]]],
    *,
    y_label: str,
    title: str = "",
    digits: int = 2,
    least: float = 0.0,
) -> None:
    """Draw a panel each of groups of bars, by panel, group and series; written whole or not at all.

    Every group has all series, in the same order; the place of one that is None stays empty. The
    axis begins at ``least``, or below where a bar does.
    """
    n_columns = min(2, len(panels))
    n_rows = -(-len(panels) // n_columns)
    most = max(len(groups) for groups in panels.values())
    n_series = len(next(iter(next(iter(panels.values())).values())))
    width = max(5, 0.32 * most * n_series)  # numbers stand on the bars
    figure = new_figure(width * n_columns, 0.8 + 2.7 * n_rows)
    for number, (name, groups) in enumerate(panels.items(), 1):
        axes = figure.add_subplot(n_rows, n_columns, number)
        _draw_bars(axes, groups, digits)
        axes.set_xlim(-0.6, max(most, 3) - 0.4)  # the same width of bars in all; not too wide
        if least:
            axes.set_ylim(bottom=min(least, axes.get_ylim()[0] or least))
        axes.set_title(name, color=INK)
        axes.set_ylabel(y_label, color=INK)
    figure.suptitle(title, color=INK)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    save(figure, path)


def _draw_bars(axes: Any, groups: Mapping[str, Mapping[str, float | None]], digits: int) -> None:
    series = list(next(iter(groups.values())))
    width = 0.84 / len(series)
    upright = len(series) > 2  # else the numbers of neighbours touch
    for number, name in enumerate(series):
        heights = [group[name] for group in groups.values()]
        bars = axes.bar(
            [at + (number - (len(series) - 1) / 2) * width for at in range(len(groups))],
            [0.0 if height is None else height for height in heights],
            0.94 * width,
            label=name,
            color=PALETTE[number % len(PALETTE)],
            hatch=HATCHES[number % len(HATCHES)],
            edgecolor="white",  # of hatches
            linewidth=0,
        )
        words = ["" if height is None else f"{height:.{digits}f}" for height in heights]
        axes.bar_label(bars, words, padding=2, fontsize=8, color=INK, rotation=90 if upright else 0)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.margins(y=0.25 if upright else 0.12)  # room for the numbers
    axes.spines[["top", "right"]].set_visible(False)
