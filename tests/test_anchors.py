"""Links that name a heading (page.md#heading) lead to one."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]


def anchors(text):
    """Return the anchors that GitHub and the site make of headings; code blocks have none."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_anchors_exist():
    links = re.compile(r"\]\(([^)#:]*)#([^)]+)\)")
    lost = []
    for path in PAGES:
        for target, anchor in links.findall(path.read_text(encoding="utf-8")):
            page = path.parent / target if target else path
            if not page.exists() or anchor not in anchors(page.read_text(encoding="utf-8")):
                lost.append(f"{path.relative_to(ROOT)}: {target}#{anchor}")
    assert len(PAGES) > 50
    assert lost == []


def test_what_an_anchor_is():
    assert anchors("# A `b`, c\n```sh\n# no\n```\n## Mini-batches and partial_fit\n") == {
        "a-b-c",
        "mini-batches-and-partial_fit",
    }
