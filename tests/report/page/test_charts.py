"""Places in drawings are those of the numbers."""

import pytest

from crfx.calibration import Reliability
from crfx.report.description import HistoryCurve
from crfx.report.page.charts import MOST_POINTS, history_chart, reliability_chart


def points(chart):
    return [tuple(map(float, point.split(","))) for point in chart.points.split()]


def loss_chart(values, kept=None, name="objective"):
    kept = len(values) - 1 if kept is None else kept
    return history_chart(HistoryCurve(name, "loss", values, kept), "rounds")


def test_a_curve_goes_from_corner_to_corner():
    chart = loss_chart([4.0, 2.0, 3.0])
    (x0, y0), (_, y1), (x2, y2) = points(chart)
    assert (x0, x2) == (46, 350)
    assert (y0, y1) == (10, 168)  # SVG counts downwards
    assert y2 == pytest.approx((y0 + y1) / 2)
    assert [tick.text for tick in chart.x_ticks] == ["1", "2", "3"]
    assert [tick.text for tick in chart.y_ticks] == ["2", "2.5", "3", "3.5", "4"]
    assert chart.kept is None
    long = points(loss_chart([1.0 / (k + 1) for k in range(5000)]))
    assert len(long) == MOST_POINTS
    assert (long[0][0], long[-1][0]) == (46, 350)


def test_the_kept_round_is_marked_and_told():
    values = [float("nan"), 3.0, 2.0, 5.0]
    chart = loss_chart(values, 2, "eval_metric")
    assert len(points(chart)) == 3
    assert chart.kept.text == "kept: 3"
    assert chart.kept.at == points(chart)[1][0]
    assert chart.caption == "loss: 3 at first, 5 at last, kept: 3 (2)"
    chart = loss_chart(values, 0, "eval_metric")
    assert chart.caption == "loss: 3 at first, 5 at last, kept: 1"


def test_a_large_range_is_logarithmic():
    chart = loss_chart([10_000.0, 100.0, 1.0])
    (_, top), (_, middle), (_, bottom) = points(chart)
    assert middle == pytest.approx((top + bottom) / 2)
    assert [tick.text for tick in chart.y_ticks] == ["1", "10", "100", "1000", "10k"]
    assert "logarithmic" in chart.caption
    for ends in ([1e-15, 1e3], [1e-300, 1e300], [5e-324, 1e308]):
        assert 3 <= len(loss_chart(ends).y_ticks) <= 7


def test_odd_curves_are_drawn():
    for values in ([1.0], [0.0, 0.0], [-3.0, 1e9], [-1e308, 1e308], [1e300, 1e300]):
        chart = loss_chart(values)
        assert len(points(chart)) == len(values)
        texts = [tick.text for tick in chart.y_ticks]
        assert len(set(texts)) == len(texts) > 0
    late = [tick.text for tick in loss_chart([1e9 + 900, 1e9 + 100]).y_ticks]
    assert late == ["1G", "+200", "+400", "+600"]


def test_bins_lie_where_they_belong():
    counted = Reliability(2)
    counted.add([0.75, 0.75], [True, False])
    chart = reliability_chart(counted)
    ((x, y, dot),) = chart.dots
    assert x == pytest.approx(46 + 0.75 * (270 - 46))
    assert y == pytest.approx((10 + 248) / 2)
    assert dot == "2 labels: probability 75.0 %, right 50.0 %"
