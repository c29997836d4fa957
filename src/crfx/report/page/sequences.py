"""The sequences that the page shows: the worst and the most uncertain, and which positions of them.

Figures of a file are counted sequence by sequence; only the sequences to show are kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import count, groupby
from typing import Any, Generic, TypeVar

import numpy as np

from crfx.calibration import Reliability
from crfx.report.page.reasons import Why, why_label
from crfx.report.written_labels import Judged, WrittenLabels
from crfx.tag_report import TagReport

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

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Instance:
    """A sequence as the model is asked about it, and as a reader knows it.

    ``X_i``, ``parents`` and ``edge_types`` are arguments of `explain`; ``tokens`` are words, one a
    position, or None; ``place`` is where it is in the file.
    """

    arguments: dict[str, Any]
    tokens: list[str] | None
    place: str


@dataclass(frozen=True, eq=False)
class Kept:
    """A sequence that is shown: its number in the file, from 1, and how it was labelled."""

    number: int
    instance: Instance
    judged: Judged

    @property
    def n_wrong(self) -> int:
        """Positions whose label is not the true one."""
        return int(self.judged.wrong.sum())

    @property
    def doubt(self) -> float:
        """How many labels the model itself expects to be wrong."""
        return float((1 - self.judged.probabilities).sum())


class Foremost(Generic[Item]):
    """The ``n`` items of the largest keys, in constant memory; the first of equals stay."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._heap: list[tuple[Any, int, Item]] = []
        self._order = count(0, -1)

    def offer(self, key: Any, make: Callable[[], Item]) -> None:
        """Add an item, which is made only if it is kept."""
        entry = (key, next(self._order))
        if len(self._heap) < self._n:
            heapq.heappush(self._heap, (*entry, make()))
        elif self._n and entry > self._heap[0][:2]:
            heapq.heapreplace(self._heap, (*entry, make()))

    def items(self) -> list[Item]:
        """Return the items, those of the largest keys first."""
        return [item for *_, item in sorted(self._heap, key=lambda entry: entry[:2], reverse=True)]


class Judgement:
    """Figures of all sequences, and the ``n_shown`` worst and most uncertain ones.

    ``n_right`` of the ``n_judged`` sequences that have a known label are right all over.
    """

    def __init__(self, model: Any, n_shown: int) -> None:
        self.written = WrittenLabels(model)
        self.report = TagReport(map(str, self.written.names))
        self.reliability = Reliability()
        self.n_right = self.n_judged = self.n_sequences = 0
        self._n_shown = n_shown
        self._worst: Foremost[Kept] = Foremost(n_shown)
        self._uncertain: Foremost[Kept] = Foremost(2 * n_shown)

    def add(self, judged: Judged, instance: Callable[[], Instance]) -> None:
        """Count one sequence; ``instance`` makes it, if it is one to keep."""
        self.n_sequences += 1
        self.report.add(judged.true, judged.found)
        known, wrong = judged.known, judged.wrong
        self.reliability.add(judged.probabilities[known], ~wrong[known])
        self.n_judged += bool(known.any())
        self.n_right += bool(known.any() and not wrong.any())
        kept = cache(lambda: Kept(self.n_sequences, instance(), judged))  # made once for both
        if wrong.any():
            self._worst.offer((int(wrong.sum()), float(judged.probabilities[wrong].sum())), kept)
        if judged.found:  # there may be nothing in it
            self._uncertain.offer(float((1 - judged.probabilities).sum()), kept)

    def worst(self) -> list[Kept]:
        """Return those with most labels wrong; among equals where the model was surest of them."""
        return self._worst.items()

    def uncertain(self) -> list[Kept]:
        """Return those of which the model expects most labels to be wrong, without the worst."""
        worst = {kept.number for kept in self.worst()}
        others = [kept for kept in self._uncertain.items() if kept.number not in worst]
        return others[: self._n_shown]


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
    """Return rows and explanations; if the model cannot explain, ``problem`` says why."""
    rows = _rows(kept, written.names)
    # Wrong positions before others, the least sure of them first; in the order of the text.
    chosen = sorted(_telling(kept)[:MOST_WHY] or [int(kept.judged.probabilities.argmin())])
    try:
        explanation = model.explain(**kept.instance.arguments, positions=chosen)
    except ValueError as error:
        return Shown(kept, rows, problem=str(error))
    whys = []
    for explained in explanation.positions:
        rival = _rival(explained, kept.judged.true[explained.position], written)
        if rival is not None:
            why = why_label(explained, rival, model.model_.order)
            whys.append((_token(kept, explained.position), why))
    return Shown(kept, rows, whys, explanation.method)


def _telling(kept: Kept) -> list[int]:
    """Return positions that are wrong, then those not sure; of both the least sure first."""
    wrong, sure = kept.judged.wrong, kept.judged.probabilities
    order = np.lexsort((sure, ~wrong))
    return [int(at) for at in order if wrong[at] or sure[at] < SURE]


def _rival(explained: Any, true: Any, written: WrittenLabels) -> int | None:
    """Return the label to compare with: the true one, if missed, else the next most probable.

    A model has several labels for one that is written alike: the most probable of them is meant.
    """
    names = written.found(explained.classes)
    chosen = names[explained.place]
    order: list[int] = np.argsort(-explained.marginal, kind="stable").tolist()
    if true is not None and true != chosen and true in names:
        return next(at for at in order if names[at] == true)
    return next((at for at in order if names[at] != chosen), None)


def _rows(kept: Kept, names: list[Any]) -> list[Position | Gap]:
    telling = _telling(kept)
    left_out = set(telling[MOST_TELLING:])
    rows: list[Position | Gap] = []
    near = {at + step for at in telling[:MOST_TELLING] for step in range(-CONTEXT, CONTEXT + 1)}
    for is_shown, run in groupby(range(len(kept.judged.found)), near.__contains__):
        positions = list(run)
        if is_shown or len(positions) < LEAST_GAP:
            rows += [_row(kept, at, names) for at in positions]
        else:
            words = " ".join(_token(kept, at) for at in positions[:MOST_WORDS])
            n_telling = len(left_out.intersection(positions))
            rows.append(Gap(positions[0], positions[-1], words, n_telling))
    return rows


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
