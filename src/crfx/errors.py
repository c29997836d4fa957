"""Errors about one instance of the data, with its place as fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace

_POSITIONS = {"instance": "position", "query": "document"}
_FROM_CORE = re.compile(r"instance (\d+)(?:, position (\d+))?: (.*)", re.DOTALL)


@dataclass(eq=False)
class BadInstance(ValueError):
    """An error about one instance, with its place and reason; `str` puts it into words.

    ``instance`` counts over all instances that were passed; ``position`` is None if the whole
    instance is meant.  ``file`` is the shard that it lies in, and ``argument`` the argument that it
    belongs to if that is not X.  ``unit`` is "instance" or, for rankings, "query".  In ``reason``,
    ``{other}`` stands for the instance ``other`` that this one is compared with.
    """

    instance: int
    reason: str
    position: int | None = None
    file: str | None = None
    argument: str | None = None
    unit: str = "instance"
    other: int = 0

    @property
    def place(self) -> str:
        """The place in words: "train/2.npz: instance 3, position 4"."""
        prefix = "".join(f"{name}: " for name in (self.argument, self.file) if name is not None)
        position = "" if self.position is None else f", {_POSITIONS[self.unit]} {self.position}"
        return f"{prefix}{self.unit} {self.instance}{position}"

    def __str__(self) -> str:
        reason = self.reason.replace("{other}", f"{self.unit} {self.other}")
        return f"{self.place}: {reason}"

    def __reduce__(self) -> tuple[type[BadInstance], tuple[object, ...]]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def after(self, n_before: int) -> BadInstance:
        """Return the error in which instances are counted with ``n_before`` more before them."""
        return replace(self, instance=self.instance + n_before, other=self.other + n_before)


def located(error: ValueError) -> ValueError:
    """Return an error of the compiled core, which writes the place into its text, as BadInstance.

    Other errors are returned as they are.
    """
    match = None if isinstance(error, BadInstance) else _FROM_CORE.fullmatch(str(error))
    if match is None:
        return error
    position = None if match[2] is None else int(match[2])
    return BadInstance(int(match[1]), match[3], position)


@contextmanager
def about(argument: object) -> Iterator[None]:
    """Name an argument, or a file, before the errors raised in the block."""
    try:
        yield
    except ValueError as error:
        error = located(error)
        if isinstance(error, BadInstance):
            inner = "" if error.argument is None else f": {error.argument}"
            raise replace(error, argument=f"{argument}{inner}") from None
        raise ValueError(f"{argument}: {error}") from None
