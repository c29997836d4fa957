"""Constraints on labels that follow each other: the settings, and their mask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.structures.label_schemes import TAGS, allowed_pairs
from crfx.structures.mask import Mask


@dataclass(frozen=True)
class Constraints:
    """Pairs of labels that may, or may not, follow each other; in a forest (parent, child).

    Parameters
    ----------
    allowed : list of pairs of labels, optional
        The only pairs that may occur; None: all.
    forbidden : list of pairs of labels
        Pairs that may not occur, even if they are among the allowed.
    start_forbidden, end_forbidden : lists of labels
        Labels that may not be first (in a forest: at a root), or last (in chains only).

    Examples
    --------
    >>> Constraints(forbidden=[("O", "I")], start_forbidden=["I"]).start_forbidden
    ['I']
    """

    allowed: Any = None
    forbidden: Any = ()
    start_forbidden: Any = ()
    end_forbidden: Any = ()

    def __post_init__(self) -> None:
        for name in ("allowed", "forbidden"):
            if name == "forbidden" or self.allowed is not None:
                _pairs(name, getattr(self, name))
        for name in ("start_forbidden", "end_forbidden"):
            _listed(name, getattr(self, name), "labels")


def parse(constraints: Any) -> str | Constraints | None:
    """Read the argument ``constraints`` of estimators: a plain list holds allowed pairs."""
    if constraints is None or isinstance(constraints, Constraints):
        return constraints
    if isinstance(constraints, str):
        if constraints in TAGS:
            return constraints
        raise ValueError(
            f'constraints is {constraints!r}: choose "bio", "bioes", a list of allowed pairs, or '
            "crfx.Constraints(...)"
        )
    return Constraints(allowed=constraints)


def scheme_of(constraints: Any) -> str | None:
    """Return the name of the scheme if constraints are one."""
    parsed = parse(constraints)
    return parsed if isinstance(parsed, str) else None


def mask_of(constraints: Any, classes: npt.NDArray[Any], *, is_forest: bool) -> Mask | None:
    """Return the mask of constraints, for labels in the order of ``classes``."""
    parsed = parse(constraints)
    if parsed is None:
        return None
    if isinstance(parsed, str):
        if is_forest:
            raise ValueError(
                f'constraints="{parsed}" is for chains, but parents are given: pass pairs (parent, '
                "child) of labels"
            )
        return Mask(*allowed_pairs(parsed, classes.tolist()))
    if is_forest and len(parsed.end_forbidden):
        raise ValueError("end_forbidden is given, but a forest has no last position")
    return _mask_of_pairs(parsed, classes.tolist())


def _mask_of_pairs(constraints: Constraints, classes: list[Any]) -> Mask:
    code_of = {label: code for code, label in enumerate(classes)}

    def code(label: Any) -> int:
        plain = _plain(label)
        if plain.__hash__ is None or plain not in code_of:
            raise ValueError(f"constraints name the label {label!r}, which y does not have")
        return code_of[plain]

    n = len(classes)
    pair = np.full((n, n), constraints.allowed is None)
    for name, value in (("allowed", True), ("forbidden", False)):
        pairs = getattr(constraints, name)
        for one, other in () if pairs is None else pairs:
            pair[code(one), code(other)] = value
    first, last = np.ones(n, bool), np.ones(n, bool)
    first[list(map(code, constraints.start_forbidden))] = False
    last[list(map(code, constraints.end_forbidden))] = False
    return Mask(*(None if table.all() else table for table in (pair, first, last)))


def to_plain(constraints: Any) -> Any:
    """Return constraints for JSON: a name, a list of pairs, or a dict of settings."""
    parsed = parse(constraints)
    if parsed is None or isinstance(parsed, str):
        return parsed
    settings = {name: _as_lists(value) for name, value in vars(parsed).items()}
    return settings if isinstance(constraints, Constraints) else settings["allowed"]


def from_plain(value: Any) -> Any:
    """Return the constraints that `to_plain` wrote."""
    if isinstance(value, dict):
        pairs = {name: value[name] for name in ("allowed", "forbidden")}
        tuples = {name: None if each is None else _tuples(each) for name, each in pairs.items()}
        return Constraints(**{**value, **tuples})
    return _tuples(value) if isinstance(value, list) else value


def _tuples(pairs: Any) -> list[tuple[Any, ...]]:
    return [tuple(pair) for pair in pairs]


def _as_lists(value: Any) -> Any:
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [_as_lists(entry) for entry in value]
    return _plain(value)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _is_bare(value: Any) -> bool:
    """Return whether a value is an array without axes."""
    return isinstance(value, np.ndarray) and value.ndim == 0


def _listed(name: str, value: Any, what: str) -> list[Any]:
    is_list = hasattr(value, "__iter__") and hasattr(value, "__len__") and not _is_bare(value)
    if isinstance(value, str | Mapping) or not is_list:
        raise ValueError(f"constraints: {name} is {value!r}: pass a list of {what}")
    return list(value)


def _pairs(name: str, value: Any) -> None:
    for pair in _listed(name, value, "pairs of labels"):
        # A set of two labels has no first one.
        has_order = isinstance(pair, list | tuple | np.ndarray) and not _is_bare(pair)
        if not has_order or len(pair) != 2:
            raise ValueError(f"constraints: {name} holds {pair!r}, which is no pair of labels")
