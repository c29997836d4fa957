"""A disk that is full while a file is written: the old file stays, and the error names it."""

import errno
import os
import subprocess
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


@pytest.fixture
def full_after(monkeypatch):
    """Let files that are opened from now on take so many bytes."""

    def fill(room):
        real = os.fdopen
        monkeypatch.setattr(os, "fdopen", lambda *args: FullDisk(real(*args), room))

    return fill


@pytest.mark.parametrize("room", [0, 100, 1500])
def test_a_checkpoint_that_finds_no_room_leaves_the_one_before(tmp_path, full_after, room):
    path = tmp_path / "m.crfx"
    crf = LinearCRF(max_iter=3).fit(X, Y)
    crf.save(path)
    before = path.read_bytes()
    assert len(before) > room
    full_after(room)
    with pytest.raises(OSError, match=r"No space left on device: .*m\.crfx'") as caught:
        LinearCRF(max_iter=3).fit(X, Y, callbacks=[Checkpoint(path, every=1)])
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert load(path).n_iter_ == 3
    assert list(tmp_path.iterdir()) == [path]


def test_no_room_for_another_name(tmp_path, monkeypatch):
    """The name of the file that was asked for is told, not that of the one beside it."""

    def full(**arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere/.m.crfx.xyz")

    monkeypatch.setattr("tempfile.mkstemp", full)
    with pytest.raises(OSError, match=r"No space left on device: .*/m\.crfx'"):
        LinearCRF(max_iter=3).fit(X, Y).save(tmp_path / "m.crfx")


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


def test_a_disk_that_is_really_full(small_disk):
    path = small_disk / "m.crfx"
    random = np.random.default_rng(0)
    model_file.write(path, State({}, {"a": random.random(SMALL // 12)}))
    before = path.read_bytes()
    for n_numbers in (SMALL // 12, SMALL // 8, SMALL):
        contents = State({}, {"a": random.random(n_numbers)})
        with pytest.raises(OSError, match=r"No space left on device: .*m\.crfx'"):
            model_file.write(path, contents)
        assert path.read_bytes() == before
        assert list(small_disk.iterdir()) == [path]
    assert zipfile.ZipFile(path).testzip() is None


def test_text_and_lines_too(small_disk):
    for name in ("t.txt", "t.txt.gz"):
        noise = np.random.default_rng(0).integers(33, 127, 4 * SMALL, np.uint8).tobytes()
        with pytest.raises(OSError, match=r"No space left on device: .*t\.txt"):
            write_text(small_disk / name, noise.decode())
        assert list(small_disk.iterdir()) == []


def write_text(path, text):
    with whole_text(path) as file:
        file.write(text)


def test_another_error_keeps_its_own_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"), whole_file(tmp_path / "m.crfx"):
        raise FileNotFoundError(errno.ENOENT, "no such thing", "missing")
