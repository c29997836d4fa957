"""The one door to Jinja2, an extra (crfx[report]): from templates and values to a page.

Values are always escaped as text.  Characters that would break a page, or that cannot be written,
are replaced.
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
    """Return the page; ``values`` has all names that the template uses."""
    page: str = _environment().get_template(template).render(values)
    return page


def check_library() -> None:
    """Raise ImportError if Jinja2 is missing, before a long file is read."""
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
    """Return text for a page: control characters and lone surrogates are replaced."""
    if hasattr(value, "__html__"):
        return value
    text = str(value)  # labels need not be text
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(sign: str) -> str:
    kind = unicodedata.category(sign)
    return "\N{REPLACEMENT CHARACTER}" if kind in ("Cc", "Cs") and sign not in _SPACES else sign


def percent(share: float, digits: int = 2) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.{digits}f} %"


def signed(number: float, digits: int = 2) -> str:
    """Return a number with its sign; 0 has no sign."""
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    text = f"{number:+.{digits}f}"
    return f"{0:.{digits}f}" if float(text) == 0 else text.replace("-", "−")
