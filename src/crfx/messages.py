"""Messages for users: their values on one line, and warnings at a line of their code."""

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
    """Return the `repr` of a value on one line, cut after `LONGEST` characters."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # numbers of thousands of digits have no text
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


@contextmanager
def collected_warnings() -> Iterator[list[tuple[str, type[Warning]]]]:
    """Collect the warnings of crfx in a list during the context, to be shown elsewhere.

    It holds for this thread only, unlike `warnings.catch_warnings`.
    """
    messages: list[tuple[str, type[Warning]]] = []
    before = _COLLECTED.set(messages)
    try:
        yield messages
    finally:
        _COLLECTED.reset(before)


@contextmanager
def untold(is_silent: bool) -> Iterator[None]:
    """Suppress warnings during the context if ``is_silent``: another worker warns."""
    before = _SILENT.set(is_silent)
    try:
        yield
    finally:
        _SILENT.reset(before)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called crfx, however deep the call to this function is."""
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
