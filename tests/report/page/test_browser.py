"""The page in a browser: quiet, alone, narrow enough for a phone, dark in the dark.

What is measured is measured by a script in a copy of the page, since the page itself has none and
lets none run.
"""

import re
from html.parser import HTMLParser

import pytest

from crfx.cli import main

HOSTILE = "<script>document.title='taken'</script>"
IMAGE = '"><img/src=x/onerror=document.title="taken">'
LONG = "w" * 400
POLICY = "default-src 'none'"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Of a model whose tokens, labels, features and file are out to take the page over."""
    folder = tmp_path_factory.mktemp("hostile")
    lines = [
        *((HOSTILE, "a", "B-<b>x</b>"), ("met", "b", "O"), (IMAGE, "a", "B-LOC"), ("in", "b", "O")),
        *((LONG, "a", "B-&amp;"), ("\u202eevil", "c", "O"), ("{{7*7}}", "c", "B-{{7*7}}")),
    ]
    good = "".join(" ".join(line) + "\n" for line in lines) + "\n"
    bad = "".join(f"{word} {tag} O\n" for word, tag, _ in lines) + "\n"
    (folder / "train.txt").write_text(good * 8, encoding="utf-8")
    data = folder / "<img src=x onerror=alert(1)>.txt"
    data.write_text((good + bad) * 4, encoding="utf-8")
    model, path = folder / "m.crfx", folder / "page.html"
    train = ["train", "--model", "linear", "--train", str(folder / "train.txt"), "-o", str(model)]
    assert main([*train, "-q", "--jobs", "1"]) == 0
    options = ["-o", str(path), "--title", HOSTILE, "--worst", "3", "-q"]
    assert main(["report", str(model), str(data), *options]) == 0
    return path


def measured(browse, path, script, tmp_path, *options, width=360):
    """Return what a script reports about the page in a frame of that many pixels."""
    text = path.read_text(encoding="utf-8")
    assert text.count(POLICY) == 1
    text = text.replace(POLICY, f"{POLICY}; script-src 'unsafe-inline'")
    say = f"parent.postMessage(String({script}), '*')"
    copy = tmp_path / "copy.html"
    copy.write_text(text.replace("</body>", f"<script>{say}</script></body>"), encoding="utf-8")
    frame = tmp_path / "frame.html"  # a window is never as narrow as a phone
    frame.write_text(
        "<!doctype html><script>onmessage = e => document.title = e.data</script>"
        f'<iframe src="copy.html" style="border:0;width:{width}px;height:800px"></iframe>'
    )
    document, _ = browse(frame, "--virtual-time-budget=2000", *options)
    return re.search("<title>(.*?)</title>", document)[1]


def test_page_logs_nothing_and_escapes_hostile_text(page, browse):
    document, said = browse(page)
    assert said == []
    assert document.count("<script") == 0
    assert document.count("<img") == 0
    assert "<title>&lt;script&gt;" in document  # not taken
    assert "B-{{7*7}}" in document  # nor calculated
    assert "B-&lt;b&gt;x&lt;/b&gt;" in document
    assert "B-&amp;amp;" in document


def test_the_page_asks_for_nothing(page):
    tags = Tags()
    tags.feed(page.read_text(encoding="utf-8"))
    assert not {"script", "img", "iframe", "object", "form", "base"} & tags.names
    assert [link for link in tags.links if not link.startswith(("#", "data:,"))] == []
    assert "@import" not in tags.style
    assert "url(" not in tags.style


class Tags(HTMLParser):
    """The names of tags, what they link to, and the style sheet."""

    def __init__(self):
        super().__init__()
        self.names, self.links, self.style, self._tag = set(), [], "", ""

    def handle_starttag(self, tag, attrs):
        self._tag = tag
        self.names.add(tag)
        self.links += [value for name, value in attrs if name in ("href", "src", "action", "data")]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        if self._tag == "style":
            self.style += data


SIZE = "document.documentElement.scrollWidth + ' ' + innerWidth"
COLOUR = "getComputedStyle(document.body).backgroundColor"
OPEN = "document.querySelectorAll('details').forEach(each => each.open = true)"
DARK = "--blink-settings=preferredColorScheme=0"


@pytest.mark.parametrize(
    ("width", "options", "darkest", "lightest"), [(360, [], 255, 255), (1280, [DARK], 0, 40)]
)
def test_page_fits_the_window_and_is_dark_in_the_dark(
    page, browse, tmp_path, width, options, darkest, lightest
):
    script = f"({OPEN}, {SIZE} + ' ' + {COLOUR})"
    measures = measured(browse, page, script, tmp_path, *options, width=width)
    whole, window, *colour = map(int, re.findall(r"\d+", measures))
    assert whole <= window == width
    assert all(darkest <= part <= lightest for part in colour)


def test_browser_sees_refused_scripts_and_wide_pages(browse, tmp_path):
    """The browser tells of scripts that are refused, and of pages that are too wide."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    path = tmp_path / "bad.html"
    wide = "<table width=900><tr><td>wide</table>"
    path.write_text(f"<!doctype html>{policy}<body>{wide}<script>1</script></body>")
    assert browse(path)[1] != []
    whole, window = map(int, measured(browse, path, SIZE, tmp_path).split())
    assert whole > window == 360
