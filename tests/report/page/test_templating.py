"""What templates write: escaped, readable, and only what can be written."""

import sys

import pytest

from crfx.report.page import templating

pytest.importorskip("jinja2", reason="the page needs crfx[report]")


class OddLabel:
    def __str__(self):
        return "half \ud800"


def rendered(text, **values):
    return templating._environment().from_string(text).render(values)


def test_everything_is_escaped():
    assert rendered("{{ a }}", a="<b>&'\"") == "&lt;b&gt;&amp;&#39;&#34;"
    assert rendered("{{ '%s' | format(a) }}", a="<b>") == "&lt;b&gt;"


def test_signs_that_disturb_are_replaced():
    found = rendered("{{ a }}", a="a\x00b\x1bc\ud800d\te\u202ef")
    assert found == "a\ufffdb\ufffdc\ufffdd\te\u202ef"
    found.encode()
    assert rendered("{{ a }}", a=OddLabel()) == "half \ufffd"


def test_a_name_that_is_missing_is_an_error():
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        rendered("{{ a }}")


@pytest.mark.parametrize(
    ("number", "told"),
    [(1.234, "+1.23"), (-0.5, "−0.50"), (-0.001, "0.00"), (float("-inf"), "−∞")],
)
def test_signed(number, told):
    assert templating.signed(number) == told


def test_without_the_library_one_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    templating._environment.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'crfx\[report\]'"):
        templating.render("labelling.html", {})
