"""Settings of the plots of a table: curves, and bars of the figures of its rows.

In the file of the table::

    [[plots]]
    name = "loss"                 # of the file: figures/<table>-loss.png
    title = "Training loss"
    y = "loss per letter"
    log = true                    # by default false
    x = "seconds"                 # by default "round"
    lines = [{ row = "gbcrf", curve = "loss", label = "GBCRF", over = "seconds", unit = "0" }]

    [[bars]]
    name = "trainers"
    title = "Error by trainer"
    metric = "error"
    series = ["linear", "hidden units"]     # bars that stand together, a colour each
    y = "error"                             # by default the title of the metric
    least = 3                               # where the axis begins; by default 0

    [[bars.panels]]                         # side by side, with an axis each
    title = "OCR"
    groups = [                              # a row for each of the series, "" where there is none
        { label = "L-BFGS", rows = ["ocr-linear-lbfgs", ""] },
        { label = "SGD", rows = ["ocr-linear-sgd", "ocr-hidden-sgd"], metric = "error" },
    ]                                       # a group may show another metric

Without `over`, another curve of the row, points are counted; without `unit` the first one that is
done is shown.

A plot shows the results that there are; without results it is not drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reproduce.fields import Fields, check_distinct, check_folder_name


@dataclass(frozen=True, slots=True)
class Line:
    """A curve of a row, as it appears in a plot: of one unit, and over another curve or none."""

    row: str
    curve: str
    label: str
    over: str
    unit: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of curves."""

    name: str
    title: str
    x: str
    y: str
    log: bool
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A group of bars: the row of each series, empty if there is none."""

    label: str
    rows: tuple[str, ...]
    metric: str


@dataclass(frozen=True, slots=True)
class Panel:
    """Bars on one axis."""

    title: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar plot of the figures of rows in a metric."""

    name: str
    title: str
    metric: str
    series: tuple[str, ...]
    panels: tuple[Panel, ...]
    y: str
    least: int


def read_plot(fields: Fields, rows: Sequence[str]) -> Plot:
    """Read one of `[[plots]]`, of a table with such rows."""
    name = _name(fields, "plot")
    lines = []
    for part in fields.parts("lines"):
        line = Line(
            part.text("row"),
            part.text("curve"),
            part.text("label"),
            part.text("over", ""),
            part.text("unit", ""),
        )
        _check_row(line.row, rows, fields.place)
        part.nothing_left()
        lines.append(line)
    title, x, y = fields.text("title"), fields.text("x", "round"), fields.text("y")
    plot = Plot(name, title, x, y, fields.flag("log", False), tuple(lines))
    fields.nothing_left()
    return plot


def read_bars(fields: Fields, rows: Sequence[str], metrics: Sequence[str]) -> Bars:
    """Read one of `[[bars]]`, of a table with such rows and metrics."""
    name = _name(fields, "bars")
    title, metric = fields.text("title"), fields.text("metric")
    _check_metric(metric, metrics, fields.place)
    series = fields.texts("series")
    if not series:
        raise ValueError(f"{fields.place} has no series")
    check_distinct(series, f"{fields.place}: series")
    y, least = fields.text("y", ""), fields.number("least", 0) or 0
    panels = [
        _panel(part, fields.place, rows, len(series), metric) for part in fields.parts("panels")
    ]
    check_distinct([panel.title for panel in panels], f"{fields.place}: panel")
    for group in (group for panel in panels for group in panel.groups):
        _check_metric(group.metric, metrics, f"{fields.place}, {group.label!r}")
    fields.nothing_left()
    return Bars(name, title, metric, tuple(series), tuple(panels), y, least)


def _panel(fields: Fields, place: str, rows: Sequence[str], n_series: int, metric: str) -> Panel:
    title = fields.text("title")
    fields.place = f"{place}, panel {title!r}"
    groups = []
    for part in fields.parts("groups"):
        group = Group(part.text("label"), tuple(part.texts("rows")), part.text("metric", metric))
        where = f"{fields.place}, {group.label!r}"
        if len(group.rows) != n_series:
            raise ValueError(f"{where}: {len(group.rows)} rows for {n_series} series")
        for row in filter(None, group.rows):
            _check_row(row, rows, where)
        part.nothing_left()
        groups.append(group)
    check_distinct([group.label for group in groups], f"{fields.place}: group")
    fields.nothing_left()
    return Panel(title, tuple(groups))


def _name(fields: Fields, kind: str) -> str:
    name = fields.text("name")
    fields.place = f"{kind} {name!r}"
    check_folder_name(name, f"the name of the {kind}")
    return name


def _check_metric(name: str, metrics: Sequence[str], place: str) -> None:
    if name not in metrics:
        raise ValueError(f"{place}: there is no metric {name!r}")


def _check_row(name: str, rows: Sequence[str], place: str) -> None:
    if name not in rows:
        raise ValueError(f"{place}: there is no row {name!r}")
