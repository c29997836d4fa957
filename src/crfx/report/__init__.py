"""Takes a fitted model, gives plots and pages; comes after `estimators`, before nothing.

`plots` draws a model for print, `description` says in plain values what it is, and `page` is the
file that ``crfx report`` writes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crfx.report.page.labelling_page import write_page
    from crfx.report.plots.data_plots import plot_confusion, plot_marginals, plot_reliability
    from crfx.report.plots.model_plots import plot_gamma, plot_history, plot_transitions

__all__ = [
    "plot_confusion",
    "plot_gamma",
    "plot_history",
    "plot_marginals",
    "plot_reliability",
    "plot_transitions",
    "write_page",
]

# Imported when first asked for, as in crfx itself: commands answer at once.
_HOMES = {
    "plot_confusion": "crfx.report.plots.data_plots",
    "plot_gamma": "crfx.report.plots.model_plots",
    "plot_history": "crfx.report.plots.model_plots",
    "plot_marginals": "crfx.report.plots.data_plots",
    "plot_reliability": "crfx.report.plots.data_plots",
    "plot_transitions": "crfx.report.plots.model_plots",
    "write_page": "crfx.report.page.labelling_page",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
