"""Shared parts of commands: kinds of arguments, settings of estimators, checks of output."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crfx.estimators.argument_kinds import Choice, Kind, Number, OrNone, Whole
from crfx.estimators.arguments import ALIASES, TABLES


def at_least(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers for argparse, which names the option in its errors."""

    def number(text: str) -> int:
        if not text.removeprefix("-").isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number of {least} or more")
        return int(text)

    return number


def setting(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE; a value is a number, true, false or null as in JSON, otherwise text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def probability(text: str) -> float:
    """Read a number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to 1")
    return value


@dataclass(frozen=True)
class Option:
    """The option of commands for an argument of estimators; its choices are those of the table.

    ``kind`` is the kind of values on the command line if the table accepts more.
    """

    flag: str
    metavar: str | None
    help: str
    kind: Kind | None = None
    default: Any = None


OPTIONS = {
    "scorer": Option("--scorer", None, "the function that scores documents"),
    "objective": Option("--objective", None, "the objective to minimise"),
    "temperature": Option("--temperature", "T", "temperature of KL's target, above 0"),
    "early_stopping_rounds": Option(
        "--patience", "N", "stop once the metric has not improved for N rounds; the best is kept"
    ),
    "random_state": Option("--seed", "N", "seed of random numbers (0)", Whole(0), default=0),
    "n_jobs": Option("--jobs", "N", "threads (all cores)", Whole(1)),
    "device": Option("--device", "D", "device of XGBoost's trees: cpu, cuda or cuda:N (cpu)"),
}
"""Arguments of estimators that have an option of their own."""


def add_estimator_options(
    parser: argparse.ArgumentParser, whose: str, kinds: Mapping[str, Kind], names: Iterable[str]
) -> None:
    """Add --set and the options for some arguments of a table."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=setting,
        metavar="NAME=VALUE",
        help=f"any other argument of {whose}; may be repeated",
    )
    for name in names:
        option = OPTIONS[name]
        parser.add_argument(
            option.flag,
            dest=name,
            metavar=option.metavar,
            help=option.help,
            default=option.default,
            **_values(option.kind or kinds[name]),
        )


def _values(kind: Kind) -> dict[str, Any]:
    """Return how argparse reads values of a kind; the estimator checks the rest."""
    if isinstance(kind, OrNone):
        return _values(kind.kind)
    if isinstance(kind, Choice):
        return {"choices": [name for name in kind.choices if name is not None]}
    if isinstance(kind, Whole):
        return {"type": at_least(kind.least)}
    return {"type": float} if isinstance(kind, Number) else {}


def settings_of(
    whose: str, assignments: list[tuple[str, Any]], named: dict[str, Any], usual: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of an estimator from --set, from other options, and from defaults.

    ``named`` are the values of options, None if not given; ``usual`` are the defaults of the
    command.
    """
    known = TABLES[whose].kinds
    names = [name for name, _ in assignments]
    if again := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"--set {again[0]}=... is given twice")
    if unknown := [name for name in names if name not in known]:
        same = ALIASES.get(unknown[0])
        hint = f"use {same}" if same in known else f"there are {', '.join(sorted(known))}"
        raise ValueError(f"{whose} has no argument {unknown[0]!r}: {hint}")
    if "verbose" in names:
        raise ValueError("--set verbose=...: progress is shown unless -q is given")
    if twice := [name for name in names if name in named]:
        raise ValueError(f"--set {twice[0]}=...: there is an option of its own for it")
    chosen = {name: value for name, value in named.items() if value is not None}
    usual = {name: value for name, value in usual.items() if name in known}
    return usual | dict(assignments) | chosen


def check_output(path: Path, what: str, inputs: Iterable[Path | str | None] = ()) -> None:
    """Raise an error if a file cannot be written, or is one of ``inputs``, before any work."""
    if str(path) == "-":
        raise ValueError(f"- is no file to write {what} in: name one")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {what} in")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it")
    for source in (Path(source) for source in inputs if source is not None):
        if source.is_file() and path.is_file() and source.samefile(path):
            raise ValueError(f"{path} is read, and would be lost: write {what} in another file")


def add_example(parser: argparse.ArgumentParser, summary: str, example: str) -> None:
    """Set the text of a help page around the arguments, and add the option --debug."""
    parser.description = f"{summary[0].upper()}{summary[1:]}."
    parser.epilog = f"example:\n{example}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--debug", action="store_true", help="show where an error came from")


def print_status(arguments: argparse.Namespace, text: str) -> None:
    """Print a line on standard error, unless the command is quiet."""
    if not arguments.quiet:
        print(text, file=sys.stderr, flush=True)


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the option -q."""
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")
