"""Takes a command line, gives an exit code; comes after `inference`, before nothing.

One file per command. A command's module has `SUMMARY` (one line), `configure(parser)` and
`run(arguments)`, and imports what is heavy inside `run`, so that `crfx --help` answers at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from crfx.cli import convert, demo, rank, reproduce

_COMMANDS = {"demo": demo, "rank": rank, "convert": convert, "reproduce": reproduce}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # argparse would print the usage first; an error is one line.
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 when all went well, 2 after an error told in one line."""
    arguments = _parser().parse_args(argv)
    try:
        _COMMANDS[arguments.command].run(arguments)
    except (ValueError, OSError) as error:
        told = " ".join(str(error).split())  # XGBoost's take several lines
        print(f"crfx {arguments.command}: error: {told}", file=sys.stderr)
        return 2
    return 0


def _parser() -> _Parser:
    parser = _Parser(prog="crfx", description="Conditional random fields with learned potentials.")
    parser.add_argument("--version", action="version", version=f"crfx {version('crfx')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        command.configure(
            subparsers.add_parser(name, help=command.SUMMARY, description=command.SUMMARY)
        )
    return parser
