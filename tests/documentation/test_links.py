"""Links lead somewhere, and from the first page to all others."""

from documented import ROOT
from documented.blocks import pages
from documented.links import links_of, navigation, reached


def test_links_lead_somewhere():
    links = ((page, link) for page in [*pages(), "CONTRIBUTING.md"] for link in links_of(page))
    assert [(page, link) for page, link in links if not (ROOT / link).exists()] == []


def test_pages_of_the_menu_are_two_clicks_from_the_first():
    menu = set(navigation())
    assert {"docs/index.md", "docs/start.md", "reports/ocr.md", "CHANGELOG.md"} <= menu
    assert sorted(menu - reached("docs/index.md", clicks=2)) == []


def test_a_page_that_is_further_away_is_seen():
    links = {"a.md": ["b.md"], "b.md": ["c.md", "picture.png"], "c.md": ["d.md"], "d.md": []}
    assert reached("a.md", clicks=2, links=links.__getitem__) == {"a.md", "b.md", "c.md"}
