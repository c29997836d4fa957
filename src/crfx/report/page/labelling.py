"""What the page of a model that labels says."""

from __future__ import annotations

from typing import Any

from crfx.estimators.base import counted_in
from crfx.report.confusion import Confusion, confusion
from crfx.report.curves import history_curves
from crfx.report.description import describe, told_time
from crfx.report.page.cells import CellTable, confusion_cells, transition_cells
from crfx.report.page.charts import history_chart, reliability_chart
from crfx.report.page.judging import Judgement
from crfx.report.page.sequences import shown_sequence
from crfx.report.page.templating import percent, render
from crfx.report.transition_table import transition_tables

MOST_MISTAKES = 10
TOP = 15
"""Features and transitions that are listed."""
FEW_LABELS = 12
"""So many are shown without being asked for."""


def labelling_page(model: Any, judgement: Judgement, names: dict[str, str]) -> str:
    """The page, as text; ``names`` are those of title, model, file, version and date."""
    report, written = judgement.report, judgement.written
    found = confusion(report, written.names)
    tables, no_table = _transitions(model)
    spans = {"all types": report.span(), **report.spans()} if report.has_spans() else {}
    return render(
        "labelling.html",
        {
            **model_values(model),
            **names,
            "figures": _figures(judgement),
            "report": report,
            "spans": spans,
            "confusion": confusion_cells(found),
            "is_small": len(found.labels) <= FEW_LABELS,
            "mistakes": _mistakes(found),
            "worst": [shown_sequence(model, kept, written) for kept in judgement.worst()],
            "uncertain": [shown_sequence(model, kept, written) for kept in judgement.uncertain()],
            "reliability": reliability_chart(judgement.reliability),
            "bins": judgement.reliability.bins(),
            "calibration_error": judgement.reliability.error(),
            "transitions": tables,
            "no_transitions": no_table,
            "scheme_note": written.note,
        },
    )


def model_values(model: Any) -> dict[str, Any]:
    """What pages of all models say of the model itself."""
    curves = [curve for curve in history_curves(model).values() if len(set(curve.values)) > 1]
    described = describe(model, TOP)
    return {
        "described": described,
        "time": told_time(described["training"]),
        "charts": [history_chart(curve, counted_in(model)) for curve in curves],
    }


def _figures(judgement: Judgement) -> list[tuple[str, str, str]]:
    """(name, number, what it is) of what is read first."""
    report = judgement.report
    found = []
    if report.has_spans():
        span = report.span()
        told = f"precision {percent(span.precision)}, recall {percent(span.recall)}"
        found.append(("F1 of spans", percent(span.f1), told))
    wrong = report.n_tokens - round(report.accuracy * report.n_tokens)
    found.append(
        ("Labels right", percent(report.accuracy), f"{wrong:,} of {report.n_tokens:,} wrong")
    )
    share = judgement.n_right / max(judgement.n_judged, 1)
    told = f"{judgement.n_right:,} of {judgement.n_judged:,}"
    if judgement.n_judged < judgement.n_sequences:
        told += " with a known label"
    found.append(("Sequences all right", percent(share), told))
    error = f"{judgement.reliability.error():.4f}"
    found.append(("Calibration error", error, "expected; 0 is perfect"))
    return found


def _mistakes(found: Confusion) -> list[tuple[str, str, int, float]]:
    """(true, found, how often, share of the true label) of the most frequent ones."""
    entries = [
        (true, other, int(found.counts[row, column]), float(found.shares[row, column]))
        for row, true in enumerate(found.labels)
        for column, other in enumerate(found.labels)
        if row != column and found.counts[row, column]
    ]
    return sorted(entries, key=lambda entry: (-entry[2], entry[:2]))[:MOST_MISTAKES]


def _transitions(model: Any) -> tuple[dict[str, CellTable], str]:
    """The tables by their titles, or why there is none to be shown."""
    try:
        tables = transition_tables(model)
    except ValueError as error:
        return {}, str(error)
    return {title: transition_cells(table) for title, table in tables.items()}, ""
