"""Lines of a text file, one at a time: plain or gzip, a file or standard input."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, Self

from crfx.io.sentences import Line

STANDARD_INPUT = "-"
_GZIP = b"\x1f\x8b"
_LONGEST_LINE = 1 << 24
"""Bytes of a line, which is held in memory: a file without line ends is not text."""
_MOST_PEEKED = 10_000
DAMAGED_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
"""Errors of `gzip` on damaged files."""


def mistake(lines: Iterable[Line] | str | os.PathLike[str], number: int, text: str) -> ValueError:
    """Return an error that names the place: ``file:line: what is wrong``.

    >>> str(mistake("train.txt", 7, "the label is empty"))
    'train.txt:7: the label is empty'
    """
    name = os.fspath(lines) if isinstance(lines, str | os.PathLike) else name_of(lines)
    return ValueError(f"{name}:{number}: {text}")


def name_of(lines: Iterable[Line]) -> str:
    """Return the name of the source of lines, for messages."""
    return lines.name if isinstance(lines, Lines) else "<lines>"


class Lines:
    """Iterator over the lines of a file, without line ends; ``name`` is the name of the file.

    One line is held at a time, so files of any size and endless pipes can be read.  Text is UTF-8,
    with or without a byte-order mark.  Line ends are those of Unix or of Windows; the last line may
    have none.  Use it in ``with``, which closes the file.
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
        """Return the lines of the first sentence, which are read again afterwards.

        They show the format of the file, and a pipe has them when its first sentence is complete.
        """
        lines: list[Line] = []
        has_words = False
        for line in self:
            lines.append(line)
            is_blank = not line.text.strip()
            if (is_blank and has_words) or len(lines) == _MOST_PEEKED:
                break
            has_words = has_words or not (is_blank or line.text.startswith(("#", "-DOCSTART-")))
        self._peeked.extendleft(reversed(lines))
        return lines

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


def open_lines(path: str | os.PathLike[str]) -> Lines:
    """Open a file of text, ``-`` for standard input; gzip is recognised by the first bytes."""
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


@contextmanager
def open_bytes(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file of bytes, decompressed if it ends in .gz; damage raises ValueError."""
    opener: Any = gzip.open if os.fspath(path).endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            yield file
    except DAMAGED_GZIP as error:
        raise ValueError(f"{os.fspath(path)} cannot be decompressed: {error}") from None


def _file(path: str | os.PathLike[str]) -> io.BufferedReader:
    try:
        return open(path, "rb")
    except IsADirectoryError:
        raise IsADirectoryError(f"{os.fspath(path)} is a folder: name a file in it") from None
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {os.fspath(path)}") from None


def _buffered(stream: Any) -> io.BufferedReader:
    """Return a reader that is independent of ``sys.stdin``.

    A thread may still wait for a line when the program ends, and Python needs the lock of its own
    stream then.
    """
    try:
        return open(stream.fileno(), "rb", closefd=False)
    except OSError:  # standard input may have been replaced by bytes in memory
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
    except DAMAGED_GZIP as error:
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
