"""Lines of files: ends, marks, compression, pipes; bad ones are in test_bad_text.py."""

import gzip
import io
import os
import threading
from itertools import product

import pytest

from crfx.io.lines import name_of, open_lines

TEXT = "eins\r\nzwei äöü\n\nvier\u2028\x85 \u00a0"
EXPECTED = [(1, "eins"), (2, "zwei äöü"), (3, ""), (4, "vier\u2028\x85 \u00a0")]


def pairs(path):
    with open_lines(path) as lines:
        return [(line.number, line.text) for line in lines]


@pytest.mark.parametrize("name", ["a.txt", "a.gz"])  # what is in it counts, not the name
def test_open_lines_reads_files(tmp_path, name):
    path = tmp_path / name
    for mark, end, pack in product((b"", b"\xef\xbb\xbf"), (b"", b"\n"), (bytes, gzip.compress)):
        path.write_bytes(pack(mark + TEXT.encode() + end))
        assert pairs(path) == EXPECTED
        assert pairs(str(path)) == EXPECTED
        path.write_bytes(pack(mark))
        assert [text for _, text in pairs(path)] in ([], [""])
    path.write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\n"))
    assert pairs(path) == [(1, "a"), (2, "bc")]
    with open_lines(path) as lines:
        next(lines)
    with pytest.raises(ValueError, match="closed"):
        next(lines)


@pytest.mark.parametrize("packed", [False, True])
def test_open_lines_reads_standard_input(monkeypatch, packed):
    data = TEXT.encode()
    stream = io.TextIOWrapper(io.BytesIO(gzip.compress(data) if packed else data))
    monkeypatch.setattr("sys.stdin", stream)
    with open_lines("-") as lines:
        assert lines.name == name_of(lines) == "<stdin>"
        assert [(line.number, line.text) for line in lines] == EXPECTED


def test_open_lines_yields_lines_of_a_pipe_as_they_come():
    reading, writing = os.pipe()
    received = []
    first, second = threading.Event(), threading.Event()

    def read():
        with open_lines(f"/dev/fd/{reading}") as lines:
            for line, event in zip(lines, (first, second), strict=False):
                received.append(line.text)
                event.set()

    thread = threading.Thread(target=read)
    thread.start()
    os.write(writing, b"one\n")
    assert first.wait(timeout=20)
    assert received == ["one"]
    os.write(writing, b"two")
    os.close(writing)
    assert second.wait(timeout=20)
    thread.join()
    os.close(reading)
    assert received == ["one", "two"]


def test_peek_block_takes_nothing_away(tmp_path):
    path = tmp_path / "a"
    for text, n_peeked in (
        ("a\nb\n\nc\n", 3),
        ("\n\na\n\nc", 4),
        ("-DOCSTART- O\n\na O\n\nb O\n", 4),
        ("# x\na\n# y\n\nb\n", 4),
        ("a", 1),
        ("", 0),
    ):
        path.write_text(text)
        with open_lines(path) as lines:
            first = lines.peek_block()
            assert len(first) == n_peeked
            assert lines.peek_block() == first
            rest = list(lines)
        assert rest[:n_peeked] == first
        assert [line.text for line in rest] == text.splitlines()
        assert [line.number for line in rest] == list(range(1, len(rest) + 1))
