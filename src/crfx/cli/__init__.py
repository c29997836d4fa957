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
"""What shells give a program that Ctrl-C has ended."""


class Parser(argparse.ArgumentParser):
    """Tells mistakes in one line, and knows the options that all commands have."""

    def error(self, message: str) -> NoReturn:
        """Tell a mistake and leave with 2; argparse would print the usage first."""
        told = " ".join(message.split())
        self.exit(2, f"{self.prog}: error: {told} (see {self.prog} --help)\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse what is not known here, where it was meant, and not at the top."""
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"there is no argument {left[0]}")
        return found, left


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 when all went well, 2 after an error told in one line."""
    if sys.stderr is None:  # closed: what is said beside the result goes nowhere
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115, as long as the program runs
    if sys.stdout is None:
        print("crfx: error: standard output is closed: there is nowhere to write", file=sys.stderr)
        return 2
    argv, parser = sys.argv[1:] if argv is None else argv, _parser()
    if not argv:  # a newcomer, to whom the list of commands says more than one line
        parser.print_help(sys.stderr)
        return 2
    arguments = parser.parse_args(argv)
    # A program that is asked to end keeps what it has, as after Ctrl-C.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn(arguments)
            _COMMANDS[arguments.command].run(arguments)
        sys.stdout.flush()  # here, where a reader that has gone is no surprise
    except BrokenPipeError:
        if getattr(arguments, "output", None) is not None:
            _tell(arguments, f"error: {arguments.output}: its reader has gone")
            return 2
        # Whoever read our output has read enough; nothing more is to be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as stop:
        if arguments.debug:
            raise
        _tell(arguments, str(stop) or "interrupted")
        return INTERRUPTED
    except Exception as error:
        if arguments.debug:
            raise
        _tell(arguments, f"error: {_told(error)}")
        return 2
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _warn(arguments: argparse.Namespace) -> Any:
    """Warnings in one line, as errors are; none where the user wants to hear errors only."""

    def show(message: Warning | str, *_: Any) -> None:
        if not getattr(arguments, "quiet", False):
            _tell(arguments, f"warning: {' '.join(str(message).split())}")

    return show


def _told(error: Exception) -> str:
    """One line; who is to blame for what nobody foresaw."""
    text = " ".join(str(error).split())  # XGBoost's take several lines
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror.lower()}"
    if isinstance(error, ValueError | OSError | ImportError):
        return text
    if isinstance(error, MemoryError):
        return f"there is not enough memory {f'({text})' if text else ''}".rstrip()
    return f"{type(error).__name__}: {text} (a mistake of crfx; --debug shows where)"


def _tell(arguments: argparse.Namespace, text: str) -> None:
    print(f"crfx {arguments.command}: {text}", file=sys.stderr)


def _parser() -> Parser:
    parser = Parser(prog="crfx", description="Conditional random fields with learned potentials.")
    parser.add_argument("--version", action="version", version=f"crfx {version('crfx')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        own = subparsers.add_parser(name, help=command.SUMMARY)
        command.configure(own)
    return parser
