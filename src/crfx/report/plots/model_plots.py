"""Plots of a fitted model without data: learning curves and transitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crfx.estimators.base import counted_in
from crfx.report.description import HistoryCurve, history_curves, transition_table
from crfx.report.plots import drawing
from crfx.report.plots.drawing import INK, Target


def plot_history(
    model: Any, *, names: list[str] | None = None, log_scale: bool = False, path: Target = None
) -> Any:
    """Draw learning curves: the objective and, with an ``eval_set``, its metric, by round.

    A vertical line marks the round that early stopping has restored.

    Parameters
    ----------
    model : fitted estimator, or a dict of several by name
        Several share the axes.
    names : list of str, optional
        The entries of ``history_`` to draw, a panel each; None: objective and eval_metric.
    log_scale : bool, default False
        Draw the objective on a logarithmic axis.
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
    >>> figure = plot_history(crf)
    """
    models = _by_name(model)
    if not models:
        raise ValueError("there is no model to draw the history of")
    curves = {name: history_curves(each) for name, each in models.items()}
    panels = _panels(curves, names)
    counted = " or ".join(dict.fromkeys(map(counted_in, models.values())))
    figure = drawing.new_figure(7, 0.6 + 2.6 * len(panels))
    for number, panel in enumerate(panels, 1):
        axes = figure.add_subplot(len(panels), 1, number)
        for place, (name, by_entry) in enumerate(curves.items()):
            if panel in by_entry:
                _draw_curve(axes, by_entry[panel], place, drawing.plain(name))
        title = next(by_entry[panel].title for by_entry in curves.values() if panel in by_entry)
        drawing.dress(axes, counted, "", drawing.plain(title))
        axes.grid(alpha=0.25)
        axes.set_yscale("log" if log_scale and panel == "objective" else "linear")
        axes.xaxis.get_major_locator().set_params(integer=True)
        if len(models) > 1:
            axes.legend(frameon=True, framealpha=0.9, edgecolor="none")
    return drawing.save(figure, path)


def _by_name(model: Any) -> dict[str, Any]:
    return dict(model) if isinstance(model, Mapping) else {type(model).__name__: model}


def _panels(curves: Mapping[str, Any], names: list[str] | None) -> list[str]:
    known = list(dict.fromkeys(name for by_entry in curves.values() for name in by_entry))
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


def _draw_curve(axes: Any, curve: HistoryCurve, number: int, name: str) -> None:
    drawing.draw_line(axes, range(1, len(curve.values) + 1), curve.values, number, name)
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
    """Draw γ by round, the mean over nodes (Chen et al. 2015).

    γ is the factor by which the curvature of boosted trees exceeds that of independent positions.

    Parameters
    ----------
    model : fitted GBCRF or TreeCRF whose ``curvature`` has a γ, or a dict of several by name
    path : str or path, optional
        Write the figure to this file too (.png, .svg or .pdf).

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> from crfx import GBCRF
    >>> X, y = [np.array([[0.0], [1.0], [2.0]])] * 10, [["low", "middle", "high"]] * 10
    >>> figure = plot_gamma(GBCRF(2, n_jobs=1).fit(X, y))
    """
    for name, each in _by_name(model).items():
        if "gamma" not in history_curves(each):
            raise ValueError(
                f'{name} has no γ in its history: boosted trees with a curvature ("auto", '
                '"mixing", ...) note it'
            )
    return plot_history(model, names=["gamma"], path=path)


def plot_transitions(model: Any, *, edge_type: int | None = None, path: Target = None) -> Any:
    """Draw a heat map of the learned transitions: rows are labels before, columns labels after.

    Models of higher order have a row for every tuple of labels before.  Forbidden transitions are
    hatched.  With a base model (``init_model``) the table is the sum of both, or that of the last
    model, as the title says, if the edges of the base model are not a table.

    Parameters
    ----------
    model : fitted estimator that labels
    edge_type : int, optional
        The table to draw, if edges have types.
    path : str or path, optional
        Write the figure to this file too (.png, .svg or .pdf).

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If edges are not a table (``edges="linear"``, ``"trees"`` or None, and `TreeCRF`).

    Examples
    --------
    >>> from crfx import LinearCRF
    >>> from crfx.testing import make_task
    >>> X, y = make_task()
    >>> crf = LinearCRF(n_jobs=1).fit(X, y)
    >>> figure = plot_transitions(crf)
    """
    table = transition_table(model, edge_type)
    rows = [", ".join(map(str, row)) for row in table.rows]
    size = drawing.cell_size(len(table.columns))
    longest = max(len(str(name)) for name in [*rows, *table.columns])
    width = 1.6 + 0.09 * longest + size * len(table.columns)
    figure = drawing.new_figure(width, 1.2 + 0.09 * longest + 0.8 * size * len(rows))
    axes = figure.add_subplot()
    image = axes.imshow(
        table.values, cmap="PuOr_r", vmin=-table.largest, vmax=table.largest, aspect="auto"
    )
    drawing.draw_labels(axes, rows, table.columns)
    is_long = len(table.rows[0]) > 1
    forbidden = np.isnan(table.values)
    hatched = "hatched: forbidden by constraints" if forbidden.any() else ""
    title = "\n".join(filter(None, [table.note, hatched]))
    drawing.dress(
        axes, "label", "labels before, oldest first" if is_long else "label before", title
    )
    drawing.write_cells(axes, image, table.values, map(_one_digit, table.values.flat))
    _hatch(axes, forbidden)
    figure.colorbar(image, ax=axes, label="score", shrink=0.8)
    return drawing.save(figure, path)


def _one_digit(value: float) -> str:
    """Return a score with one digit after the point; nothing if the transition is forbidden."""
    return "" if np.isnan(value) else f"{value:.1f}".replace("-0.0", "0.0").replace("-", "−")


def _hatch(axes: Any, forbidden: Any) -> None:
    from matplotlib.patches import Rectangle

    for row, column in np.argwhere(forbidden):
        place = (column - 0.5, row - 0.5)
        axes.add_patch(
            Rectangle(place, 1, 1, facecolor="#e8e8e8", edgecolor="#999999", hatch="////", lw=0)
        )
