"""Why one label and not another: the difference of two scores, term by term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

TOP = 6
"""Features that are named; the rest is one line."""
NOTHING = "–"
"""Instead of the value of a feature that adds nothing."""
ROUNDING = 5e-3
"""What is not worth a line: it would read 0.00."""
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
    size: float
    is_feature: bool


@dataclass(frozen=True)
class WhyEdge:
    """Of an edge that depends on features, from the labels ``before``: why it leads to the one
    label and not to the other.
    """

    before: list[Any]
    reasons: list[Reason]
    total: float


@dataclass(frozen=True)
class Why:
    """Why ``chosen`` and not ``rival``; the reasons add up to ``total``.

    ``alone`` are the probabilities of both by the position itself, after the labels ``given``.
    """

    position: int
    chosen: Any
    rival: Any
    reasons: list[Reason]
    total: float
    given: list[Any]
    alone: tuple[float, float] | None = None
    together: tuple[float, float] | None = None
    edge: WhyEdge | None = None


def why_label(own: Any, rival: int, order: int) -> Why:
    """Of an `ExplainedPosition` with labels: the predicted one against that of number ``rival``.

    The total is the logarithm of the odds of both, by the marginals.  In chains of ``order`` 2 and
    more some edges belong to neither side: what they add is what is left.
    """
    place = own.place
    terms = _scores(own, place, rival)
    for side, message in own.messages.items():
        terms.append((_SIDES[side], "", _less(message[place], message[rival]), False))
    total = sum(number for _, _, number, _ in terms)
    odds = _log_odds(own.marginal[place], own.marginal[rival])
    if order > 1 and np.isfinite(odds) and np.isfinite(total):
        if abs(odds - total) >= ROUNDING:
            terms.append(("from edges that reach over it", "", odds - total, False))
        total = odds
    chosen, other = (own.classes.tolist()[at] for at in (place, rival))
    alone, together = ((float(p[place]), float(p[rival])) for p in (own.alone, own.marginal))
    edge = None if own.edge is None else _of_edge(own.edge, place, rival)
    reasons, given = _sized(terms), own.alone_given
    return Why(own.position, chosen, other, reasons, total, given, alone, together, edge)


def _of_edge(edge: Any, place: int, rival: int) -> WhyEdge:
    terms = _scores(edge, place, rival)
    return WhyEdge(edge.before, _sized(terms), sum(number for _, _, number, _ in terms))


def why_before(own: Any, other: Any) -> Why:
    """Of two documents of a query: why the first has the better score.

    What a score is without any feature is the same for both.
    """
    names = list(dict.fromkeys([*own.features, *other.features]))
    found = {name: np.zeros(2) for name in names}
    inputs = {name: [NOTHING, NOTHING] for name in names}
    for side, each in enumerate((own, other)):
        for name, value, number in zip(
            each.features, each.inputs, each.contributions[:, 0], strict=True
        ):
            found[name][side] = number
            inputs[name][side] = _told(value) or "1"
    values = [" / ".join(inputs[name]) for name in names]
    terms = _features(names, values, np.array([a - b for a, b in found.values()]))
    total = sum(number for _, _, number, _ in terms)
    return Why(own.position, own.predicted, other.predicted, _sized(terms), total, [])


Term = tuple[str, str, float, bool]


def _scores(own: Any, place: int, rival: int) -> list[Term]:
    """The difference of two scores of an `ExplainedScores`."""
    gaps = own.contributions[:, place] - own.contributions[:, rival]
    base = float(own.base[place] - own.base[rival])
    return [
        *_features(own.features, own.inputs, gaps),
        ("without any feature", "", base, False),
    ]


def _features(names: list[str], inputs: Any, numbers: Any) -> list[Term]:
    """The foremost by size, then the rest together."""
    order = np.argsort(-np.abs(numbers), kind="stable")
    order = order[np.abs(numbers[order]) > 0]
    terms = [(names[at], _told(inputs[at]), float(numbers[at]), True) for at in order[:TOP]]
    if len(rest := order[TOP:]):
        name = f"{len(rest)} other feature{'s' * (len(rest) > 1)}"
        terms.append((name, "", float(numbers[rest].sum()), False))
    return terms


def _sized(terms: list[Term]) -> list[Reason]:
    finite = [abs(number) for _, _, number, _ in terms if np.isfinite(number)]
    largest = max(finite, default=0.0) or 1.0
    return [
        Reason(name, value, number, min(100.0, 100 * abs(number) / largest), is_feature)
        for name, value, number, is_feature in terms
    ]


def _less(one: float, other: float) -> float:
    """The difference; nothing where both are ruled out."""
    return 0.0 if one == other else float(one - other)


def _log_odds(one: float, other: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.log(one) - np.log(other))


def _told(value: Any) -> str:
    """The value of a feature; that of a name that is there is not told."""
    if value is None:
        return "missing"
    if isinstance(value, float):
        return "" if value == 1.0 else f"{value:.4g}"
    return str(value)
