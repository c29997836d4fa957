"""Places in drawings are those of the numbers."""

import pytest

from crfx.calibration import Reliability
from crfx.report.description import HistoryCurve
from crfx.report.page.charts import MOST_POINTS, history_chart, reliability_chart


def points(chart):
    return [tuple(map(float, point.split(","))) for point in chart.points.split()]


def test_a_curve_goes_from_corner_to_corner():
    chart = history_chart(HistoryCurve("objective", "loss", [4.0, 2.0, 3.0], 2), "rounds")
    (x0, y0), (_, y1), (x2, y2) = points(chart)
    assert (x0, x2) == (46, 350)
    assert (y0, y1) == (10, 168)  # SVG counts downwards
    assert y2 == pytest.approx((y0 + y1) / 2)
    assert [tick.text for tick in chart.x_ticks] == ["1", "2", "3"]
    assert [tick.text for tick in chart.y_ticks] == ["2", "2.5", "3", "3.5", "4"]
    assert chart.kept is None


def test_what_was_kept_is_marked_and_told():
    values = [float("nan"), 3.0, 2.0, 5.0]
    chart = history_chart(HistoryCurve("eval_metric", "loss", values, 2), "rounds")
    assert len(points(chart)) == 3
    assert chart.kept.text == "kept: 3"
    assert chart.kept.at == points(chart)[1][0]
    assert chart.caption == "loss: 3 at first, 5 at last, kept: 3 (2)"
    chart = history_chart(HistoryCurve("eval_metric", "loss", values, 0), "rounds")
    assert chart.caption == "loss: 3 at first, 5 at last, kept: 1"


def test_a_large_range_is_logarithmic():
    chart = history_chart(HistoryCurve("objective", "loss", [10_000.0, 100.0, 1.0], 2), "rounds")
    (_, top), (_, middle), (_, bottom) = points(chart)
    assert middle == pytest.approx((top + bottom) / 2)
    assert [tick.text for tick in chart.y_ticks] == ["1", "10", "100", "1000", "10k"]
    assert "logarithmic" in chart.caption


@pytest.mark.parametrize(
    "values", [[1.0], [0.0, 0.0], [-3.0, 1e9], [-1e308, 1e308], [1e300, 1e300]]
)
def test_odd_curves_are_drawn(values):
    chart = history_chart(HistoryCurve("objective", "loss", values, len(values) - 1), "rounds")
    assert len(points(chart)) == len(values)
    assert chart.y_ticks
    texts = [tick.text for tick in chart.y_ticks]
    assert len(set(texts)) == len(texts)


def test_numbers_that_differ_late_are_told_by_what_is_added():
    curve = HistoryCurve("objective", "loss", [1e9 + 900, 1e9 + 100], 1)
    told = [tick.text for tick in history_chart(curve, "rounds").y_ticks]
    assert told == ["1G", "+200", "+400", "+600"]


@pytest.mark.parametrize("ends", [(1e-15, 1e3), (1e-300, 1e300), (5e-324, 1e308)])
def test_a_logarithmic_axis_has_few_ticks(ends):
    chart = history_chart(HistoryCurve("objective", "loss", list(ends), 1), "rounds")
    assert 3 <= len(chart.y_ticks) <= 7


def test_long_curves_are_thinned():
    values = [1.0 / (k + 1) for k in range(5000)]
    found = points(history_chart(HistoryCurve("objective", "loss", values, 4999), "rounds"))
    assert len(found) == MOST_POINTS
    assert (found[0][0], found[-1][0]) == (46, 350)


def test_bins_lie_where_they_belong():
    counted = Reliability(2)
    counted.add([0.75, 0.75], [True, False])
    chart = reliability_chart(counted)
    ((x, y, told),) = chart.dots
    assert x == pytest.approx(46 + 0.75 * (270 - 46))
    assert y == pytest.approx((10 + 248) / 2)
    assert told == "2 labels: probability 75.0 %, right 50.0 %"
