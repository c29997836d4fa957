"""The site's own hooks; `make docs` builds it, and warnings are errors there."""

import importlib.util

import pytest
from documented import ROOT

pytest.importorskip("mkdocs", reason="make docs installs what the site is built with")
pytest.importorskip("latex2mathml", reason="make docs installs what the site is built with")


def hook(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "hooks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


mathematics, repository = hook("mathematics"), hook("repository")
docstrings, offline, llms = hook("docstrings"), hook("offline"), hook("llms")


class Page:
    class file:
        src_uri = "docs/page.md"


def test_equations_become_mathml():
    text = (
        r'a <span class="arithmatex">\(\log Z\)</span> b <div class="arithmatex">\[x &lt; 1\]</div>'
    )
    result = mathematics.on_page_content(text, Page)
    assert result.count("<math") == 2
    assert "<mi>log</mi><mi>Z</mi>" in result
    assert 'display="block"' in result
    assert "arithmatex" not in result


def test_equations_replace_unsupported_commands():
    assert "<mtable" in mathematics.mathml(r"\begin{aligned} a &= b \end{aligned}", display=True)
    assert "&#x003B3;" in mathematics.mathml(r"\gamma", display=False)
    assert ">arg<" in mathematics.mathml(r"\arg\max_y f", display=False)


def test_an_equation_that_cannot_be_read_is_an_error():
    for latex, message in (
        (r"\nonsense x", r"which latex2mathml lacks"),
        (r"\begin{nonsense} a & b \end{nonsense}", "which latex2mathml lacks|cannot read"),
        (r"\frac{1", "braces"),
        (r"\mathbf", "cannot read"),
    ):
        with pytest.raises(ValueError, match=message):
            mathematics.mathml(latex, display=False)
        with pytest.raises(Exception, match=r"docs/page\.md: "):
            mathematics.on_page_content(rf'<span class="arithmatex">\({latex}\)</span>', Page)


def test_what_is_linked_is_part_of_the_site(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "reports" / "results" / ".cache").mkdir(parents=True)
    (tmp_path / "docs" / "a.md").write_text("[b](../reports/b.md#c), [no](none.md), [w](http://w)")
    (tmp_path / "reports" / "b.md").write_text("[r](results) ![p](p.png) [o](../../out.md)")
    for name in ("p.png", "unlinked.png", "results/x.json", "results/.cache/y"):
        (tmp_path / "reports" / name).touch()
    assert sorted(repository.linked(tmp_path, ["docs/a.md"])) == [
        "docs/a.md",
        "reports/b.md",
        "reports/p.png",
        "reports/results",
        "reports/results/x.json",
    ]


def test_examples_of_docstrings_become_code():
    text = "Adds::\n\n    a + b\n\n>>> add(1, 2)\n3\n\nMore.\n\n    >>> add(0, 0)\n    0"
    assert docstrings.as_markdown(text) == (
        "Adds:\n\n    a + b\n\n```pycon\n>>> add(1, 2)\n3\n```\n\nMore.\n\n"
        "    ```pycon\n    >>> add(0, 0)\n    0\n    ```"
    )


def test_joint_argument_entries_are_split():
    text = (
        "Sum.\n\nParameters\n----------\nnode : array\n    Scores.\n"
        "start, end : array\n    Added.\n    At the ends.\norder, other\n    More.\n\n"
        "Attributes\n----------\na_, b_, c_\nhistory_ : dict\n    Of lists.\n"
    )
    assert docstrings.as_markdown(text) == text.replace(
        "start, end : array\n    Added.\n    At the ends.\norder, other\n    More.\n",
        "start : array\n    Added.\n    At the ends.\nend : array\n    Added.\n    At the ends.\n"
        "order\n    More.\nother\n    More.\n",
    )


def test_site_check_rejects_fetching_pages_only():
    for text in (
        '<script src="https://cdn.example/x.js">',
        "<img alt=x src=//example.org/x.png>",
        '<link rel="stylesheet" href="https://fonts.example/css">',
        '<link href="https://fonts.example" rel="preconnect">',
    ):
        with pytest.raises(Exception, match=r"docs/page\.md would fetch"):
            offline.on_post_page(f"<p>{text}</p>", Page)
    text = (
        '<a href="https://example.org"><script src="../x.js"></script><link rel="next" href="x/">'
    )
    assert offline.on_post_page(text, Page) == text


def test_llms_first_sentence_skips_headings_code_and_tables():
    text = "# Title\n\n```python\nx = 1.  \n```\n\n| a | b |\n\nSee [the\nguide](a.md): it. More.\n"
    assert llms.first_sentence(text) == "See the guide: it."
    assert llms.first_sentence("# Title\n\n::: crfx.load\n") == ""


def test_llms_paths_lists_pages_of_subgroups_in_order():
    menu = ["a.md", {"Group": ["b.md", {"Title": "c.md"}]}, "d.md"]
    assert list(llms.paths(menu)) == ["a.md", "b.md", "c.md", "d.md"]
