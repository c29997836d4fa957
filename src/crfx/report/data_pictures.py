"""Pictures of a fitted model at work: what it mistakes, how sure it is, and of what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crfx.calibration import Reliability
from crfx.inputs.passed import one_instance
from crfx.report.confusion import confusion
from crfx.report.drawing import INK, PALETTE, dress, finished, new_figure
from crfx.report.heat_maps import cell_size, draw_labels, write_cells
from crfx.report.model_pictures import Target
from crfx.report.written_labels import Judged, WrittenLabels, as_instances, judged_instances
from crfx.tag_report import TagReport

_POSITIONS_A_ROW = 30
MOST_POSITIONS = 300
"""Of an instance in a picture; beyond that nobody reads it, and drawing takes minutes."""


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
    """Heat map of true labels (rows) and those that `predict` gives (columns).

    X, y and the rest are as for ``score``.  Numbers are counts; the colour is the share of the
    row, so that rare labels are seen too.  Beyond 60 labels there are colours alone.  Positions
    without a true label do not count.
    """
    report = TagReport()
    for own in _judged(model, X, y, lengths, parents, edge_types):
        report.add(own.true, own.found)
    accuracy = report.accuracy
    found = confusion(report, WrittenLabels(model).names)
    size = cell_size(len(found.labels))
    edge = 1.5 + 0.09 * max(map(len, found.labels)) + size * len(found.labels)
    figure = new_figure(edge + 0.8, edge)
    axes = figure.add_subplot()
    image = axes.imshow(found.shares, cmap="Blues", vmin=0, vmax=1)
    draw_labels(axes, found.labels, found.labels)
    dress(axes, "label found", "true label", f"accuracy {100 * accuracy:.2f} %")
    write_cells(axes, image, found.shares, map(_short, found.counts.ravel().tolist()))
    figure.colorbar(image, ax=axes, label="share of the true label", shrink=0.8)
    return finished(figure, path)


def _short(count: int) -> str:
    """At most four signs; nothing for none."""
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
    """Reliability diagram: of labels found with a probability, the share that is right.

    On the diagonal probabilities mean what they say; below it the model is too sure.  How many
    labels a bin has is drawn underneath.  The title has the expected calibration error
    (`crfx.calibration`).
    """
    counted = Reliability(n_bins)
    for own in _judged(model, X, y, lengths, parents, edge_types):
        known = np.array([label is not None for label in own.true], bool)
        counted.add(own.probabilities[known], right_positions(own)[known])
    error = counted.error()
    figure = new_figure(5, 5.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    bins = [each for each in counted.bins() if each.count]
    above.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="--", label="perfect")
    p, right = [each.probability for each in bins], [each.right for each in bins]
    above.vlines(p, p, right, color=PALETTE[1], linewidth=3, alpha=0.5, label="gap")
    above.plot(p, right, color=PALETTE[0], marker="o", linewidth=1.8, label="found")
    dress(above, "", "share that is right", f"expected calibration error {error:.4f}")
    above.set(xlim=(0, 1), ylim=(0, 1.02))
    above.grid(alpha=0.25)
    above.legend(loc="lower right", frameon=False)
    edges = [(each.low + each.high) / 2 for each in counted.bins()]
    counts = [each.count for each in counted.bins()]
    below.bar(edges, counts, width=0.9 / n_bins, color=PALETTE[0])
    below.set_yscale("symlog")
    dress(below, "probability of the label found", "labels")
    return finished(figure, path)


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
    """Heat map of one instance: the probability of every label (rows) at every position.

    ``X_i`` is one element of the list that `fit` takes; ``y_i`` are its true labels, marked by a
    dot, ``tokens`` words to write under the positions.  A frame marks the label found.  Cells
    below 0.005 are empty.  Long instances go on in further rows, up to 300 positions.
    """
    given = {"X": one_instance(X_i, "plot_marginals")}
    for name, own in (("parents", parents), ("edge_types", edge_types)):
        if own is not None:
            given[name] = [own]
    written = WrittenLabels(model)
    marginals = written.marginals(model.predict_marginals(**given)[0])
    found, length = written.found(model.predict(**given)[0]), len(marginals)
    if not length:
        raise ValueError("the instance has no positions to draw")
    if length > MOST_POSITIONS:
        raise ValueError(
            f"the instance has {length:,} positions, {MOST_POSITIONS} can be drawn: "
            "predict_marginals has the numbers of all"
        )
    true = None if y_i is None else written.true(list(y_i))
    for name, own in (("y_i", true), ("tokens", tokens)):
        if own is not None and len(own) != length:
            raise ValueError(f"{name} has {len(own)} entries, the instance has {length} positions")
    names = [str(at) if tokens is None else str(tokens[at]) for at in range(length)]
    figure, panels = _panels(written.names, names)
    for axes, rows in panels:
        image = _draw_marginals(axes, marginals[rows].T, written.names, names[rows])
        _mark(axes, written.names, found[rows], None if true is None else true[rows])
        axes.set_xlim(-0.5, min(length, _POSITIONS_A_ROW) - 0.5)
    told = "frame: the label found" + ("" if true is None else "; dot: the true one")
    figure.suptitle(told, color=INK, fontsize=9)
    figure.colorbar(image, ax=figure.axes, label="probability", aspect=30)
    return finished(figure, path)


def _panels(labels: Sequence[Any], names: Sequence[str]) -> tuple[Any, list[tuple[Any, slice]]]:
    """A figure with a panel for every row of positions, and which positions it has."""
    begins = range(0, len(names), _POSITIONS_A_ROW)
    width = 1.8 + 0.09 * max(len(str(label)) for label in labels)
    width += 0.5 * min(len(names), _POSITIONS_A_ROW)
    height = 0.8 + 0.55 * cell_size(len(labels)) * len(labels) + 0.075 * max(map(len, names))
    figure = new_figure(width, height * len(begins) + 0.4)
    return figure, [
        (figure.add_subplot(len(begins), 1, number), slice(begin, begin + _POSITIONS_A_ROW))
        for number, begin in enumerate(begins, 1)
    ]


def _draw_marginals(axes: Any, shares: Any, labels: Sequence[Any], names: Sequence[Any]) -> Any:
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    draw_labels(axes, labels, names)
    axes.spines[:].set_visible(False)
    write_cells(axes, image, shares, map(_two_digits, shares.flat))
    return image


def _two_digits(p: float) -> str:
    """After the point; nothing for what rounds to none."""
    if p >= 0.995:
        return "1.0"
    return f"{p:.2f}"[1:] if p >= 0.005 else ""


def _mark(axes: Any, labels: Sequence[Any], found: Sequence[Any], true: Any) -> None:
    from matplotlib.patches import Rectangle

    row_of = {label: row for row, label in enumerate(labels)}
    for at, label in enumerate(found):
        place = (at - 0.45, row_of[label] - 0.45)
        axes.add_patch(Rectangle(place, 0.9, 0.9, fill=False, edgecolor=PALETTE[1], lw=1.8))
    for at, label in enumerate(true or ()):
        if label in row_of:
            axes.plot(at + 0.33, row_of[label] - 0.3, "o", color="white", mec="black", ms=4)


def right_positions(own: Judged) -> Any:
    """(length,) whether the label found is the true one."""
    return np.array([a == b for a, b in zip(own.true, own.found, strict=True)], bool)


def _judged(
    model: Any, X: Any, y: Any, lengths: Any, parents: Any, edge_types: Any
) -> list[Judged]:
    given, labels = as_instances(model, X, y, lengths, parents, edge_types)
    return judged_instances(model, given, labels, WrittenLabels(model))
