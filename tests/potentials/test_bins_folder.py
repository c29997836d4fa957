"""Folders of bins: those that killed processes leave behind go, no others."""

import os
import subprocess
import sys
import tempfile

import pytest

from crfx.potentials import external_matrix
from crfx.potentials.external_matrix import new_bins_folder

ANOTHER = """
import sys
from crfx.potentials.external_matrix import new_bins_folder
print(new_bins_folder(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def parent(tmp_path, monkeypatch):
    """Where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def names(parent):
    return sorted(path.name for path in parent.iterdir())


@pytest.fixture
def ended():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.skipif(os.name != "posix", reason="asks whether a process lives")
def test_the_folder_of_a_process_stays_until_it_is_killed(parent):
    process = subprocess.Popen(
        [sys.executable, "-c", ANOTHER],
        env=os.environ | {"TMPDIR": str(parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        theirs = os.path.basename(process.stdout.readline().strip())
        with open(parent / theirs / "bins", "w") as file:
            file.write("some")
        first = os.path.basename(new_bins_folder())
        assert names(parent) == sorted([theirs, first])
        process.kill()
    second = os.path.basename(new_bins_folder())
    assert names(parent) == sorted([first, second])


def test_what_others_have_stays(parent, ended):
    """Of another machine, of another program; and what is no folder."""
    here = external_matrix._place()
    others = [f"crfx-bins-{ended}-{here}x-abc", f"crfx-bins-{ended}-abc", f"x{ended}-{here}-abc"]
    for name in others:
        (parent / name).mkdir()
    (parent / f"crfx-bins-{ended}-{here}-file").touch()
    before = names(parent)
    folder = new_bins_folder()
    assert names(parent) == sorted([*before, os.path.basename(folder)])


@pytest.mark.skipif(os.name != "posix", reason="asks whether a process lives")
def test_names_of_machines_may_have_dashes(parent, ended, monkeypatch):
    monkeypatch.setattr(external_matrix.socket, "gethostname", lambda: "rack-7-node-3")
    (parent / f"crfx-bins-{ended}-{external_matrix._place()}-ab_c").mkdir()
    folder = new_bins_folder()
    assert names(parent) == [os.path.basename(folder)]
    assert "rack-7-node-3" in folder
