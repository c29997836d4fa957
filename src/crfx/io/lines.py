"""Lines of a text file, one at a time: plain or gzip, a file or standard input."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Self

from crfx.io.sentences import Line

STANDARD_INPUT = "-"
_GZIP = b"\x1f\x8b"
_LONGEST_LINE = 1 << 24
"""Bytes; a line is held whole, and what has no ends of lines is no text."""
_MOST_PEEKED = 10_000
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)


def mistake(lines: Iterable[Line] | str | os.PathLike[str], number: int, text: str) -> ValueError:
    """The error that tells a mistake: ``file:line: what is wrong``.

    >>> str(mistake("train.txt", 7, "the label is empty"))
    'train.txt:7: the label is empty'
    """
    name = os.fspath(lines) if isinstance(lines, str | os.PathLike) else name_of(lines)
    return ValueError(f"{name}:{number}: {text}")


def name_of(lines: Iterable[Line]) -> str:
    """What messages call the place that lines come from."""
    return lines.name if isinstance(lines, Lines) else "<lines>"


class Lines:
    """Lines of a file, without their ends, as soon as they are there; ``name`` is the file's.

    One line is held at a time, so a file may be of any size and a pipe may go on for ever.  Text is
    UTF-8, with or without a mark at its start.  Ends are those of Unix or of Windows; the last line
    may have none.  Use it in ``with``, which closes the file.
    """

    def __init__(self, raw_lines: Iterator[bytes], name: str, close: Callable[[], Any]) -> None:
        self.name = name
        self._close = close
        self._rest = _decoded(raw_lines, name)
        self._peeked: deque[Line] = deque()

    def __iter__(self) -> Iterator[Line]:
        return self

    def __next__(self) -> Line:
        return self._peeked.popleft() if self._peeked else next(self._rest)

    def peek_block(self) -> list[Line]:
        """The first lines, up to an empty one that follows words; none of them is lost.

        Enough to see what a file is like, and no more than a pipe has when a sentence is complete.
        """
        found: list[Line] = []
        seen = False
        for line in self:
            found.append(line)
            blank = not line.text.strip()
            if (blank and seen) or len(found) == _MOST_PEEKED:
                break
            seen = seen or not (blank or line.text.startswith(("#", "-DOCSTART-")))
        self._peeked.extendleft(reversed(found))
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


def open_lines(path: str | os.PathLike[str]) -> Lines:
    """Lines of a file; ``-`` is standard input.  What is compressed is known by its first bytes."""
    with ExitStack() as opened:
        if os.fspath(path) == STANDARD_INPUT:
            if sys.stdin is None:
                raise OSError("standard input is closed: there is nothing to read")
            name, file = "<stdin>", _buffered(sys.stdin.buffer)
        else:
            name, file = os.fspath(path), opened.enter_context(_file(path))
        if file.peek(len(_GZIP)).startswith(_GZIP):
            packed = opened.enter_context(gzip.GzipFile(fileobj=file))
            return Lines(_raw_lines(packed, name), name, opened.pop_all().close)
        return Lines(_raw_lines(file, name), name, opened.pop_all().close)


def _file(path: str | os.PathLike[str]) -> io.BufferedReader:
    try:
        return open(path, "rb")
    except IsADirectoryError:
        raise IsADirectoryError(f"{os.fspath(path)} is a folder: name a file in it") from None
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {os.fspath(path)}") from None


def _buffered(stream: Any) -> io.BufferedReader:
    """A reader of its own: a thread may still wait for a line when the program ends, and ending
    Python asks for the lock of the stream it has opened itself.
    """
    try:
        return open(stream.fileno(), "rb", closefd=False)
    except OSError:  # programs may put bytes in memory in the place of standard input
        return io.BufferedReader(stream)


def _raw_lines(file: io.BufferedReader | gzip.GzipFile, name: str) -> Iterator[bytes]:
    number = 1
    try:
        while raw := file.readline(_LONGEST_LINE):
            if len(raw) == _LONGEST_LINE:
                text = f"the line is longer than {_LONGEST_LINE} bytes: is this a text file?"
                raise mistake(name, number, text)
            yield raw
            number += 1
    except _DAMAGED as error:
        raise mistake(name, number, f"from here on it cannot be decompressed: {error}") from None


def _decoded(raw_lines: Iterator[bytes], name: str) -> Iterator[Line]:
    for number, raw in enumerate(raw_lines, 1):
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            wrong = f"byte {error.start + 1} is 0x{raw[error.start]:02x}, which is not UTF-8: "
            raise mistake(name, number, wrong + "convert the file to UTF-8") from None
        if "\0" in text:
            raise mistake(name, number, "there is a zero byte: this is not text in UTF-8")
        if number == 1:
            text = text.removeprefix("\ufeff")
        yield Line(number, text.removesuffix("\n").removesuffix("\r"))
