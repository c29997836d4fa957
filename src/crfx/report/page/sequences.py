"""One sequence on the page: its positions, and why the telling ones are labelled as they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crfx.report.page.judging import Kept, is_wrong
from crfx.report.page.reasons import Why, why_label
from crfx.report.written_labels import WrittenLabels

SURE = 0.9
CONTEXT = 1
"""Positions shown on either side of one that is wrong, or not sure."""
LEAST_GAP = 3
"""Fewer positions than that are not worth leaving out."""
MOST_TELLING = 100
"""Positions of a sequence that are shown for being wrong, or not sure: the foremost of them."""
MOST_WORDS = 20
"""Of a gap."""
MOST_WHY = 5
"""Positions of a sequence that are explained."""
MOST_OTHERS = 3
LEAST_OTHER = 0.01


@dataclass(frozen=True)
class Position:
    """A row: ``state`` is right, wrong or open (no true label); ``others`` are further labels."""

    number: int
    token: str
    true: Any
    found: Any
    state: str
    probability: float
    others: list[tuple[Any, float]]


@dataclass(frozen=True)
class Gap:
    """Positions that are left out: right, or open, and sure, but for ``n_telling``."""

    first: int
    last: int
    tokens: str
    n_telling: int


@dataclass(frozen=True)
class Shown:
    """What the page shows of a sequence."""

    kept: Kept
    rows: list[Position | Gap]
    whys: list[tuple[str, Why]] = field(default_factory=list)
    method: str = ""
    problem: str = ""

    @property
    def length(self) -> int:
        """How many positions it has."""
        return len(self.kept.judged.found)


def shown_sequence(model: Any, kept: Kept, written: WrittenLabels) -> Shown:
    """Rows and explanations; where the model cannot explain, ``problem`` says why."""
    rows = _rows(kept, written.names)
    chosen = _to_explain(kept)
    try:
        explanation = model.explain(**kept.instance.arguments, positions=chosen)
    except ValueError as error:
        return Shown(kept, rows, problem=str(error))
    whys = []
    for own in explanation.positions:
        rival = _rival(own, kept.judged.true[own.position], written)
        if rival is not None:
            whys.append((_token(kept, own.position), why_label(own, rival, model.model_.order)))
    return Shown(kept, rows, whys, explanation.method)


def _to_explain(kept: Kept) -> list[int]:
    """Wrong positions before others, the least sure of them first; in the order of the text."""
    return sorted(_telling(kept)[:MOST_WHY] or [int(kept.judged.probabilities.argmin())])


def _telling(kept: Kept) -> list[int]:
    """Positions that are wrong, then those not sure; of both the least sure first."""
    wrong, sure = is_wrong(kept.judged), kept.judged.probabilities
    order = np.lexsort((sure, ~wrong))
    return [int(at) for at in order if wrong[at] or sure[at] < SURE]


def _rival(own: Any, true: Any, written: WrittenLabels) -> int | None:
    """The label to compare with: the true one, if it was missed, else the next most probable.

    A model has several labels for one that is written alike: the most probable of them is meant.
    """
    names = written.found(own.classes)
    order = [int(at) for at in np.argsort(-own.marginal, kind="stable") if at != own.place]
    if true is not None and true != names[own.place] and true in names:
        return next(at for at in order if names[at] == true)
    others = [at for at in order if names[at] != names[own.place]]
    return others[0] if others else None


def _rows(kept: Kept, names: list[Any]) -> list[Position | Gap]:
    found: list[Position | Gap] = []
    telling = _telling(kept)
    shown, is_left_out = _is_shown(kept, telling[:MOST_TELLING]), set(telling[MOST_TELLING:])
    at = 0
    while at < len(shown):
        end = at
        while end < len(shown) and not shown[end]:
            end += 1
        if end > at:
            words = " ".join(_token(kept, each) for each in range(at, min(end, at + MOST_WORDS)))
            found.append(Gap(at, end - 1, words, len(is_left_out & set(range(at, end)))))
            at = end
        else:
            found.append(_row(kept, at, names))
            at += 1
    return found


def _is_shown(kept: Kept, chosen: list[int]) -> list[bool]:
    """(length,) the chosen positions, their neighbours, and gaps too short to be one."""
    telling = np.zeros(len(kept.judged.found), bool)
    telling[chosen] = True
    near = np.convolve(telling, np.ones(2 * CONTEXT + 1), mode="full")[CONTEXT:-CONTEXT] > 0
    shown: list[bool] = near.tolist()
    begin = 0
    while begin < len(shown):  # short gaps are filled
        end = begin
        while end < len(shown) and not shown[end]:
            end += 1
        if 0 < end - begin < LEAST_GAP:
            shown[begin:end] = [True] * (end - begin)
        begin = end + 1
    return shown


def _row(kept: Kept, at: int, names: list[Any]) -> Position:
    judged = kept.judged
    true, label, p = judged.true[at], judged.found[at], judged.marginals[at]
    state = "open" if true is None else "right" if true == label else "wrong"
    order = np.argsort(-p, kind="stable")
    others = [(names[k], float(p[k])) for k in order if names[k] != label and p[k] >= LEAST_OTHER]
    return Position(
        at,
        _token(kept, at),
        true,
        label,
        state,
        float(judged.probabilities[at]),
        others[:MOST_OTHERS],
    )


def _token(kept: Kept, at: int) -> str:
    tokens = kept.instance.tokens
    return str(at) if tokens is None else tokens[at]
