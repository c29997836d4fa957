"""Which curves of a table go into which picture."""

from __future__ import annotations

from pathlib import Path

from crfx.report.pictures import MissingPlotLibrary, line_chart
from crfx.report.summary import RowSummary
from crfx.report.tables import Line, Plot, Table


def picture_name(table: Table, plot: Plot) -> str:
    """Return the name of the file of a picture."""
    return f"{table.folder}-{plot.name}.png"


def points(line: Line, summaries: list[RowSummary]) -> list[float]:
    """The curve in the first unit that has it; empty where none is done."""
    for each in summaries:
        if each.row.name == line.row:
            for unit in each.units.values():
                if line.curve in unit.curves:
                    return unit.curves[line.curve]
    return []


def draw(table: Table, summaries: list[RowSummary], folder: Path) -> list[Path]:
    """Draw the pictures for which there is something to draw."""
    paths = []
    for plot in table.plots:
        curves = {line.label: points(line, summaries) for line in plot.lines}
        drawn = {label: values for label, values in curves.items() if values}
        if drawn:
            paths.append(folder / picture_name(table, plot))
            _draw(plot, drawn, paths[-1])
    return paths


def _draw(plot: Plot, curves: dict[str, list[float]], path: Path) -> None:
    try:
        line_chart(
            path, curves, x_label="round", y_label=plot.y, title=plot.title, log_scale=plot.log
        )
    except MissingPlotLibrary as error:
        raise ValueError(
            f"the figures are kept and the page is written, but {error}, then the same command "
            "with --render"
        ) from error
