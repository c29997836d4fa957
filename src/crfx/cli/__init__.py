"""Takes a command line, gives an exit code; comes after `inference`, before nothing.

One file per command. A command's module has `SUMMARY` (one line), `configure(parser)` and
`run(arguments)`, and imports what is heavy inside `run`, so that `crfx --help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from crfx.cli import convert, demo, evaluate, inspect, rank, report, tag, train

_COMMANDS: dict[str, Any] = {
    "demo": demo,
    "train": train,
    "tag": tag,
    "eval": evaluate,
    "inspect": inspect,
    "report": report,
    "convert": convert,
    "rank": rank,
}
INTERRUPTED = 130
"""The usual exit code of a program that Ctrl-C has ended."""


class Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        """Print an error and exit with code 2; argparse would print the usage first."""
        text = " ".join(message.split())
        self.exit(2, f"{self.prog}: error: {text} (see {self.prog} --help)\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Report an unknown argument in the subcommand that got it, not in the main program."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"there is no argument {unknown[0]}")
        return parsed, unknown


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 2 after an error, which is printed in one line."""
    if sys.stderr is None:  # it is closed: messages are discarded
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115, as long as the program runs
    if sys.stdout is None:
        print("crfx: error: standard output is closed: there is nowhere to write", file=sys.stderr)
        return 2
    argv, parser = sys.argv[1:] if argv is None else argv, _parser()
    if not argv:  # for newcomers the list of commands is more useful than one line
        parser.print_help(sys.stderr)
        return 2
    arguments = parser.parse_args(argv)
    # On SIGTERM the program keeps its results, as after Ctrl-C.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn(arguments)
            _COMMANDS[arguments.command].run(arguments)
        sys.stdout.flush()  # here, where a closed pipe is handled
    except BrokenPipeError:
        if getattr(arguments, "output", None) is not None:
            _print_message(arguments, f"error: {arguments.output}: its reader has gone")
            return 2
        # The reader has closed the pipe: nothing more may be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as stop:
        if arguments.debug:
            raise
        _print_message(arguments, str(stop) or "interrupted")
        return INTERRUPTED
    except Exception as error:
        if arguments.debug:
            raise
        _print_message(arguments, f"error: {_in_one_line(error)}")
        return 2
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _warn(arguments: argparse.Namespace) -> Any:
    """Return a function that prints warnings in one line, unless the command is quiet."""

    def show(message: Warning | str, *_: Any) -> None:
        if not getattr(arguments, "quiet", False):
            _print_message(arguments, f"warning: {' '.join(str(message).split())}")

    return show


def _in_one_line(error: Exception) -> str:
    """Return the message of an error; an unexpected one is reported as a bug of crfx."""
    text = " ".join(str(error).split())  # those of XGBoost have several lines
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror.lower()}"
    if isinstance(error, ValueError | OSError | ImportError):
        return text
    if isinstance(error, MemoryError):
        return f"there is not enough memory {f'({text})' if text else ''}".rstrip()
    return f"{type(error).__name__}: {text} (a mistake of crfx; --debug shows where)"


def _print_message(arguments: argparse.Namespace, text: str) -> None:
    print(f"crfx {arguments.command}: {text}", file=sys.stderr)


def _parser() -> Parser:
    parser = Parser(prog="crfx", description="Conditional random fields with learned potentials.")
    parser.add_argument("--version", action="version", version=f"crfx {version('crfx')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        command.configure(subparsers.add_parser(name, help=command.SUMMARY))
    return parser
