"""Every command has a help page with an example, and tells mistakes in one line."""

import subprocess
import sys

import pytest

from crfx.cli import _COMMANDS, main

PAGES = [
    [],
    *([name] for name in _COMMANDS),
    *(["rank", action] for action in ("train", "predict", "eval")),
]


@pytest.mark.parametrize("command", PAGES, ids=" ".join)
def test_help_shows_example_and_unknown_options_name_the_command(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert output.out.startswith(f"usage: {' '.join(['crfx', *command])}")
    if command and command != ["rank"]:
        assert f"example:\n  crfx {' '.join(command)}" in output.out.replace("CRFX_DATA=data ", "")
        assert "--debug" in output.out
    with pytest.raises(SystemExit) as ended:
        main([*command, "--no-such-option"])
    assert ended.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"{' '.join(['crfx', *command])}: error: ")
    assert output.err.count("\n") == 1


def test_the_exit_code_reaches_the_shell(tmp_path):
    command = [sys.executable, "-m", "crfx", "inspect", str(tmp_path / "none.crfx")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.endswith("none.crfx: no such file or directory\n")
    assert ended.stderr.count("\n") == 1


def test_internal_errors_hide_traceback_without_debug(monkeypatch, capsys):
    def broken(arguments):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("crfx.cli.demo.run", broken)
    assert main(["demo"]) == 2
    text = capsys.readouterr().err
    assert text == (
        "crfx demo: error: ZeroDivisionError: division by zero (a mistake of crfx; --debug shows "
        "where)\n"
    )
    with pytest.raises(ZeroDivisionError):
        main(["demo", "--debug"])


def test_no_command_at_all_shows_the_list(capsys):
    assert main([]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("usage: crfx ")
    assert all(f"\n    {name}" in output.err for name in _COMMANDS)
