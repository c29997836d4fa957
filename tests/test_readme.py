"""What README.md and the pages of docs/ show is true: Python blocks run, links lead somewhere."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import copyfile

import pytest

from crfx.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def python_blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def run(blocks):
    """Run the blocks in one namespace, as a reader would who pastes them one after the other."""
    namespace = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)


DOCS = [path for path in sorted(ROOT.glob("docs/**/*.md")) if path.parent.name != "decisions"]
PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in DOCS)]

OPTIONAL = {"torch"}
"""What pages may import that an environment for the tests need not have."""


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run_and_print_what_they_say(page, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # they may write files
    write_files(tmp_path)
    blocks = python_blocks((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    for library in OPTIONAL & set(re.findall(r"^import (\w+)", "".join(blocks), re.MULTILINE)):
        pytest.importorskip(library, reason=f"the page needs {library}, which crfx does not")
    run(blocks)
    promised = re.findall(r"print\(.*\)  # (.+)", "".join(blocks))
    assert capsys.readouterr().out.splitlines() == promised


def commands(text):
    """The lines of sh blocks that call crfx, without their comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line.split("  #")[0].strip() for line in "".join(blocks).splitlines()]
    return [line for line in lines if re.match(r"(?:cat .*\| *)?crfx ", line)]


@pytest.mark.parametrize("page", [page for page in PAGES if commands((ROOT / page).read_text())])
def test_commands_run(page, monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    for line in commands((ROOT / page).read_text(encoding="utf-8")):
        if "|" in line:
            line = line.replace("crfx", f"{sys.executable} -m crfx")
            code = subprocess.run(line, shell=True, check=False).returncode
        else:
            code = main(shlex.split(line)[1:])
        assert code == 0, (line, capfd.readouterr().err)


def write_files(folder):
    """What the pages read: text with labels, a template, rankings, a model of CRFsuite."""
    copyfile(ROOT / "tests/saved_models/crfsuite.model", folder / "model.crfsuite")
    sentence = "Ada NNP B-PER\nvisited VBD O\nRome NNP B-LOC\n\nBo NNP B-PER\nleft VBD O\n\n"
    for name in ("train.conll", "dev.conll", "test.conll"):
        (folder / name).write_text(sentence * 5)
    (folder / "template.txt").write_text("word[-1..1]\nsuffix(word[0], 1..3)\npos[0]\n")
    ranking = "".join(f"{k % 3} qid:{k // 6} 1:{k % 3 / 2} 2:{k % 7 / 6}\n" for k in range(60))
    for place in (folder, folder / "Fold1"):
        place.mkdir(exist_ok=True)
        for name in ("train.txt", "vali.txt", "test.txt"):
            (place / name).write_text(ranking)


def test_a_broken_block_is_seen():
    with pytest.raises(ZeroDivisionError):
        run(
            python_blocks(
                "text\n```python\nx = 0\n```\n```sh\nnot python\n```\n```python\n1 / x\n```\n"
            )
        )


def test_the_two_commands_are_on_the_first_screen():
    first_screen = "\n".join(README.splitlines()[:50])
    assert "make demo" in first_screen
    assert "make test" in first_screen


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "docs/decisions/README.md"])
def test_links_lead_somewhere(page):
    path = ROOT / page
    links = re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []
