"""The command line: run a table, and print and write our figures beside the published ones."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import NoReturn

from rich.console import Console
from rich.table import Table as RichTable

from reproduce import plots, render, runner
from reproduce.experiments import EXPERIMENTS, Task
from reproduce.results import UnitResult, write_whole
from reproduce.summary import as_json, summarise
from reproduce.table import Table, find_table, list_tables, read_table

PROGRAM = "python -m reproduce"
EPILOG = """example:
  python -m reproduce --list
  python -m reproduce loss-gradients --results mine
  CRFX_DATA=data python -m reproduce letor --row linear-kl --unit 1 --quick --results mine"""
INTERRUPTED = 130
"""The exit code that shells give a program ended by Ctrl-C."""
_WIDTH_IN_A_PIPE = 120


class Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with code 2."""
        self.exit(2, f"{PROGRAM}: error: {message} (see {PROGRAM} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 after an error, which is printed in one line."""
    arguments = _parser().parse_args(argv)
    try:
        _run(arguments)
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted; finished units are kept", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, OSError, ImportError) as error:
        print(f"{PROGRAM}: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog=PROGRAM,
        description="Run a published table and set our figures beside the published ones. Works "
        "unit by unit (a fold, or the test set), stores each finished unit, and resumes where it "
        "was stopped. Data sets are looked for in $CRFX_DATA.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
        "--jobs", type=_count, default=1, metavar="N", help="units at once (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 1 or more")
    return int(text)


def _run(arguments: argparse.Namespace) -> None:
    """Run the missing units, print the table, write the page and draw its plots."""
    console, log = Console(), Console(stderr=True)
    if not console.is_terminal:
        console = Console(width=_WIDTH_IN_A_PIPE)
    if arguments.list:
        console.print(_listed(arguments))
        return
    if arguments.table is None:
        raise ValueError(f"name a table; {PROGRAM} --list shows them")
    path = find_table(arguments.table)
    table = read_table(path, quick=arguments.quick)
    results, pages = _places(path, arguments.results)

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
    summaries = summarise(table, results)
    if arguments.json:
        print(json.dumps(as_json(table, summaries)))
    else:
        console.print(render.for_terminal(table, summaries))
    log.print(f"written: {render.page_path(table, pages)}", highlight=False, soft_wrap=True)
    plots.draw(table, summaries, pages)


def _places(path: Path, asked: Path | None) -> tuple[Path, Path]:
    """Return the folders of results and pages: beside the tables, or where the user says."""
    if asked is not None:
        return asked, asked
    reports = path.parent.parent if path.parent.name == "tables" else path.parent
    return reports / "results", reports


def _write_page(table: Table, results: Path, pages: Path) -> None:
    text = render.page(table, summarise(table, results), render.relative(results, pages))
    write_whole(render.page_path(table, pages), text)


def _first_figure(table: Table, result: UnitResult) -> str:
    first = table.metrics[0].group  # the other groups are on the page
    figures = [
        f"{metric.title} {result.figures[metric.name]:.{metric.digits}f}"
        for metric in table.metrics
        if metric.group == first and metric.name in result.figures
    ]
    return ", ".join([*figures, f"{result.seconds:.0f} s"])


def _listed(arguments: argparse.Namespace) -> RichTable:
    shown = RichTable(title="Tables")
    for title in ("name", "title", "published in", "units done"):
        shown.add_column(title)
    for path in list_tables():
        table = read_table(path, quick=arguments.quick)
        summaries = summarise(table, _places(path, arguments.results)[0])
        done = sum(len(each.units) for each in summaries)
        of = sum(len(each.row.units) for each in summaries)
        shown.add_row(table.stem, table.title, _shortened(table.source), f"{done} of {of}")
    return shown


def _shortened(source: str) -> str:
    """Return who and where; the table's page says which numbers are which."""
    return shorten(re.split(r"[;:] | \(|, whose ", source)[0], 70, placeholder=" …")


if __name__ == "__main__":
    sys.exit(main())
