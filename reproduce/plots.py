"""The plots of a table, with their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from crfx.report.plots.drawing import Curve, counted, line_chart
from reproduce.bar_chart import bar_chart
from reproduce.plot_settings import Bars, Group, Line, Plot
from reproduce.summary import RowSummary
from reproduce.table import Table


@dataclass(frozen=True, slots=True)
class Picture:
    """A plot: its path relative to the page, its title, and the function that draws it."""

    file: str
    title: str
    draw: Callable[[Path], None]


def pictures(table: Table, summaries: list[RowSummary]) -> list[Picture]:
    """Return the plots that have results."""
    plots = []
    for plot in table.plots:
        if curves := _curves(plot, summaries):
            drawn = partial(
                line_chart,
                curves=curves,
                x_label=plot.x,
                y_label=plot.y,
                title=plot.title,
                log_scale=plot.log,
            )
            plots.append(Picture(_file(table, plot.name), plot.title, drawn))
    for bars in table.bars:
        if panels := _panels(bars, summaries):
            (metric,) = (each for each in table.metrics if each.name == bars.metric)
            drawn = partial(
                bar_chart,
                panels=panels,
                y_label=bars.y or metric.title,
                title=bars.title,
                digits=metric.digits,
                least=bars.least,
            )
            plots.append(Picture(_file(table, bars.name), bars.title, drawn))
    return plots


def draw(table: Table, summaries: list[RowSummary], folder: Path) -> list[Path]:
    """Draw the plots for which there are results; `folder` is that of the page."""
    paths = []
    for picture in pictures(table, summaries):
        paths.append(folder / picture.file)
        paths[-1].parent.mkdir(exist_ok=True)
        try:
            picture.draw(paths[-1])
        except ImportError as error:
            raise ValueError(
                f"the figures are kept and the page is written, but {error}, then the same command "
                "with --render"
            ) from error
    return paths


def _file(table: Table, name: str) -> str:
    return f"figures/{table.stem}-{name}.png"


def _curves(plot: Plot, summaries: list[RowSummary]) -> dict[str, Curve]:
    curves = {line.label: _points(line, summaries) for line in plot.lines}
    return {label: curve for label, curve in curves.items() if curve is not None}


def _points(line: Line, summaries: list[RowSummary]) -> Curve | None:
    """Return the curve of the requested unit, or of the first unit that has it, or None."""
    for each in summaries:
        if each.row.name != line.row:
            continue
        for name, unit in each.units.items():
            if line.unit in ("", name) and line.curve in unit.curves:
                values = unit.curves[line.curve]
                return (unit.curves[line.over], values) if line.over else counted(values)
    return None


def _panels(
    bars: Bars, summaries: list[RowSummary]
) -> dict[str, dict[str, dict[str, float | None]]]:
    """Panel, group, series; without groups and panels of which nothing is done."""
    done = {each.row.name: each for each in summaries}

    def values(group: Group) -> dict[str, float | None]:
        figures = [done[row].ours(group.metric) if row else None for row in group.rows]
        means = [None if each is None else each.value for each in figures]
        return dict(zip(bars.series, means, strict=True))

    panels = {
        panel.title: {
            label: values_of_rows
            for label, values_of_rows in ((group.label, values(group)) for group in panel.groups)
            if any(value is not None for value in values_of_rows.values())
        }
        for panel in bars.panels
    }
    return {title: groups for title, groups in panels.items() if groups}
