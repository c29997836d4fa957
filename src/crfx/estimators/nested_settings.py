"""Settings of an argument's own, such as ``objective__temperature``: reached as in scikit-learn.

Objectives, task losses and the like are frozen records, so a setting is changed by putting a
changed copy in the place of the old one: what other estimators hold stays as it is.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from crfx.messages import shown


def nested_settings(arguments: dict[str, Any]) -> dict[str, Any]:
    """The settings of arguments that are records, by names such as ``objective__temperature``."""
    return {
        f"{name}__{setting.name}": getattr(value, setting.name)
        for name, value in arguments.items()
        if _is_record(value)
        for setting in fields(value)
        if setting.init
    }


def with_nested(arguments: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """``given`` with every ``argument__setting`` put into the argument, one of ``arguments`` or
    of ``given`` itself.
    """
    plain = {name: value for name, value in given.items() if "__" not in name}
    for name, value in given.items():
        argument, separator, setting = name.partition("__")
        held: Any = plain.get(argument, arguments.get(argument))
        if not separator:
            continue
        if argument in arguments and not _is_record(held) and not hasattr(held, "set_params"):
            raise ValueError(
                f"{name} is given, but {argument} is {shown(held)}, which has no settings: pass an "
                f"object that has, such as objective=KL()"
            )
        if not _is_record(held):
            plain[name] = value  # scikit-learn knows what to do, or that there is no such argument
        elif setting not in {field.name for field in fields(held) if field.init}:
            raise ValueError(f"{name} is given, but {shown(held)} has no setting {setting!r}")
        else:
            plain[argument] = replace(held, **{setting: value})
    return plain


def _is_record(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)
