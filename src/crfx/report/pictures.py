"""Pictures of what was measured.  The one door to matplotlib, an extra: crfx[plot]."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

INK, PALETTE = "#222222", ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


class MissingPlotLibrary(ImportError):
    """matplotlib is not installed."""


def line_chart(
    path: str | os.PathLike[str],
    curves: Mapping[str, Sequence[float]],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    log_scale: bool = False,
) -> None:
    """Draw one line per curve over 1, 2, 3, ...; written whole or not at all."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPlotLibrary("pictures need matplotlib: pip install 'crfx[plot]'") from None
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for (name, values), colour in zip(curves.items(), PALETTE * len(curves), strict=False):
        axes.plot(range(1, len(values) + 1), values, label=name, color=colour, linewidth=1.8)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    axes.set_title(title, color=INK)
    axes.set_yscale("log" if log_scale else "linear")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if curves:
        axes.legend(frameon=True, framealpha=0.9, edgecolor="none")
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".png")
    os.close(handle)
    try:
        figure.savefig(name, dpi=150)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
