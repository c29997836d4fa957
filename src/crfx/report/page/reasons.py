"""Explanations of one label against another: the difference of two scores, term by term."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

TOP = 6
"""Features that are named; the others are one line."""
NOTHING = "–"
"""Shown instead of the value of a feature that adds nothing."""
ROUNDING = 5e-3
"""Terms below it are left out: they would read 0.00."""
_SIDES = {
    "before": "from the positions before",
    "after": "from the positions after",
    "parent": "from its parent",
    "children": "from its children",
}


@dataclass(frozen=True)
class Reason:
    """A term of a difference of scores: ``number`` above 0 speaks for the first label.

    ``size`` is its share, in percent, of the largest term.
    """

    name: str
    value: str
    number: float
    is_feature: bool = False
    size: float = 0.0


@dataclass(frozen=True)
class Why:
    """The reasons for ``chosen`` and not ``rival``; they add up to ``total``.

    ``alone`` are the probabilities of both by the position itself, ``together`` their marginals.
    ``given`` are the labels before that the scores depend on.  ``edge`` explains the edge into the
    position if it depends on features.
    """

    position: int
    chosen: Any
    rival: Any
    reasons: list[Reason]
    total: float
    given: list[Any] = field(default_factory=list)
    alone: tuple[float, float] | None = None
    together: tuple[float, float] | None = None
    edge: Why | None = None


def why_label(explained: Any, rival: int, order: int) -> Why:
    """Return why a position has its label and not label number ``rival``.

    ``explained`` is an `ExplainedPosition`.  The total is the logarithm of the odds of both labels,
    by the marginals.  In chains of ``order`` 2 and more some edges belong to neither side: their
    contribution is the remainder.
    """
    place, classes = explained.place, explained.classes.tolist()
    names = explained.position, classes[place], classes[rival]
    reasons = _score_gap(explained, place, rival)
    for side, message in explained.messages.items():
        both_forbidden = message[place] == message[rival]  # their difference would be NaN
        gap = 0.0 if both_forbidden else float(message[place] - message[rival])
        reasons.append(Reason(_SIDES[side], "", gap))
    total = _total(reasons)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = float(np.subtract(*np.log(explained.marginal[[place, rival]])))
    if order > 1 and np.isfinite(odds) and np.isfinite(total):
        if abs(odds - total) >= ROUNDING:
            reasons.append(Reason("from edges that reach over it", "", odds - total))
        total = odds
    edge = explained.edge
    if edge is not None:
        terms = _score_gap(edge, place, rival)
        edge = Why(*names, _sized(terms), _total(terms), edge.before)
    return Why(
        *names,
        _sized(reasons),
        total,
        explained.alone_given,
        (float(explained.alone[place]), float(explained.alone[rival])),
        (float(explained.marginal[place]), float(explained.marginal[rival])),
        edge,
    )


def why_before(first: Any, second: Any) -> Why:
    """Return why the first of two documents of a query has the better score.

    The base score is the same for both documents and cancels.
    """
    contributions: dict[str, list[float]] = {}
    inputs: dict[str, list[str]] = {}
    for side, document in enumerate((first, second)):
        for name, value, number in zip(
            document.features, document.inputs, document.contributions[:, 0], strict=True
        ):
            contributions.setdefault(name, [0.0, 0.0])[side] = number
            inputs.setdefault(name, [NOTHING, NOTHING])[side] = _input(value) or "1"
    values = [" / ".join(pair) for pair in inputs.values()]
    gaps = np.array([one - other for one, other in contributions.values()])
    reasons = _foremost(list(inputs), values, gaps)
    return Why(first.position, first.predicted, second.predicted, _sized(reasons), _total(reasons))


def _score_gap(explained: Any, place: int, rival: int) -> list[Reason]:
    """Return the terms of the difference of two scores of an `ExplainedScores`."""
    gaps = explained.contributions[:, place] - explained.contributions[:, rival]
    base = float(explained.base[place] - explained.base[rival])
    return [
        *_foremost(explained.features, explained.inputs, gaps),
        Reason("without any feature", "", base),
    ]


def _foremost(names: list[str], inputs: Any, numbers: Any) -> list[Reason]:
    """Return the features of the largest numbers, then the others as one term."""
    order = np.argsort(-np.abs(numbers), kind="stable")
    order = order[np.abs(numbers[order]) > 0]
    reasons = [
        Reason(names[at], _input(inputs[at]), float(numbers[at]), True) for at in order[:TOP]
    ]
    if len(rest := order[TOP:]):
        name = f"{len(rest)} other feature{'s' * (len(rest) > 1)}"
        reasons.append(Reason(name, "", float(numbers[rest].sum())))
    return reasons


def _total(reasons: list[Reason]) -> float:
    return sum(reason.number for reason in reasons)


def _sized(reasons: list[Reason]) -> list[Reason]:
    """Return the terms with their sizes; infinite terms have the largest one."""
    sizes = [abs(reason.number) for reason in reasons]
    largest = max(filter(np.isfinite, sizes), default=0.0) or 1.0
    return [
        replace(reason, size=min(100.0, 100 * size / largest))
        for reason, size in zip(reasons, sizes, strict=True)
    ]


def _input(value: Any) -> str:
    """Return the value of a feature as text; empty for a name that is present."""
    if value is None:
        return "missing"
    if isinstance(value, float):
        return "" if value == 1.0 else f"{value:.4g}"
    return str(value)
