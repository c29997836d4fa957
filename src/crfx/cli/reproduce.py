"""`crfx reproduce`: run a published table, and set our figures beside the published ones."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from crfx.cli.options import add_example, at_least

if TYPE_CHECKING:
    from rich.console import Console

    from crfx.report.experiments import Task
    from crfx.report.results import UnitResult
    from crfx.report.tables import Table

SUMMARY = "run a published table, ours beside the published figures"
EXAMPLE = """  crfx reproduce --list
  crfx reproduce loss-gradients --results mine
  CRFX_DATA=data crfx reproduce letor --row linear-kl --unit 1 --quick --results mine"""
_WIDTH_IN_A_PIPE = 120


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.description = (
        f"{SUMMARY.capitalize()}. Works unit by unit (a fold, or the test set), keeps what is "
        "done, and begins where it was stopped. Data sets are looked for in $CRFX_DATA."
    )
    parser.add_argument("table", nargs="?", help="its name (see --list), or a file .toml")
    parser.add_argument("--list", action="store_true", help="list the tables and what is done")
    parser.add_argument("--row", nargs="+", action="extend", metavar="NAME", help="only these rows")
    parser.add_argument("--unit", nargs="+", action="extend", metavar="K", help="only these units")
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds, less data; kept apart from the rest"
    )
    parser.add_argument("--render", action="store_true", help="run nothing, write the page anew")
    parser.add_argument(
        "--results", type=Path, metavar="DIR", help="keep results and page there (reports/)"
    )
    parser.add_argument(
        "--jobs",
        type=at_least(1),
        default=1,
        metavar="N",
        help="units at once (%(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")


def run(arguments: argparse.Namespace) -> None:
    """Run what is missing, print the table, write the page."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH_IN_A_PIPE)
    if arguments.list:
        _list(console, arguments)
        return
    if arguments.table is None:
        raise ValueError("name a table; crfx reproduce --list shows them")
    _reproduce(console, arguments)


def _reproduce(console: Console, arguments: argparse.Namespace) -> None:
    import json

    from rich.console import Console

    from crfx.report import plots, render, runner, summary
    from crfx.report.experiments import EXPERIMENTS
    from crfx.report.tables import find_table, read_table

    path = find_table(arguments.table)
    table = read_table(path, quick=arguments.quick)
    results, pages = _places(path, arguments.results)
    log = Console(stderr=True)

    def tell(task: Task, result: UnitResult | None) -> None:
        if result is None:
            log.print(f"{task} …", highlight=False, soft_wrap=True)
            return
        log.print(f"{task}: {_first_figure(table, result)}", highlight=False, soft_wrap=True)
        _write_page(table, results, pages)

    if not arguments.render:
        tasks = runner.missing(table, results, rows=arguments.row, units=arguments.unit)
        runner.run(
            table,
            tasks,
            results,
            experiments=EXPERIMENTS,
            jobs=arguments.jobs,
            verbose=1,
            tell=tell,
        )
    _write_page(table, results, pages)
    summaries = summary.summarise(table, results)
    if arguments.json:
        print(json.dumps(summary.as_json(table, summaries)))
    else:
        console.print(render.for_terminal(table, summaries))
    log.print(f"written: {render.page_path(table, pages)}", highlight=False, soft_wrap=True)
    plots.draw(table, summaries, pages)


def _places(path: Path, given: Path | None) -> tuple[Path, Path]:
    """Where results and pages go: beside the tables, or where the user says."""
    if given is not None:
        return given, given
    reports = path.parent.parent if path.parent.name == "tables" else path.parent
    return reports / "results", reports


def _write_page(table: Table, results: Path, pages: Path) -> None:
    from crfx.report import render
    from crfx.report.results import write_whole
    from crfx.report.summary import summarise

    text = render.page(table, summarise(table, results), render.relative(results, pages))
    write_whole(render.page_path(table, pages), text)


def _first_figure(table: Table, result: UnitResult) -> str:
    first = table.metrics[0].group  # the other groups are on the page
    found = [
        f"{metric.title} {result.figures[metric.name]:.{metric.digits}f}"
        for metric in table.metrics
        if metric.group == first and metric.name in result.figures
    ]
    return ", ".join([*found, f"{result.seconds:.0f} s"])


def _list(console: Console, arguments: argparse.Namespace) -> None:
    from rich.table import Table as RichTable

    from crfx.report.summary import summarise
    from crfx.report.tables import list_tables, read_table

    shown = RichTable(title="Tables")
    for title in ("name", "title", "published in", "units done"):
        shown.add_column(title)
    for path in list_tables():
        table = read_table(path, quick=arguments.quick)
        summaries = summarise(table, _places(path, arguments.results)[0])
        done = sum(len(each.units) for each in summaries)
        of = sum(len(each.row.units) for each in summaries)
        shown.add_row(table.folder, table.title, _shortened(table.source), f"{done} of {of}")
    console.print(shown)


def _shortened(source: str) -> str:
    """Who and where; which numbers are which is told on the table's page."""
    return shorten(re.split(r"[;:] | \(|, whose ", source)[0], 70, placeholder=" …")
