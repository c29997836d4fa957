"""Statements that are repeated agree: versions, and what the reference shows."""

import importlib
import re
import tomllib

import support_page
from documented import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REFERENCE = "\n".join(
    page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.md"))
)


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", text, re.MULTILINE) == [PROJECT["version"]]
    assert re.findall(r"^license: (.+)$", text, re.MULTILINE) == [PROJECT["license"]]


def benchmarks(text):
    """The scripts that a text names."""
    return set(re.findall(r"(\w+\.py)", text))


def test_contributing_lists_the_benchmarks():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nbench:")[2]
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## Benchmarks")[2]
    run = benchmarks(makefile.partition("\n\n")[0])
    assert run
    assert benchmarks(text.partition("\n## ")[0]) == run


def missing(module, reference=REFERENCE):
    """Public names of a module that no page of the reference shows."""
    sections = re.findall(rf"^::: {module}\n((?:    .*\n)*)", reference, re.MULTILINE)
    if any("members:" not in section for section in sections):
        return []  # all of it
    listed = set(re.findall(r"\w+", " ".join(sections)))
    alone = set(re.findall(r"^::: (?:crfx\.)(?:\w+\.)*(\w+)$", reference, re.MULTILINE))
    names = {name for name in importlib.import_module(module).__all__ if not name.startswith("_")}
    return sorted(names - listed - alone)


def test_the_reference_shows_what_is_public():
    folders = ["features", "inference", "objectives", "datasets", "report", "testing"]
    modules = ["crfx", *(f"crfx.{folder}" for folder in folders)]
    assert {module: names for module in modules if (names := missing(module))} == {}


def test_a_name_that_is_not_shown_is_seen():
    assert missing("crfx.inference", "::: crfx.inference\n    options:\n      members: [sample]\n")
    assert missing("crfx.inference", "::: crfx.inference\n") == []


def test_the_page_of_what_is_supported_is_that_of_the_table():
    """Written by `python tests/documentation/support_page.py`."""
    assert support_page.PAGE.read_text(encoding="utf-8") == support_page.page()
