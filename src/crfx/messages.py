"""What users are told: their values on one line, and warnings at a line of theirs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LONGEST = 80
_COLLECTED: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar(
    "collected", default=None
)
_SILENT: ContextVar[bool] = ContextVar("silent", default=False)


def shown(value: object) -> str:
    """As Python writes it, cut after `LONGEST` characters."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # numbers of thousands of digits have no text
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


@contextmanager
def collected_warnings() -> Iterator[list[tuple[str, type[Warning]]]]:
    """What crfx warns of here, as long as it lasts, is put into a list: told where it helps.

    Of this thread alone; Python's own way is of all.
    """
    found: list[tuple[str, type[Warning]]] = []
    before = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(before)


@contextmanager
def untold(is_silent: bool) -> Iterator[None]:
    """Warn of nothing, as long as it lasts, where ``is_silent``: someone else does."""
    before = _SILENT.set(is_silent)
    try:
        yield
    finally:
        _SILENT.reset(before)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn where crfx was called, however deep in it the reason was found."""
    if _SILENT.get():
        return
    if (collected := _COLLECTED.get()) is not None:
        collected.append((message, category))
        return
    level, frame = 1, inspect.currentframe()  # level 1 is this line
    while frame is not None and frame.f_back is not None and _is_own(frame.f_globals):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_own(module: dict[str, object]) -> bool:
    return str(module.get("__name__")).partition(".")[0] == "crfx"
