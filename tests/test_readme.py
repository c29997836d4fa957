"""What README.md and the pages of docs/ show is true: Python blocks run, links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def python_blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def run(blocks):
    """Run the blocks in one namespace, as a reader would who pastes them one after the other."""
    namespace = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)


PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/*.md")))]


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run_and_print_what_they_say(page, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # they may write files
    blocks = python_blocks((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    run(blocks)
    promised = re.findall(r"print\(.*\)  # (.+)", "".join(blocks))
    assert capsys.readouterr().out.splitlines() == promised


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
