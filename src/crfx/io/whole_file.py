"""Files that are written whole or not at all: under a temporary name, then renamed."""

from __future__ import annotations

import errno
import gzip
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, TextIO

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""The disk is full, or the quota of the user."""


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file for writing, which takes its name when the block ends without an error.

    Links are followed.  Pipes and devices that exist are written to directly.
    """
    target = Path(path)
    if target.is_symlink():
        target = target.resolve()
    try:
        with _written(target) as file:
            yield file
    except OSError as error:
        if error.errno in _NO_ROOM and _is_ours(error.filename, target):
            error.filename = os.fspath(target)
        raise


def _is_ours(name: Any, target: Path) -> bool:
    """Return whether an error is about the temporary file; errors of open files have no name."""
    return name is None or Path(os.fsdecode(name)).name.startswith(f".{target.name}.")


@contextmanager
def _written(target: Path) -> Iterator[IO[bytes]]:
    if target.exists() and not target.is_file() and not target.is_dir():
        with target.open("wb") as stream:
            yield stream
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} in")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: name a file in it")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def whole_text(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a file as `whole_file` does, for text in UTF-8; .gz is compressed."""
    with whole_file(path) as raw, ExitStack() as opened:
        packed: Any = raw
        if Path(path).suffix == ".gz":
            packed = opened.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="\n")
        yield text
        text.detach()  # flushes, and leaves the file open


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
