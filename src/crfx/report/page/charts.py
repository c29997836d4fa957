"""Charts as coordinates for SVG, and tables of coloured cells; templates draw them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.calibration import Reliability
from crfx.report.description import HistoryCurve, TransitionTable
from crfx.report.page.templating import signed
from crfx.report.written_labels import row_shares

WIDTH, HEIGHT = 360.0, 200.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 10.0, 10.0, 32.0
MOST_POINTS = 240
"""Points of a line: more cannot be distinguished at this width."""
LARGE_RANGE = 30
"""Ratio of the greatest to the least value beyond which an axis is logarithmic."""
_MOST_HEAT = 52.0
"""Percentage of colour at which text stays readable, on light and on dark pages."""
_SIZES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: its coordinate and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Chart:
    """One line with its axes: ``points`` and ``dots`` are in SVG's coordinates."""

    caption: str
    x_label: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    points: str
    width: float = WIDTH
    height: float = HEIGHT
    dots: tuple[tuple[float, float, str], ...] = ()
    kept: Tick | None = None
    diagonal: str = ""


@dataclass(frozen=True)
class _Scale:
    """A map from numbers to coordinates."""

    low: float
    high: float
    begin: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, value, high = (
            math.log(each) if self.is_log else each for each in (self.low, value, self.high)
        )
        share = (value / 2 - low / 2) / ((high / 2 - low / 2) or 1.0)  # halves do not overflow
        return round(self.begin + share * (self.end - self.begin), 2)

    def ticks(self, most: int, *, whole: bool = False) -> list[Tick]:
        """Return round numbers between both ends, about ``most`` of them."""
        marks = self._powers(most) if self.is_log else self._steps(most, whole)
        texts = [_compact(at) for at in marks]
        if len(set(texts)) < len(texts):  # they differ in later digits: show the differences
            texts[1:] = [f"+{_compact(at - marks[0])}" for at in marks[1:]]
        return [Tick(self(at), text) for at, text in zip(marks, texts, strict=True)]

    def _powers(self, most: int) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.floor(math.log10(self.high))
        factors = (1, 2, 5) if last - first < most / 2 else (1,)
        powers = range(first, last + 1, math.ceil((last - first + 1) / most))
        marks = [k * 10.0**power for power in powers for k in factors]
        return [at for at in marks if self.low <= at <= self.high]

    def _steps(self, most: int, whole: bool) -> list[float]:
        step = _round_step(self.high / most - self.low / most, whole=whole)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def _compact(value: float) -> str:
    """Return a short text for a number beside an axis."""
    text = f"{value:.6g}"
    if 1e4 <= abs(value) < 1e13:
        size, sign = next(pair for pair in _SIZES if abs(value) >= pair[0])
        text = f"{value / size:g}{sign}"
    return text.replace("e+", "e").replace("-", "−")


def _number_in_text(value: float) -> str:
    """Return the text of a number for a sentence."""
    return (f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}").replace("-", "−")


def _round_step(step: float, *, whole: bool) -> float:
    """Return the next larger of 1, 2 and 5 times a power of ten."""
    if not step > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(step))
    rounded = next(k * power for k in (1, 2, 5, 10) if k * power >= step * (1 - 1e-9))
    return max(rounded, 1.0) if whole else rounded


def history_chart(curve: HistoryCurve, counted: str) -> Chart:
    """Return the chart of a training curve over rounds."""
    values = np.array(curve.values)
    finite = np.flatnonzero(np.isfinite(values))
    chosen = finite[np.unique(np.linspace(0, len(finite) - 1, MOST_POINTS).astype(int))]
    low, high = float(values[chosen].min()), float(values[chosen].max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    x = _Scale(1, max(len(values), 2), LEFT, WIDTH - RIGHT)
    is_log = low > 0 and high > LARGE_RANGE * low
    y = _Scale(low, high, HEIGHT - BOTTOM, TOP, is_log)
    ends = [_number_in_text(float(values[finite[at]])) for at in (0, -1)]
    caption = f"{curve.title}: {ends[0]} at first, {ends[1]} at last"
    kept = None
    if curve.kept < len(values) - 1:
        kept = Tick(x(curve.kept + 1), f"kept: {curve.kept + 1}")
        caption += f", {kept.text}"
        if math.isfinite(curve.at_kept):
            caption += f" ({_number_in_text(curve.at_kept)})"
    if is_log:
        caption += " (logarithmic axis)"
    points = " ".join(f"{x(at + 1)},{y(values[at])}" for at in chosen.tolist())
    return Chart(caption, counted, x.ticks(5, whole=True), y.ticks(6), points, kept=kept)


def reliability_chart(counted: Reliability) -> Chart:
    """Return the chart of the share of right labels by probability, with a dot for every bin."""
    size = 280.0
    x = _Scale(0, 1, LEFT, size - RIGHT)
    y = _Scale(0, 1, size - BOTTOM, TOP)
    bins = [each for each in counted.bins() if each.count]
    dots = []
    for each in bins:
        shares = f"probability {100 * each.probability:.1f} %, right {100 * each.right:.1f} %"
        dots.append((x(each.probability), y(each.right), f"{each.count:,} labels: {shares}"))
    return Chart(
        f"expected calibration error {counted.error():.4f}; the table has the numbers",
        "probability of the label found",
        x.ticks(5),
        y.ticks(5),
        " ".join(f"{at},{height}" for at, height, _ in dots),
        size,
        size,
        tuple(dots),
        diagonal=f"{x(0)},{y(0)} {x(1)},{y(1)}",
    )


CellTable = dict[str, list[Any]]
"""``columns`` are names; ``rows`` are pairs of a name and cells.

A cell has ``text``, ``heat``, the percentage of colour, and ``kind``, a class of the style sheet.
"""


def confusion_cells(labels: list[str], counts: npt.NDArray[np.int64]) -> CellTable:
    """Return counts, coloured by their share of the row; the diagonal is what is right."""
    heat = (_MOST_HEAT * np.sqrt(row_shares(counts))).tolist()
    rows = []
    for row, name in enumerate(labels):
        cells = [
            {
                "text": f"{count:,}" if count else "",
                "heat": round(heat[row][column], 1),
                "kind": "right" if column == row else "wrong",
            }
            for column, count in enumerate(counts[row].tolist())
        ]
        rows.append((name, cells))
    return {"columns": labels, "rows": rows}


def transition_cells(table: TransitionTable) -> CellTable:
    """Return scores, coloured by sign and size; forbidden transitions are a dash."""
    rows = [
        (" ".join(map(str, row)), [_transition(score, table.largest) for score in scores])
        for row, scores in zip(table.rows, table.values.tolist(), strict=True)
    ]
    return {"columns": [str(name) for name in table.columns], "rows": rows}


def _transition(score: float, largest: float) -> dict[str, Any]:
    if np.isnan(score):
        return {"text": "–", "heat": 0.0, "kind": "never"}
    heat = round(_MOST_HEAT * abs(score) / largest, 1)
    return {"text": signed(score, 1), "heat": heat, "kind": "plus" if score >= 0 else "minus"}
