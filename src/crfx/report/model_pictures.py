"""Pictures of a fitted model alone: how it learned, and which transitions it likes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from crfx.estimators.base import counted_in
from crfx.report.curves import history_curves
from crfx.report.drawing import INK, draw_line, dress, finished, new_figure, plain
from crfx.report.heat_maps import cell_size, draw_labels, short, write_cells
from crfx.report.transition_table import transition_table

Target = str | os.PathLike[str] | None


def plot_history(
    model: Any, *, names: list[str] | None = None, log_scale: bool = False, path: Target = None
) -> Any:
    """Learning curves: the objective and, where there was an ``eval_set``, its metric, by round.

    Parameters
    ----------
    model : fitted estimator, or a mapping of names to several, which share the axes
    names : which entries of ``history_`` to draw, a panel each; by default objective, eval_metric
    log_scale : draw the objective on a logarithmic axis
    path : write the figure there too (.png, .svg or .pdf)

    A vertical line marks the round that early stopping went back to.  Returns the figure.
    """
    models = dict(model) if isinstance(model, Mapping) else {type(model).__name__: model}
    if not models:
        raise ValueError("there is no model to draw the history of")
    curves = {name: history_curves(own) for name, own in models.items()}
    panels = _panels(curves, names)
    figure = new_figure(7, 0.6 + 2.6 * len(panels))
    for number, panel in enumerate(panels, 1):
        axes = figure.add_subplot(len(panels), 1, number)
        for place, (name, own) in enumerate(curves.items()):
            if panel in own:
                _draw_curve(axes, own[panel], place, plain(name))
        title = next(own[panel].title for own in curves.values() if panel in own)
        dress(axes, _counted(models), "", plain(title))
        axes.grid(alpha=0.25)
        axes.set_yscale("log" if log_scale and panel == "objective" else "linear")
        axes.xaxis.get_major_locator().set_params(integer=True)
        if len(models) > 1:
            axes.legend(frameon=True, framealpha=0.9, edgecolor="none")
    return finished(figure, path)


def _panels(curves: Mapping[str, Any], names: list[str] | None) -> list[str]:
    known = list(dict.fromkeys(name for own in curves.values() for name in own))
    if names is None:
        names = [name for name in ("objective", "eval_metric") if name in known] or known
    for name in names:
        if name not in known:
            raise ValueError(
                f"no history has {name!r}: there are {', '.join(known) or 'no entries at all'}"
            )
    if not names:
        raise ValueError("the history is empty: the model was not trained here")
    return names


def _counted(models: Mapping[str, Any]) -> str:
    return " or ".join(dict.fromkeys(counted_in(own) for own in models.values()))


def _draw_curve(axes: Any, curve: Any, number: int, name: str) -> None:
    draw_line(axes, range(1, len(curve.values) + 1), curve.values, number, name)
    if curve.kept < len(curve.values) - 1:
        value = f" ({curve.at_kept:.4g})" if np.isfinite(curve.at_kept) else ""
        axes.axvline(curve.kept + 1, color=INK, linewidth=0.9, linestyle=(0, (2, 3)))
        axes.annotate(
            f"kept: {curve.kept + 1}{value}",
            (curve.kept + 1, 0.02 + 0.08 * number),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=8,
            color=INK,
        )


def plot_gamma(model: Any, *, path: Target = None) -> Any:
    """γ by round: how much larger the curvature of boosted trees is than that of independent
    positions, mean over nodes (Chen et al. 2015).

    ``model`` is a `GBCRF` or `TreeCRF` whose ``curvature`` has a γ, or a mapping of names to some.
    """
    models = dict(model) if isinstance(model, Mapping) else {type(model).__name__: model}
    for name, own in models.items():
        if "gamma" not in history_curves(own):
            raise ValueError(
                f'{name} has no γ in its history: boosted trees with a curvature ("auto", '
                '"mixing", ...) note it'
            )
    return plot_history(models, names=["gamma"], path=path)


def plot_transitions(model: Any, *, edge_type: int | None = None, path: Target = None) -> Any:
    """Heat map of the learned transitions: a row for the label before, a column for the one after.

    Models of higher order have a row for every tuple of labels before.  Forbidden transitions are
    hatched.  ``edge_type``: which table, where edges have types.  Of a model on another one
    (``init_model``) it is the sum of both; where the edges underneath are no table, that of the
    last model, and the title says so.  ValueError where edges are no table (``edges="linear"``,
    ``"trees"`` or None, and `TreeCRF`).
    """
    table = transition_table(model, edge_type)
    rows = [", ".join(map(str, row)) for row in table.rows]
    size = cell_size(len(table.columns))
    longest = max(len(str(name)) for name in [*rows, *table.columns])
    width = 1.6 + 0.09 * longest + size * len(table.columns)
    figure = new_figure(width, 1.2 + 0.09 * longest + 0.8 * size * len(rows))
    axes = figure.add_subplot()
    image = axes.imshow(
        table.values, cmap="PuOr_r", vmin=-table.largest, vmax=table.largest, aspect="auto"
    )
    draw_labels(axes, rows, table.columns)
    is_long = len(table.rows[0]) > 1
    forbidden = np.isnan(table.values)
    hatched = "hatched: forbidden by constraints" if forbidden.any() else ""
    title = "\n".join(filter(None, [table.note, hatched]))
    dress(axes, "label", "labels before, oldest first" if is_long else "label before", title)
    texts = ("" if np.isnan(value) else short(value) for value in table.values.flat)
    write_cells(axes, image, table.values, texts)
    _hatch(axes, forbidden)
    figure.colorbar(image, ax=axes, label="score", shrink=0.8)
    return finished(figure, path)


def _hatch(axes: Any, forbidden: Any) -> None:
    from matplotlib.patches import Rectangle

    for row, column in np.argwhere(forbidden):
        place = (column - 0.5, row - 0.5)
        axes.add_patch(
            Rectangle(place, 1, 1, facecolor="#e8e8e8", edgecolor="#999999", hatch="////", lw=0)
        )
