"""The one door to Jinja2, an extra (crfx[report]): from templates and values to a page.

Whatever a template is given is text: it is escaped, always.  Signs that would disturb a page, or
could not be written, are replaced.
"""

from __future__ import annotations

import math
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Any

_TEMPLATES = Path(__file__).parent / "templates"
_SPACES = "\t\n"


def render(template: str, values: dict[str, Any]) -> str:
    """Return the page; ``values`` are the names that the template uses, and all of them."""
    page: str = _environment().get_template(template).render(values)
    return page


def check_library() -> None:
    """Raise ImportError if Jinja2 is missing: better now than after a long file."""
    _environment()


@lru_cache(maxsize=1)
def _environment() -> Any:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise ImportError("the page needs Jinja2: pip install 'crfx[report]'") from None
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_written,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count="{:,}".format,
        hundredths=lambda share: f"{100 * share:.2f}",
        percent=percent,
        short=lambda number: "?" if number is None else f"{number:.4g}".replace("-", "−"),
        signed=signed,
    )
    return environment


def _written(value: Any) -> Any:
    """Return text that may stand in a page: control signs, and halves of signs, are replaced."""
    if hasattr(value, "__html__"):
        return value
    text = str(value)  # of a label that is no text, too
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(sign: str) -> str:
    kind = unicodedata.category(sign)
    return "\N{REPLACEMENT CHARACTER}" if kind in ("Cc", "Cs") and sign not in _SPACES else sign


def percent(share: float, digits: int = 2) -> str:
    """Return a share of 1 in percent."""
    return f"{100 * share:.{digits}f} %"


def signed(number: float, digits: int = 2) -> str:
    """Return a number with its sign; 0 has none."""
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    text = f"{number:+.{digits}f}"
    return f"{0:.{digits}f}" if float(text) == 0 else text.replace("-", "−")
