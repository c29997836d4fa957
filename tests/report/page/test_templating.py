"""Templates write escaped, readable text that can be encoded."""

import sys

import pytest

from crfx.report.page import templating

jinja2 = pytest.importorskip("jinja2", reason="the page needs crfx[report]")


class OddLabel:
    def __str__(self):
        return "half \ud800"


def rendered(text, **values):
    return templating._environment().from_string(text).render(values)


def test_values_are_escaped_and_can_be_written():
    assert rendered("{{ a }}", a="<b>&'\"") == "&lt;b&gt;&amp;&#39;&#34;"
    assert rendered("{{ '%s' | format(a) }}", a="<b>") == "&lt;b&gt;"
    result = rendered("{{ a }}", a="a\x00b\x1bc\ud800d\te\u202ef")
    assert result == "a\ufffdb\ufffdc\ufffdd\te\u202ef"
    result.encode()
    assert rendered("{{ a }}", a=OddLabel()) == "half \ufffd"
    with pytest.raises(jinja2.UndefinedError):
        rendered("{{ a }}")
    numbers = (1.234, -0.5, -0.001, float("-inf"))
    assert list(map(templating.signed, numbers)) == ["+1.23", "−0.50", "0.00", "−∞"]


def test_render_names_a_missing_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    templating._environment.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'crfx\[report\]'"):
        templating.render("labelling.html", {})
