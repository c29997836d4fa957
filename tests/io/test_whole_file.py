"""Files appear whole or not at all, also on a full disk; links are followed, pipes written to."""

import errno
import os
import subprocess
import threading
import zipfile

import numpy as np
import pytest

from crfx import Checkpoint, LinearCRF, load
from crfx.io import model_file
from crfx.io.whole_file import whole_file, whole_text
from crfx.state import State
from crfx.testing import make_task

X, Y = make_task(n_instances=12)
SMALL = 64 * 1024


def test_whole_file_follows_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with whole_file(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_whole_file_writes_to_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    with whole_file(pipe) as file:
        file.write(b"new")
    reader.join(timeout=10)
    assert received == [b"new"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("error", [KeyError(), KeyboardInterrupt()], ids=repr)
def test_whole_file_leaves_the_old_file_after_an_error(tmp_path, error):
    """It is written beside the old one: else it could not take that one's place at once."""
    target = tmp_path / "target"
    target.write_bytes(b"old")

    def fail():
        with whole_file(target) as file:
            file.write(b"new")
            assert len(os.listdir(tmp_path)) == 2
            raise error

    with pytest.raises(type(error)):
        fail()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


class FullDisk:
    """A file that takes so many bytes."""

    def __init__(self, file, room):
        self._file, self._room = file, room

    def write(self, data):
        self._room -= len(data)
        if self._room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(data)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()


@pytest.mark.parametrize("room", [0, 100, 1500])
def test_checkpoint_on_a_full_disk_leaves_the_one_before(tmp_path, monkeypatch, room):
    path = tmp_path / "m.crfx"
    LinearCRF(max_iter=3).fit(X, Y).save(path)
    before, fdopen = path.read_bytes(), os.fdopen
    assert len(before) > room
    monkeypatch.setattr(os, "fdopen", lambda *args: FullDisk(fdopen(*args), room))
    with pytest.raises(OSError, match=r"No space left on device: .*m\.crfx'") as caught:
        LinearCRF(max_iter=3).fit(X, Y, callbacks=[Checkpoint(path, every=1)])
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert path.read_bytes() == before
    assert load(path).n_iter_ == 3
    assert list(tmp_path.iterdir()) == [path]


def test_errors_name_the_file_that_was_asked_for(tmp_path, monkeypatch):
    """Errors do not name the temporary file; an error about another file keeps its name."""
    with (
        pytest.raises(FileNotFoundError, match="there is no folder"),
        whole_file(tmp_path / "none" / "m.crfx"),
    ):
        pass
    with pytest.raises(FileNotFoundError, match="missing"), whole_file(tmp_path / "m.crfx"):
        raise FileNotFoundError(errno.ENOENT, "no such thing", "missing")

    def full(**arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere/.m.crfx.xyz")

    monkeypatch.setattr("tempfile.mkstemp", full)
    with (
        pytest.raises(OSError, match=r"No space left on device: .*/m\.crfx'"),
        whole_file(tmp_path / "m.crfx"),
    ):
        pass


@pytest.fixture
def small_disk(tmp_path):
    """A disk in memory, where the machine lets us mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine does not let us mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_save_on_a_full_disk_raises(small_disk):
    path = small_disk / "m.crfx"
    random = np.random.default_rng(0)
    for name in ("t.txt", "t.txt.gz"):
        noise = random.integers(33, 127, 4 * SMALL, np.uint8).tobytes().decode()
        with (
            pytest.raises(OSError, match=r"No space left on device: .*t\.txt"),
            whole_text(small_disk / name) as file,
        ):
            file.write(noise)
        assert list(small_disk.iterdir()) == []
    model_file.write(path, State({}, {"a": random.random(SMALL // 12)}))
    before = path.read_bytes()
    for n_numbers in (SMALL // 12, SMALL // 8, SMALL):
        contents = State({}, {"a": random.random(n_numbers)})
        with pytest.raises(OSError, match=r"No space left on device: .*m\.crfx'"):
            model_file.write(path, contents)
        assert path.read_bytes() == before
        assert list(small_disk.iterdir()) == [path]
    assert zipfile.ZipFile(path).testzip() is None
