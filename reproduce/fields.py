"""Reading of TOML files field by field, with errors that name the place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_FOLDER_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


class Fields:
    """One part of a file, read field by field; a field that is not read is an error."""

    def __init__(self, content: Mapping[str, Any], place: str) -> None:
        self._content, self._unread, self.place = content, set(content), place

    def _take(self, name: str, default: Any) -> Any:
        self._unread.discard(name)
        return self._content.get(name, default)

    def _checked(self, name: str, default: Any, kind: type, words: str) -> Any:
        value = self._take(name, default)
        if value is None and default is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"{self.place}: {name} is {value!r}, not {words}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Text; without a default it must be there."""
        value = self._checked(name, default, str, "text")
        if value is None:
            raise ValueError(f"{self.place} has no {name}")
        return str(value)

    def number(self, name: str, default: int | None) -> int | None:
        """Return a whole number of 0 or more."""
        value: int | None = self._checked(name, default, int, "a whole number")
        if value is not None and value < 0:
            raise ValueError(f"{self.place}: {name} is {value}: it must be 0 or more")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        return bool(self._checked(name, default, bool, "true or false"))

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a table of plain values, by default empty."""
        value = self._checked(name, {}, dict, "a table")
        for key, entry in value.items():
            if not _is_plain(entry):
                raise ValueError(f"{self.place}: {name}.{key} is {entry!r}: no dates, please")
        return dict(value)

    def values(self, name: str, default: list[Any]) -> list[Any]:
        """Return a list."""
        return list(self._checked(name, default, list, "a list"))

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, by default empty."""
        values = self.values(name, [])
        if not all(isinstance(value, str) for value in values):
            raise ValueError(f"{self.place}: {name} is not a list of texts")
        return values

    def parts(self, name: str) -> list[Fields]:
        """Return a list of tables, by default empty, to be read in turn."""
        values = self.values(name, [])
        if not all(isinstance(value, dict) for value in values):
            raise ValueError(f"{self.place}: {name} is not a list of tables, [[{name}]]")
        return [Fields(value, f"{name}[{index}]") for index, value in enumerate(values)]

    def nothing_left(self) -> None:
        """Raise ValueError if there are fields that were not read."""
        if self._unread:
            raise ValueError(f"{self.place}: unknown {', '.join(sorted(self._unread))}")


def is_number(value: Any) -> bool:
    """Return whether a value is a number; True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_folder_name(name: str, what: str) -> None:
    """Raise where it cannot name a folder or a file everywhere."""
    if not _FOLDER_NAME.fullmatch(name):
        raise ValueError(f"{what} is {name!r}: use small letters, digits and hyphens")


def check_distinct(names: Sequence[str], what: str) -> None:
    """Raise where a name is there twice."""
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ValueError(f"{what} {name!r} is there twice")


def _is_plain(value: Any) -> bool:
    """Return whether JSON preserves a value."""
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, str | int | float | bool)
