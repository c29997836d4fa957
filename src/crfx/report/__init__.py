"""Takes a fitted model or a table of published figures, gives pictures and pages; comes after
`estimators`, before nothing.

Of a model: `model_pictures` and `data_pictures` draw it for print, `description` tells what it is,
`page` is the file that ``crfx report`` writes.

Of a table, a file ``reports/tables/<name>.toml`` (`tables`): its rows are made of units, a fold or
a test set each, which the functions in `experiments` compute; `runner` runs those that are missing,
`results` keeps each in a file of its own, `render` writes the page and `plots` its pictures from
these files alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crfx.report.data_pictures import plot_confusion, plot_marginals, plot_reliability
    from crfx.report.model_pictures import plot_gamma, plot_history, plot_transitions
    from crfx.report.page.writing import write_page

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
    "plot_confusion": "crfx.report.data_pictures",
    "plot_gamma": "crfx.report.model_pictures",
    "plot_history": "crfx.report.model_pictures",
    "plot_marginals": "crfx.report.data_pictures",
    "plot_reliability": "crfx.report.data_pictures",
    "plot_transitions": "crfx.report.model_pictures",
    "write_page": "crfx.report.page.writing",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
