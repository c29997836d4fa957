"""Plots of a fitted model on data: confusion, reliability and marginals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crfx.calibration import Reliability
from crfx.inputs.passed import one_instance
from crfx.report.plots import drawing
from crfx.report.plots.drawing import INK, PALETTE, Target
from crfx.report.written_labels import (
    Judged,
    WrittenLabels,
    as_instances,
    confusion,
    judged_instances,
    predicted_instances,
    row_shares,
)
from crfx.tag_report import TagReport

_POSITIONS_A_ROW = 30
MOST_POSITIONS = 300
"""Limit for an instance in a plot: more is not legible, and drawing it takes minutes."""


def plot_confusion(
    model: Any,
    X: Any,
    y: Any,
    *,
    lengths: Any = None,
    parents: Any = None,
    edge_types: Any = None,
    path: Target = None,
) -> Any:
    """Draw a heat map of true labels (rows) and predicted labels (columns).

    Numbers are counts; the colour is the share of the row, so that rare labels are visible too.
    Beyond 60 labels there are only colours.

    Parameters
    ----------
    model : fitted estimator that labels
    X, y, lengths, parents, edge_types
        As in its ``score``; positions without a true label do not count.
    path : str or path, optional
        Write the figure to this file too (.png, .svg or .pdf).

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from crfx import LinearCRF
    >>> from crfx.testing import make_task
    >>> X, y = make_task()
    >>> crf = LinearCRF(n_jobs=1).fit(X, y)
    >>> figure = plot_confusion(crf, X, y)
    """
    report = TagReport()
    for judged in _judged(model, X, y, lengths, parents, edge_types):
        report.add(judged.true, judged.predicted)
    accuracy = report.accuracy  # raises if no label is known
    labels, counts = confusion(report, WrittenLabels(model).names)
    shares = row_shares(counts)
    edge = 1.5 + 0.09 * max(map(len, labels)) + drawing.cell_size(len(labels)) * len(labels)
    figure = drawing.new_figure(edge + 0.8, edge)
    axes = figure.add_subplot()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    drawing.draw_labels(axes, labels, labels)
    drawing.dress(axes, "label found", "true label", f"accuracy {100 * accuracy:.2f} %")
    drawing.write_cells(axes, image, shares, map(_short, counts.ravel().tolist()))
    figure.colorbar(image, ax=axes, label="share of the true label", shrink=0.8)
    return drawing.save(figure, path)


def _short(count: int) -> str:
    """Return a count in at most four characters; empty for 0."""
    if count < 10_000:
        return str(count) if count else ""
    return f"{count / 1e3:.0f}k" if count < 1e6 else f"{count / 1e6:.0f}M"


def plot_reliability(
    model: Any,
    X: Any,
    y: Any,
    *,
    lengths: Any = None,
    parents: Any = None,
    edge_types: Any = None,
    n_bins: int = 10,
    path: Target = None,
) -> Any:
    """Draw a reliability diagram: the share of right labels by their probability.

    Probabilities are calibrated on the diagonal and too high below it.  The panel below shows the
    number of labels of each bin, the title the expected calibration error (`crfx.calibration`).

    Parameters
    ----------
    model : fitted estimator that labels
    X, y, lengths, parents, edge_types
        As in its ``score``; positions without a true label do not count.
    n_bins : int, default 10
        Bins of equal width.
    path : str or path, optional
        Write the figure to this file too (.png, .svg or .pdf).

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from crfx import LinearCRF
    >>> from crfx.testing import make_task
    >>> X, y = make_task()
    >>> crf = LinearCRF(n_jobs=1).fit(X, y)
    >>> figure = plot_reliability(crf, X, y)
    """
    counted = Reliability(n_bins)
    for judged in _judged(model, X, y, lengths, parents, edge_types):
        counted.add(judged.probabilities[judged.known], ~judged.wrong[judged.known])
    error = counted.error()
    figure = drawing.new_figure(5, 5.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    bins = [each for each in counted.bins() if each.count]
    above.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="--", label="perfect")
    p, right = [each.probability for each in bins], [each.right for each in bins]
    above.vlines(p, p, right, color=PALETTE[1], linewidth=3, alpha=0.5, label="gap")
    above.plot(p, right, color=PALETTE[0], marker="o", linewidth=1.8, label="found")
    drawing.dress(above, "", "share that is right", f"expected calibration error {error:.4f}")
    above.set(xlim=(0, 1), ylim=(0, 1.02))
    above.grid(alpha=0.25)
    above.legend(loc="lower right", frameon=False)
    middles = [(each.low + each.high) / 2 for each in counted.bins()]
    counts = [each.count for each in counted.bins()]
    below.bar(middles, counts, width=0.9 / n_bins, color=PALETTE[0])
    below.set_yscale("symlog")
    drawing.dress(below, "probability of the label found", "labels")
    return drawing.save(figure, path)


def plot_marginals(
    model: Any,
    X_i: Any,
    y_i: Sequence[Any] | None = None,
    *,
    tokens: Sequence[Any] | None = None,
    parents: Any = None,
    edge_types: Any = None,
    path: Target = None,
) -> Any:
    """Draw a heat map of one instance: the probability of every label (rows) at every position.

    A frame marks the predicted label.  Cells below 0.005 are empty.  Long instances continue in
    further rows, up to 300 positions.

    Parameters
    ----------
    model : fitted estimator that labels
    X_i : (length, features) array, or a list of dicts or texts
        One instance: an entry of the list that ``fit`` takes.
    y_i : list of labels, optional
        Its true labels, marked by a dot.
    tokens : list, optional
        Words to write below the positions.
    parents, edge_types : optional
        Those of the instance.
    path : str or path, optional
        Write the figure to this file too (.png, .svg or .pdf).

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from crfx import LinearCRF
    >>> from crfx.testing import make_task
    >>> X, y = make_task()
    >>> crf = LinearCRF(n_jobs=1).fit(X, y)
    >>> figure = plot_marginals(crf, X[0], y[0])
    """
    structure = {"parents": parents, "edge_types": edge_types}
    arguments = {name: [part] for name, part in structure.items() if part is not None}
    arguments["X"] = one_instance(X_i, "plot_marginals")
    written = WrittenLabels(model)
    ((predicted, marginals, _),) = predicted_instances(model, arguments, written)
    length = len(marginals)
    if not length:
        raise ValueError("the instance has no positions to draw")
    if length > MOST_POSITIONS:
        raise ValueError(
            f"the instance has {length:,} positions, {MOST_POSITIONS} can be drawn: "
            "predict_marginals has the numbers of all"
        )
    true = None if y_i is None else written.true(list(y_i))
    for name, entries in (("y_i", true), ("tokens", tokens)):
        if entries is not None and len(entries) != length:
            raise ValueError(
                f"{name} has {len(entries)} entries, the instance has {length} positions"
            )
    names = [str(at) if tokens is None else str(tokens[at]) for at in range(length)]
    figure, panels = _panels(written.names, names)
    for axes, rows in panels:
        image = _draw_marginals(axes, marginals[rows].T, written.names, names[rows])
        _mark(axes, written.names, predicted[rows], None if true is None else true[rows])
        axes.set_xlim(-0.5, min(length, _POSITIONS_A_ROW) - 0.5)
    title = "frame: the label found" + ("" if true is None else "; dot: the true one")
    figure.suptitle(title, color=INK, fontsize=9)
    figure.colorbar(image, ax=figure.axes, label="probability", aspect=30)
    return drawing.save(figure, path)


def _panels(labels: Sequence[Any], names: Sequence[str]) -> tuple[Any, list[tuple[Any, slice]]]:
    """Return a figure and, for every row of positions, its axes and the positions."""
    begins = range(0, len(names), _POSITIONS_A_ROW)
    width = 1.8 + 0.09 * max(len(str(label)) for label in labels)
    width += 0.5 * min(len(names), _POSITIONS_A_ROW)
    height = (
        0.8 + 0.55 * drawing.cell_size(len(labels)) * len(labels) + 0.075 * max(map(len, names))
    )
    figure = drawing.new_figure(width, height * len(begins) + 0.4)
    return figure, [
        (figure.add_subplot(len(begins), 1, number), slice(begin, begin + _POSITIONS_A_ROW))
        for number, begin in enumerate(begins, 1)
    ]


def _draw_marginals(axes: Any, shares: Any, labels: Sequence[Any], names: Sequence[Any]) -> Any:
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    drawing.draw_labels(axes, labels, names)
    axes.spines[:].set_visible(False)
    drawing.write_cells(axes, image, shares, map(_two_digits, shares.flat))
    return image


def _two_digits(p: float) -> str:
    """Return the digits after the point; empty for 0."""
    if p >= 0.995:
        return "1.0"
    return f"{p:.2f}"[1:] if p >= 0.005 else ""


def _mark(axes: Any, labels: Sequence[Any], predicted: Sequence[Any], true: Any) -> None:
    from matplotlib.patches import Rectangle

    row_of = {label: row for row, label in enumerate(labels)}
    for at, label in enumerate(predicted):
        place = (at - 0.45, row_of[label] - 0.45)
        axes.add_patch(Rectangle(place, 0.9, 0.9, fill=False, edgecolor=PALETTE[1], lw=1.8))
    for at, label in enumerate(true or ()):
        if label in row_of:
            axes.plot(at + 0.33, row_of[label] - 0.3, "o", color="white", mec="black", ms=4)


def _judged(
    model: Any, X: Any, y: Any, lengths: Any, parents: Any, edge_types: Any
) -> list[Judged]:
    arguments, labels = as_instances(model, X, y, lengths, parents, edge_types)
    return judged_instances(model, arguments, labels, WrittenLabels(model))
