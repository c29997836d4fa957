"""Links that name a heading (page.md#heading) lead to one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/**/*.md")))]


def anchors(text):
    """As GitHub and the site make them of headings; lines in blocks of code are none."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_anchors_exist(page):
    path = ROOT / page
    lost = []
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text(encoding="utf-8")):
        leads_to = path.parent / target if target else path
        if not leads_to.exists() or anchor not in anchors(leads_to.read_text(encoding="utf-8")):
            lost.append(f"{target}#{anchor}")
    assert lost == []


def test_what_an_anchor_is():
    assert anchors("# A `b`, c\n```sh\n# no\n```\n## Mini-batches and partial_fit\n") == {
        "a-b-c",
        "mini-batches-and-partial_fit",
    }
