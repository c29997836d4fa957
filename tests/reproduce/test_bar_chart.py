"""The artists that a bar chart draws with matplotlib."""

import pytest

from reproduce import bar_chart

pytest.importorskip("matplotlib", reason="pictures need crfx[plot]")

PANELS = {
    "OCR": {"SGD": {"linear": 12.91, "hidden": 3.51}, "margin": {"linear": None, "hidden": 4.0}},
    "FAQ": {"SGD": {"linear": 10.07, "hidden": None}},
    "CB513": {"SGD": {"linear": 23.56, "hidden": 21.13}},
}


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draws bars and returns the axes of the panels."""
    made, make = [], bar_chart.new_figure
    monkeypatch.setattr(bar_chart, "new_figure", lambda *size: made.append(make(*size)) or made[-1])

    def draw(panels, **arguments):
        bar_chart.bar_chart(tmp_path / "bars.png", panels, y_label="error, %", **arguments)
        assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")
        assert len(list(tmp_path.iterdir())) == 1
        return made[-1].axes

    return draw


def test_a_bar_is_as_high_as_its_figure(drawn):
    ocr, faq, _ = drawn(PANELS)
    assert [bar.get_height() for bar in ocr.patches] == [12.91, 0, 3.51, 4.0]
    assert [text.get_text() for text in ocr.texts] == ["12.91", "", "3.51", "4.00"]
    assert [label.get_text() for label in ocr.get_xticklabels()] == ["SGD", "margin"]
    assert [text.get_text() for text in faq.texts] == ["10.07", ""]
    assert [axes.get_title() for axes in (ocr, faq)] == ["OCR", "FAQ"]
    assert ocr.get_ylim()[0] == 0
    assert drawn(PANELS, digits=1)[0].texts[0].get_text() == "12.9"


def test_the_axis_may_begin_higher_but_not_above_a_bar(drawn):
    assert drawn(PANELS, least=3)[0].get_ylim()[0] == 3
    below = {"one": {"a": {"x": -2.0}, "b": {"x": 4.0}}}
    assert drawn(below, least=3)[0].get_ylim()[0] < -2


def test_series_style_is_equal_in_all_panels(drawn):
    ocr, faq, cb513 = drawn(PANELS)
    for axes, hidden in ((ocr, 2), (faq, 1), (cb513, 1)):
        assert axes.patches[hidden].get_facecolor() == ocr.patches[2].get_facecolor()
        assert axes.patches[hidden].get_x() == ocr.patches[2].get_x()
        assert axes.get_xlim() == ocr.get_xlim()
    linear, other = ocr.patches[0], ocr.patches[2]
    assert linear.get_facecolor() != other.get_facecolor()
    assert linear.get_hatch() != other.get_hatch()  # seen in print too
    assert other.get_x() >= linear.get_x() + linear.get_width()
