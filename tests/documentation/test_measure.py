"""The page about the documentation is rendered from the results, and they are those of today."""

import json

import measure
import pytest
from documented.blocks import found_in


@pytest.fixture
def recorded():
    return json.loads(measure.RESULTS.read_text(encoding="utf-8"))


def test_the_page_is_rendered_from_the_results(recorded):
    assert measure.PAGE.read_text(encoding="utf-8") == measure.page(recorded)


def test_the_results_are_those_of_these_pages(recorded):
    pages = [{"page": row["page"], "blocks": row["blocks"]} for row in recorded["pages"]]
    assert pages == measure.counted(), f"run again: {recorded['command']}"
    for name, value in measure.described().items():
        if name not in ("public", "documented"):  # grow with every function
            assert recorded[name] == value, f"run again: {recorded['command']}"


def test_everything_is_executed(recorded):
    assert [row["page"] for row in recorded["pages"] if not row["ran"]] == []
    assert recorded["documented"] == recorded["public"]
    assert all(recorded["estimators"].values())
    assert all(recorded["commands"].values())
    assert recorded["explanations"]["worst"] < 1e-4


def test_what_was_not_executed_is_told(recorded):
    recorded["pages"][0] |= {"ran": False, "why": "needs torch"}
    assert "**not executed**: needs torch" in measure.page(recorded)
    assert measure.page(recorded) != measure.PAGE.read_text(encoding="utf-8")


def test_a_page_names_what_it_needs(monkeypatch):
    monkeypatch.setattr(measure, "OPTIONAL", {"no_such_library", "numpy"})
    text = "```python\nimport no_such_library\nfrom numpy import array\n```\n"
    assert measure.needed(found_in("page.md", text)) == ["no_such_library"]
