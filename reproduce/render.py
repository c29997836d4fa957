"""Rendering of a table for the terminal and as a page, from the summaries alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.comparisons import EXPLAINED, compare
from reproduce.plots import pictures
from reproduce.summary import RowSummary
from reproduce.table import Metric, Published, Row, Table

if TYPE_CHECKING:
    import rich.table

_NONE = "–"


def heading(table: Table) -> str:
    """Return the title, marked if the version is quick."""
    if not table.quick:
        return table.title
    return f"{table.title} (quick version: fewer rounds, less data, not to be quoted)"


def for_terminal(table: Table, summaries: list[RowSummary]) -> rich.table.Table:
    """Return the table for a terminal."""
    from rich.table import Table as RichTable

    first, *others = _metric_groups(table)
    header, *lines = _cells(first, summaries)
    more = f"; on the page too: {', '.join(each[0].group for each in others)}" if others else ""
    shown = RichTable(title=heading(table), caption=f"published: {table.source}{more}")
    for number, title in enumerate(header):
        shown.add_column(title, justify="right" if number else "left")
    for line in lines:
        shown.add_row(*line)
    return shown


def page(table: Table, summaries: list[RowSummary], results: str) -> str:
    """Return the page in Markdown; `results` is the path of the units relative to the page."""
    quick = " --quick" if table.quick else ""
    stored = f"{results}/{table.stem}.jsonl"
    begin = (
        f"Rendered by `python -m reproduce {table.name}{quick}` from [{stored}]({stored}), "
        "one line per unit (a fold, or the test set). Ours is the mean over the units that are "
        f"done, ± their standard deviation. Published: {table.source}."
    )
    parts = [
        f"# {heading(table)}",
        begin,
        *(_table(metrics, summaries) for metrics in _metric_groups(table)),
        *(_by_unit(metric, summaries) for metric in table.metrics if metric.by_unit),
        *(f"![{each.title}]({each.file})" for each in pictures(table, summaries)),
        _bullets([*table.notes, *_row_notes(summaries)]),
        *_comparisons(table, summaries),
        "## Settings",
        _bullets(_settings(summaries)),
        *_runs(summaries),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def page_path(table: Table, folder: Path) -> Path:
    """Return where the page of a table is kept."""
    return folder / f"{table.stem}.md"


def relative(results: Path, folder: Path) -> str:
    """Return the results as seen from the folder of the pages."""
    return Path(os.path.relpath(results, folder)).as_posix()


def _metric_groups(table: Table) -> list[list[Metric]]:
    """Return the metrics by their groups, in order; mostly there is one."""
    groups: dict[str, list[Metric]] = {}
    for metric in table.metrics:
        groups.setdefault(metric.group, []).append(metric)
    return list(groups.values())


def _table(metrics: list[Metric], summaries: list[RowSummary]) -> str:
    title = f"**{metrics[0].group}**\n\n" if metrics[0].group else ""
    return title + _markdown(_cells(metrics, summaries))


def _by_unit(metric: Metric, summaries: list[RowSummary]) -> str:
    """Return a column for each finished unit of any row."""
    done = {each.row.title: each.units for each in summaries if each.units}
    names = list(dict.fromkeys(unit for units in done.values() for unit in units))
    lines = [["", *(f"unit {name}" for name in names)]]
    for title, units in done.items():
        reached = {name: unit.figures.get(metric.name) for name, unit in units.items()}
        figures = map(reached.get, names)
        shown = [_NONE if each is None else f"{each:.{metric.digits}f}" for each in figures]
        lines.append([title, *shown])
    group = f", {metric.group}" if metric.group else ""
    return f"**{metric.title} by unit{group}**\n\n{_markdown(lines)}" if done else ""


def _cells(metrics: list[Metric], summaries: list[RowSummary]) -> list[list[str]]:
    """Header and lines; a published column only where something was published."""
    columns: list[tuple[str, Metric, bool]] = []
    for metric in metrics:
        columns.append((metric.title, metric, True))
        if any(metric.name in each.row.published for each in summaries):
            columns.append(("published", metric, False))
    lines = [["", *(title for title, _, _ in columns), "units", "time"]]
    for each in summaries:
        figures = [
            _figure(each.ours(metric.name) if ours else each.row.published.get(metric.name), metric)
            for _, metric, ours in columns
        ]
        seconds = sum(unit.seconds for unit in each.units.values())
        lines.append([each.row.title, *figures, each.done, _duration(seconds)])
    return lines


def _figure(figure: Published | None, metric: Metric) -> str:
    if figure is None:
        return _NONE
    spread = "" if figure.spread is None else f" ± {figure.spread:.{metric.digits}f}"
    return f"{figure.value:.{metric.digits}f}{spread}"


def _duration(seconds: float) -> str:
    if not seconds:
        return _NONE
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _markdown(cells: list[list[str]]) -> str:
    header, *lines = cells
    rule = ["---", *("---:" for _ in header[1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines))


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _row_notes(summaries: list[RowSummary]) -> list[str]:
    return [f"{each.row.title}: {each.row.note}" for each in summaries if each.row.note]


def _comparisons(table: Table, summaries: list[RowSummary]) -> list[str]:
    """Return one list for each comparison that has results."""
    units = {each.row.name: each.units for each in summaries}
    titles = {row.name: row.title for row in table.rows}
    shown = []
    for asked in table.comparisons:
        lines = [["", "", "difference", "95 %", "better / equal / worse", "sign test"]]
        for one, other in asked.pairs:
            if difference := compare(units[one], units[other], asked.curve):
                figures = [
                    format(value, ".2f") for value in (difference.mean, *difference.interval)
                ]
                interval = f"{figures[1]} to {figures[2]}"
                counts = f"{difference.better} / {difference.equal} / {difference.worse}"
                sign = f"p = {difference.sign_test:.2g}"
                lines.append([titles[one], titles[other], figures[0], interval, counts, sign])
        if len(lines) > 1:
            shown += [f"**{asked.title}**\n\n{_markdown(lines)}"]
    return ["## Comparisons", EXPLAINED, *shown] if shown else []


def _settings(summaries: list[RowSummary]) -> list[str]:
    return [
        f"{each.row.title} (`{each.row.name}`): "
        + "; ".join(
            [
                *_settings_by_unit(each.row),
                *([f"data: `{_arguments(each.row.data)}`"] if each.row.data else []),
            ]
            or ["the defaults"]
        )
        for each in summaries
        if each.row.experiment
    ]


def _settings_by_unit(row: Row) -> list[str]:
    """Return one list of arguments if there are any, or several, each after its units."""
    units_of: dict[str, list[str]] = {}
    for unit in row.units:
        units_of.setdefault(_arguments(row.settings_of(unit)), []).append(unit)
    if len(units_of) == 1:
        return [f"`{arguments}`" for arguments in units_of if arguments]
    return [f"units {', '.join(units)}: `{arguments}`" for arguments, units in units_of.items()]


def _arguments(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def _runs(summaries: list[RowSummary]) -> list[str]:
    """Return where the units ran: one line for each combination of machine and software."""
    units = [unit for each in summaries for unit in each.units.values()]
    if not units:
        return []
    lines: dict[str, int] = {}
    for unit in units:
        software = ", ".join(f"{name} {number}" for name, number in unit.versions.items())
        line = (
            f"{unit.processor}, {unit.cores} cores, {unit.threads} threads; {software}; "
            f"commit {unit.commit or 'not known'}; {unit.date}; "
            f"{'no seed' if unit.seed is None else f'seed {unit.seed}'}"
        )
        lines[line] = lines.get(line, 0) + 1
    counted = [f"{line}: {count} unit{'s' * (count > 1)}" for line, count in lines.items()]
    return ["## Runs", _bullets(counted)]
