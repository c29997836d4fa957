"""Lines of files: ends, marks, compression, pipes; bad ones are in test_bad_text.py."""

import gzip
import io
import os
import threading

import pytest

from crfx.io.lines import name_of, open_lines

TEXT = "eins\r\nzwei äöü\n\nvier\u2028\x85 \u00a0"
EXPECTED = [(1, "eins"), (2, "zwei äöü"), (3, ""), (4, "vier\u2028\x85 \u00a0")]


def pairs(path):
    with open_lines(path) as lines:
        return [(line.number, line.text) for line in lines]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["a.txt", "a.gz"])  # what is in it counts, not the name
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_file(tmp_path, name, packed, mark, end):
    data = mark + TEXT.encode() + end
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if packed else data)
    assert pairs(path) == EXPECTED
    assert pairs(str(path)) == EXPECTED


@pytest.mark.parametrize("data", [b"", gzip.compress(b"", mtime=0), b"\xef\xbb\xbf"])
def test_nothing(tmp_path, data):
    path = tmp_path / "empty"
    path.write_bytes(data)
    assert [text for _, text in pairs(path)] in ([], [""])


def test_files_of_several_members_are_read_whole(tmp_path):
    path = tmp_path / "two.gz"
    path.write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\n"))
    assert pairs(path) == [(1, "a"), (2, "bc")]


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(monkeypatch, packed):
    data = TEXT.encode()
    stream = io.TextIOWrapper(io.BytesIO(gzip.compress(data) if packed else data))
    monkeypatch.setattr("sys.stdin", stream)
    with open_lines("-") as lines:
        assert lines.name == name_of(lines) == "<stdin>"
        assert [(line.number, line.text) for line in lines] == EXPECTED


def test_a_line_of_a_pipe_is_given_on_before_the_next_is_there():
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


@pytest.mark.parametrize(
    ("text", "peeked"),
    [
        ("a\nb\n\nc\n", 3),
        ("\n\na\n\nc", 4),
        ("-DOCSTART- O\n\na O\n\nb O\n", 4),
        ("# x\na\n# y\n\nb\n", 4),
        ("a", 1),
        ("", 0),
    ],
)
def test_a_peek_takes_nothing_away(tmp_path, text, peeked):
    path = tmp_path / "a"
    path.write_text(text)
    with open_lines(path) as lines:
        first = lines.peek_block()
        assert len(first) == peeked
        assert lines.peek_block() == first
        rest = list(lines)
    assert rest[:peeked] == first
    assert [line.text for line in rest] == text.splitlines()
    assert [line.number for line in rest] == list(range(1, len(rest) + 1))


def test_the_file_is_closed(tmp_path):
    path = tmp_path / "a"
    path.write_text("a\nb\n")
    with open_lines(path) as lines:
        next(lines)
    with pytest.raises(ValueError, match="closed"):
        next(lines)
