"""The page of a model that labels, and `write_page`, which writes it from Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.estimators.base import counted_in
from crfx.io.whole_file import whole_text
from crfx.report.description import describe, history_curves, training_time, transition_tables
from crfx.report.page.charts import (
    CellTable,
    confusion_cells,
    history_chart,
    reliability_chart,
    transition_cells,
)
from crfx.report.page.sequences import Instance, Judgement, shown_sequence
from crfx.report.page.templating import check_library, percent, render
from crfx.report.written_labels import (
    arguments_of_one,
    as_instances,
    confusion,
    judged_instances,
    row_shares,
)

MOST_MISTAKES = 10
TOP = 15
"""Features and transitions that are listed."""
FEW_LABELS = 12
"""Up to this number the confusion of labels is shown unfolded."""


def write_page(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    lengths: Any = None,
    parents: Any = None,
    edge_types: Any = None,
    tokens: Sequence[Sequence[Any]] | None = None,
    n_shown: int = 5,
    title: str | None = None,
) -> None:
    """Write the report page of a fitted model and labelled data, whole or not at all.

    ``crfx report`` does the same for files, also for models that rank.  Needs Jinja2:
    ``pip install 'crfx[report]'``.

    Parameters
    ----------
    model : estimator
        A fitted estimator that labels.
    X, y, lengths, parents, edge_types
        As in its ``fit``; unknown labels do not count.
    path : str or path
        The HTML file to write.
    tokens : list of lists, optional
        Names of the positions, such as words; by default numbers.
    n_shown : int
        The number of sequences with most mistakes, and of uncertain ones, that are shown.
    title : str, optional
        Title of the page; by default the name of the class.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crfx import LinearCRF
    >>> from crfx.testing import make_task
    >>> X, y = make_task()
    >>> crf = LinearCRF(n_jobs=1).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(crf, X, y, Path(folder) / "report.html")
    """
    check_library()
    if not hasattr(model, "predict_marginals"):
        raise ValueError(
            f"{type(model).__name__} does not label: write_page is for models that do; "
            "`crfx report` has a page for those that rank"
        )
    arguments, labels = as_instances(model, X, y, lengths, parents, edge_types)
    words = [None] * len(labels) if tokens is None else _words(tokens, labels)
    judgement = Judgement(model, n_shown)
    for at, judged in enumerate(judged_instances(model, arguments, labels, judgement.written)):
        judgement.add(judged, partial(_instance, arguments, at, words[at]))
    if not judgement.report.n_tokens:
        raise ValueError("y has no label that is known: there is nothing to report")
    name = type(model).__name__
    text = labelling_page(model, judgement, page_names(title or name, "model", "data"))
    with whole_text(path) as file:
        file.write(text)


def labelling_page(model: Any, judgement: Judgement, names: dict[str, str]) -> str:
    """Return the page as text; ``names`` are those of title, model, file, version and date."""
    report, written = judgement.report, judgement.written
    labels, counts = confusion(report, written.names)
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
            "confusion": confusion_cells(labels, counts),
            "is_small": len(labels) <= FEW_LABELS,
            "mistakes": _mistakes(labels, counts),
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
    """Return the values about the model itself, which pages of all models show."""
    curves = [curve for curve in history_curves(model).values() if len(set(curve.values)) > 1]
    described = describe(model, TOP)
    return {
        "described": described,
        "time": training_time(described["training"]),
        "charts": [history_chart(curve, counted_in(model)) for curve in curves],
    }


def _figures(judgement: Judgement) -> list[tuple[str, str, str]]:
    """Return (name, number, explanation) of the figures at the top of the page."""
    report = judgement.report
    figures = []
    if report.has_spans():
        span = report.span()
        parts = f"precision {percent(span.precision)}, recall {percent(span.recall)}"
        figures.append(("F1 of spans", percent(span.f1), parts))
    n_wrong = report.n_tokens - round(report.accuracy * report.n_tokens)
    share = judgement.n_right / max(judgement.n_judged, 1)
    n_right = f"{judgement.n_right:,} of {judgement.n_judged:,}"
    if judgement.n_judged < judgement.n_sequences:
        n_right += " with a known label"
    return [
        *figures,
        ("Labels right", percent(report.accuracy), f"{n_wrong:,} of {report.n_tokens:,} wrong"),
        ("Sequences all right", percent(share), n_right),
        ("Calibration error", f"{judgement.reliability.error():.4f}", "expected; 0 is perfect"),
    ]


def _mistakes(
    labels: list[str], counts: npt.NDArray[np.int64]
) -> list[tuple[str, str, int, float]]:
    """Return (true, predicted, count, share of the true label) of the most frequent mistakes."""
    shares = row_shares(counts)
    entries = [
        (labels[row], labels[column], int(counts[row, column]), float(shares[row, column]))
        for row, column in np.argwhere(counts)
        if row != column
    ]
    return sorted(entries, key=lambda entry: (-entry[2], entry[:2]))[:MOST_MISTAKES]


def _transitions(model: Any) -> tuple[dict[str, CellTable], str]:
    """Return the tables by their titles, or the reason why there are none."""
    try:
        tables = transition_tables(model)
    except ValueError as error:
        return {}, str(error)
    return {title: transition_cells(table) for title, table in tables.items()}, ""


def page_names(title: str, model_file: str, data_file: str) -> dict[str, str]:
    """Return the title, the files that a page is about, the version of crfx and the date."""
    return {
        "title": title,
        "model_file": model_file,
        "data_file": data_file,
        "version": version("crfx"),
        "date": date.today().isoformat(),
    }


def _words(tokens: Sequence[Sequence[Any]], labels: Sequence[Sequence[Any]]) -> list[Any]:
    if len(tokens) != len(labels):
        raise ValueError(f"tokens has {len(tokens)} sequences and y {len(labels)}")
    for at, (words, positions) in enumerate(zip(tokens, labels, strict=True)):
        if len(words) != len(positions):
            raise ValueError(
                f"tokens[{at}] has {len(words)} entries and sequence {at} "
                f"{len(positions)} positions"
            )
    return [list(map(str, words)) for words in tokens]


def _instance(arguments: dict[str, Any], at: int, words: list[str] | None) -> Instance:
    return arguments_of_one(arguments, at), words, ""
