"""Every block of README.md and of the pages of docs/ runs and prints what the page shows."""

import pytest
from documented import ROOT
from documented.blocks import blocks_of, found_in, pages
from documented.files import write_files
from documented.running import Page, commands
from measure import needed

SHOWING = [page for page in pages() if blocks_of(page)]


@pytest.mark.parametrize("page", SHOWING)
def test_blocks_do_what_the_page_says(page, tmp_path):
    blocks = blocks_of(page)
    if missing := needed(blocks):
        pytest.skip(f"the page needs {', '.join(missing)}, which crfx does not")
    write_files(tmp_path)
    Page(tmp_path).run(blocks)


def test_the_makes_of_contributing_exist(tmp_path):
    blocks = [block for block in blocks_of("CONTRIBUTING.md") if block.kind == "sh"]
    assert blocks
    Page(tmp_path).run(blocks)


BROKEN = {
    "python": [
        ("```python\nx = 0\n```\n\ntext\n```python\n1 / x\n```\n", "division by zero"),
        ("```python\nprint(1 + 1)  # 3\n```\n", "page.md:1 promises"),
        ("```python\nprint(1)\n```\n", "page.md:1 promises"),
        ("```python\nprint(1)\n```\n```text\n2\n```\n", "page.md:1 promises"),
        ("```python\nprint(1)\nprint(2)  # 1\n```\n```text\n2\n```\n", "page.md:1: a print that"),
        ("```python\nprint('a\\nb')\n```\n```text\nb\n…\na\n```\n", "page.md:1 promises"),
    ],
    "sh": [
        ("```sh\ncrfx eval none.crfx test.conll\n```\n", "page.md:1: .* ended with 2"),
        ("```sh\ncat none.conll | crfx tag none.crfx -\n```\n", "No such file"),
        ("```sh\nrm -rf build\n```\n", "executed by nothing"),
        ("```sh\nmake fun\n```\n", r"make does not know \['fun'\]"),
        ("```sh\npip install 'crfx[fun]'\n```\n", "no extra 'fun'"),
        ("```sh\npip install numpy\n```\n", "what is numpy"),
        ("```sh\npython examples/none.py\n```\n", "there is no examples/none.py"),
        ("```sh\npip frobnicate .\n```\n", "pip frobnicate is executed by nothing"),
    ],
    "text and data": [
        ("\n```text\nSome prose.\n```\n", "page.md:2 is neither"),
        ("```text\nThese words end in O\n```\n", "page.md:1 is neither"),
        ("```rust\nfn main() {}\n```\n", "'rust' is run by nothing"),
        ("```\nfn main() {}\n```\n", "'' is run by nothing"),
        ("```json\n{'a': 1}\n```\n", "Expecting property name"),
        ("```toml\na = \n```\n", "Invalid value"),
    ],
}


@pytest.mark.parametrize("blocks", BROKEN.values(), ids=BROKEN)
def test_a_broken_block_is_seen(blocks, tmp_path):
    for text, message in blocks:
        with pytest.raises((AssertionError, ArithmeticError, ValueError), match=message):
            Page(tmp_path).run(found_in("page.md", text))


def test_a_good_block_is_let_through(tmp_path):
    for text in (
        "```python\nprint(1)  # 1\nprint([2,\n3])\n```\nIt prints:\n```text\n[2, 3]\n```\n",
        "```python\nprint('a\\nb\\nc')\n```\n```text\na\n…\nc\n```\n",
        "```sh\nmake setup PYTHON=python3.12\npip install '.[plot]' # a picture\n```\n",
        "```text\nword[-1..1]\nlower(word[0]) & pos[1]\n```\n",
        "```text\nAda B-PER\nleft O\n```\n",
        '```json\n{"a": 1}\n```\n```toml\na = 1\n```\n',
        "```sh\ncrfx inspect \\\n  --help | head -2\n```\n```text\n…\n\n```\n",
    ):
        Page(tmp_path).run(found_in("page.md", text))


def test_code_that_would_not_be_found_is_refused():
    for text in (
        "~~~python\n1 / 0\n~~~\n",
        "````python\n1 / 0\n````\n",
        "> ```python\n> 1 / 0\n> ```\n",
        "- ```python\n  1 / 0\n  ```\n",
        "```python\n1 / 0\n  ```\n",
        "    1 / 0\n",
        "text\n\n    1 / 0\n",
        "text\n\n\t1 / 0\n",
    ):
        with pytest.raises(ValueError, match=r"page\.md:\d: only blocks between lines of ``` are"):
            found_in("page.md", text)


def test_blocks_are_found_behind_spaces_and_not_in_comments(tmp_path):
    text = "```python\na\n``` \ntext\n```python\nb\n```\n"
    assert [(block.line, block.text) for block in found_in("page.md", text)] == [
        (1, "a\n"),
        (5, "b\n"),
    ]
    assert found_in("page.md", "<!--\n```python\n1 / 0\n```\n-->\n") == []
    Page(tmp_path).run(found_in("page.md", "text\n"))


def test_lines_of_the_shell_lose_their_comments_and_are_joined():
    (block,) = found_in("page.md", "```sh\n# first\ncrfx a \\\n  b  # then\n```\n")
    assert commands(block) == [("page.md:1", "crfx a b")]


def test_the_two_commands_are_on_the_first_screen():
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:50])
    assert "make demo" in first_screen
    assert "make test" in first_screen
