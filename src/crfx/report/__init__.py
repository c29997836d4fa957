"""Takes a fitted model, gives plots and pages; comes after `estimators`, before nothing.

`plots` draws a model for print, `description` says in plain values what it is, and `page` is the
file that ``crfx report`` writes.
"""

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
