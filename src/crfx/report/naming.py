"""Objects that users pass, in words."""

from __future__ import annotations

import re
from typing import Any

_PLACE_IN_MEMORY = re.compile(r" at 0x[0-9a-fA-F]+")


def called(value: Any) -> str:
    """In one line: text as it is, functions and classes by their names, the rest as Python shows
    it, but for places in memory.
    """
    if isinstance(value, str):
        return value
    name = getattr(value, "__name__", None) or _PLACE_IN_MEMORY.sub("", repr(value))
    return " ".join(str(name).split())
