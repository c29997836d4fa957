"""`show_versions` prints what a report of a bug needs."""

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

import crfx
from crfx import versions


def test_show_versions_prints_versions_and_instruction_sets(capsys):
    crfx.show_versions()
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["crfx"] == crfx.__version__
    assert lines["instruction set"].startswith(f"{crfx.instruction_set()} of ")
    assert int(lines["threads"]) > 0
    assert lines["python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert lines["numpy"] == version("numpy")
    assert list(lines)[5:] == list(versions.PACKAGES)


def test_show_versions_names_packages_that_are_not_installed(capsys, monkeypatch):
    monkeypatch.setattr(versions, "PACKAGES", ("numpy", "no-such-package"))
    crfx.show_versions()
    assert capsys.readouterr().out.endswith("\nno-such-package: not installed\n")


SHOW = "import crfx; print(crfx.instruction_set()); crfx.show_versions()"


@pytest.mark.parametrize("wanted", versions.available_instruction_sets())
def test_show_versions_lists_all_sets_where_one_is_chosen(wanted):
    child = subprocess.run(
        [sys.executable, "-c", SHOW],
        env=os.environ | {"CRFX_ISA": wanted},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = child.stdout.splitlines()
    assert lines[0] == wanted
    available = ", ".join(versions.available_instruction_sets())
    assert lines[2] == f"instruction set: {wanted} of {available}"
