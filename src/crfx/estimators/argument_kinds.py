"""The kinds of values that arguments of estimators may have.

What is heavy is imported when an argument is checked: the help of commands must answer at once.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

from crfx.messages import shown

MOST_INT = 2**31 - 1
"""The largest number that XGBoost, and 32-bit column numbers, can hold."""


class Kind(ABC):
    """The values that an argument may have."""

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError, with the name of the argument, unless its value is of this kind."""
        if (fault := self._fault(value)) is not None:
            raise ValueError(f"{name} is {shown(value)}: {fault}")

    @abstractmethod
    def _fault(self, value: Any) -> str | None:
        """Return what the value must be instead, None where it is valid; or raise ValueError."""


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number from ``least`` to ``most``, which may be the name of a constant."""

    least: int
    most: int | str | None = None
    hint: str = ""
    is_flag: bool = False
    """True and False are taken as 1 and 0."""

    def _fault(self, value: Any) -> str | None:
        if self.is_flag and isinstance(value, bool):
            return None
        if not is_number(value, whole=True) or value < self.least:
            return f"it must be a whole number of {self.least} or more{self.hint}"
        most = _imported()[self.most] if isinstance(self.most, str) else self.most
        if most is None or value <= most:
            return None
        return "it must be below 2**31" if most == MOST_INT else f"it must be at most {most}"


@dataclass(frozen=True)
class Number(Kind):
    """A number up to ``most`` for which a condition holds; ``must`` states it in words."""

    must: str
    holds: Callable[[float], bool]
    most: float = inf

    def _fault(self, value: Any) -> str | None:
        if not is_number(value) or not self.holds(value):
            return f"it must {self.must}"
        return f"it must be at most {self.most:g}" if value > self.most else None


class Choice(Kind):
    """One of some names; None may be one of them."""

    def __init__(self, *choices: str | None) -> None:
        self.choices = choices

    def _fault(self, value: Any) -> str | None:
        # Not `in` alone, which asks arrays and data frames whether they are equal.
        if (value is None or isinstance(value, str)) and value in self.choices:
            return None
        return f"choose one of {', '.join(map(repr, self.choices))}"


class Flag(Kind):
    """True or False."""

    def _fault(self, value: Any) -> str | None:
        import numpy as np

        return None if isinstance(value, bool | np.bool_) else "it must be True or False"


@dataclass(frozen=True)
class Read(Kind):
    """Whatever a function takes without a ValueError; ``by`` is it, or its name."""

    by: Callable[[Any], Any] | str

    def _fault(self, value: Any) -> None:
        read = _imported()[self.by] if isinstance(self.by, str) else self.by
        read(value)


@dataclass(frozen=True)
class OrNone(Kind):
    """None, or a value of another kind."""

    kind: Kind

    def _fault(self, value: Any) -> str | None:
        fault = None if value is None else self.kind._fault(value)
        return fault and f"{fault}, or None"


@dataclass(frozen=True)
class Usual(OrNone):
    """A value of another kind, or None for the usual one, which may depend on other arguments.

    With ``only``, it must be None unless the argument named there has one of the values.
    """

    usual: Any | Callable[[Mapping[str, Any]], Any]
    only: tuple[str, tuple[str, ...]] | None = None


def is_number(value: Any, whole: bool = False) -> bool:
    """Return whether a value is a number of Python or NumPy; True and False are none."""
    import numpy as np

    kinds = int | np.integer if whole else int | float | np.integer | np.floating
    return isinstance(value, kinds) and not isinstance(value, bool)


@cache
def _imported() -> dict[str, Any]:
    """Import what the tables name: functions that read arguments, and constants."""
    from crfx.inputs.weights import check_class_weight
    from crfx.objectives import curvature, ranking, registry, task_loss
    from crfx.potentials.context_trees import parse_window
    from crfx.prediction.metric import check_metric, ranking_metric
    from crfx.structures import chain, constraints
    from crfx.threads import thread_count

    return {
        "class_weight": check_class_weight,
        "constraints": constraints.parse,
        "curvature": curvature.parse,
        "device": check_device_name,
        "metric": check_metric,
        "most_documents": ranking.MOST_DOCUMENTS,
        "most_order": chain.MOST_ORDER,
        "objective": registry.parse,
        "random_state": generator_of,
        "ranking_metric": ranking_metric,
        "task_loss": task_loss.parse,
        "threads": thread_count,
        "window": parse_window,
    }


def generator_of(random_state: Any) -> Any:
    """Return scikit-learn's generator; raise ValueError, naming the argument, if it is no seed."""
    import numpy as np
    from sklearn.utils import check_random_state

    try:
        if not isinstance(random_state, bool | np.bool_):
            return check_random_state(random_state)
    except (ValueError, TypeError):
        pass
    raise ValueError(
        f"random_state is {shown(random_state)}: pass a whole number from 0 to 2**32 - 1, a "
        "RandomState, or None"
    )


def check_device_name(device: Any) -> None:
    """Raise ValueError at what is no device, on this machine or on any other."""
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:[0-9]+)?", device):
        raise ValueError(
            f"device is {shown(device)}: choose 'cpu', 'cuda', or 'cuda:N' for GPU number N"
        )
