"""How a command is tried: in this process, in a folder with some files, and judged by what it left.

A refusal is: exit code 2, one line on standard error, nothing on standard output, no traceback, and
the folder as it was.
"""

from __future__ import annotations

import io
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from listed.case import LONGEST, PATIENCE, Case, Each, Outcome, Subject, judge_message, values_of

Files = dict[str, Any]
"""Names and what is in them: text, bytes, None for a folder, or a function that writes one."""
REFUSED = 2


def command(
    area: str, tried: str, argv: str | Each, message: str, files: Files | None = None, **more: Any
) -> Case:
    """A case that runs ``crfx`` with these words, or with each of several lines of words."""

    def attempt(subject: Any, folder: Path, line: str) -> tuple[int, str, str, bool]:
        for name, content in (files or {}).items():
            _write(folder / name, content)
        before = _snapshot(folder)
        code, out, error = _in_shell(line.split(), **more) if more else _here(line.split())
        return code, out, error, _snapshot(folder) == before

    return Case(area, tried, attempt, message, SystemExit, values=values_of(argv), runs=_told)


def with_words(before: str, argv: str | Each) -> Each:
    """Put the words of a command before a line of words, or before each of several."""
    return Each(f"{before} {line}" for line in values_of(argv))


def _write(path: Path, content: Any) -> None:
    if content is None:
        path.mkdir()
    elif callable(content):
        content(path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def _snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def _here(argv: list[str]) -> tuple[int, str, str]:
    from crfx.cli import main

    out, error = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(error):
        try:
            code = main(argv)
        except SystemExit as stop:  # argparse's
            code = int(stop.code or 0)
    return code, _text(out), _text(error)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw: Any = stream.buffer
    return str(raw.getvalue().decode())


def _in_shell(argv: list[str], shell: str) -> tuple[int, str, str]:
    """In a process of its own; ``shell`` comes after the words: ``<&-`` closes standard input."""
    line = f'"{sys.executable}" -m crfx {" ".join(argv)} {shell}'
    done = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


def _told(case: Case, subject: Subject, folder: Path, line: tuple[Any, ...]) -> Outcome:
    begin = time.perf_counter()
    outcome = Outcome("exit code 2")
    code, out, error, is_same = case.attempt(None, folder, *line)
    outcome.seconds = time.perf_counter() - begin
    outcome.raised = error.removesuffix("\n")
    outcome.judge(code == REFUSED, f"the exit code is {code}: {error[-LONGEST:]!r}")
    outcome.judge(not out, f"on standard output there is {out[:LONGEST]!r}")
    outcome.judge(outcome.raised.startswith("crfx"), f"it does not say who speaks: {error!r}")
    outcome.judge("Traceback" not in error, "there is a traceback")
    outcome.judge(is_same, "files were left behind, or changed")
    outcome.judge(outcome.seconds < PATIENCE, f"it took {outcome.seconds:.1f} s")
    judge_message(outcome, case.message)
    return outcome
