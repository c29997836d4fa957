"""Files appear whole or not at all; links are followed, pipes are written to."""

import os
import threading

import pytest

from crfx.io.whole_file import whole_file


def test_a_link_is_followed(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with whole_file(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    with whole_file(pipe) as file:
        file.write(b"new")
    reader.join(timeout=10)
    assert found == [b"new"]
    assert pipe.is_fifo()


def test_an_error_leaves_what_was_there(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"old")

    def fail():
        with whole_file(target) as file:
            file.write(b"new")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
