"""Every public name has a docstring, every estimator and every command an example that is run."""

import os

import pytest
from documented.coverage import (
    COMMANDS,
    ESTIMATORS,
    examples_of_command,
    examples_of_estimator,
    public_names,
)
from documented.files import write_files
from documented.running import Page


def test_public_names_have_docstrings():
    assert [name for name, documented in public_names() if not documented] == []


def test_a_missing_docstring_is_seen(tmp_path):
    (tmp_path / "part.py").write_text(
        '"""Doc."""\nclass A:\n    """Doc."""\n    def told(self):\n        """Doc."""\n'
        "    def untold(self): ...\ndef _own(): ...\n"
    )
    assert dict(public_names(tmp_path)) == {
        "crfx.part": True,
        "crfx.part.A": True,
        "crfx.part.A.told": True,
        "crfx.part.A.untold": False,
    }


def test_estimators_show_an_example():
    assert [name for name in ESTIMATORS if not examples_of_estimator(name)] == []


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_examples_of_commands_run(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = examples_of_command(command)
    assert examples
    if any("CRFX_DATA" in line for line in examples):
        if "CRFX_DATA" not in os.environ:
            pytest.skip("the example reads a public data set: name its folder in $CRFX_DATA")
        (tmp_path / "data").symlink_to(os.environ["CRFX_DATA"])
    write_files(tmp_path)
    page = Page(tmp_path)
    if command[0] in ("tag", "eval", "inspect", "report"):
        run(page, ["crfx train --model linear --train train.conll -o ner.crfx"])
    if command == ("report",):
        run(page, ["crfx rank train train.txt --model ranking.crfx"])
    if command in (("rank", "predict"), ("rank", "eval")):
        run(page, examples_of_command(("rank", "train")))
    run(page, examples)


def run(page, lines):
    for line in lines:
        page.command(line, line)
