"""The sequences that the page shows: the worst, the most uncertain, and some of their positions.

Figures of a file are counted sequence by sequence; only the sequences to show are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np

from crfx.calibration import Reliability
from crfx.report.page.reasons import Why, why_label
from crfx.report.written_labels import Judged, WrittenLabels
from crfx.tag_report import TagReport

SURE = 0.9
CONTEXT = 1
"""Positions shown on either side of one that is wrong or uncertain."""
LEAST_GAP = 3
"""The smallest number of positions that is left out."""
MOST_TELLING = 100
"""Limit for the positions of a sequence that are shown for being wrong or uncertain."""
MOST_WORDS = 20
"""Words of a gap that are shown."""
MOST_WHY = 5
"""Positions of a sequence that are explained."""
MOST_OTHERS = 3
LEAST_OTHER = 0.01

Instance = tuple[dict[str, Any], list[str] | None, str]
"""The arguments of `explain` for a sequence, its words if there are any, its place in the file."""


@dataclass(frozen=True, eq=False)
class Kept:
    """A sequence that is shown: its number in the file, from 1, its labels, and the instance."""

    number: int
    judged: Judged
    arguments: dict[str, Any]
    tokens: list[str] | None
    place: str

    @property
    def n_wrong(self) -> int:
        """The number of positions whose label is wrong."""
        return int(self.judged.wrong.sum())

    @property
    def doubt(self) -> float:
        """The number of labels that the model itself expects to be wrong."""
        return float((1 - self.judged.probabilities).sum())


class Judgement:
    """Figures of all sequences, and the ``n_shown`` worst and most uncertain ones.

    ``n_right`` of the ``n_judged`` sequences with a known label have no wrong label.
    """

    def __init__(self, model: Any, n_shown: int) -> None:
        self.written = WrittenLabels(model)
        self.report = TagReport(map(str, self.written.names))
        self.reliability = Reliability()
        self.n_right = self.n_judged = self.n_sequences = 0
        self._n_shown = n_shown
        self._worst: list[tuple[Any, Kept]] = []
        self._uncertain: list[tuple[Any, Kept]] = []

    def add(self, judged: Judged, instance: Callable[[], Instance]) -> None:
        """Count one sequence; ``instance`` is called if the sequence is kept."""
        self.n_sequences += 1
        self.report.add(judged.true, judged.predicted)
        known, wrong = judged.known, judged.wrong
        self.reliability.add(judged.probabilities[known], ~wrong[known])
        self.n_judged += bool(known.any())
        self.n_right += bool(known.any() and not wrong.any())
        kept = cache(lambda: Kept(self.n_sequences, judged, *instance()))  # once for both lists
        if wrong.any():
            key = int(wrong.sum()), float(judged.probabilities[wrong].sum())
            _keep_foremost(self._worst, self._n_shown, key, kept)
        if judged.predicted:  # a sequence may be empty
            expected = float((1 - judged.probabilities).sum())
            _keep_foremost(self._uncertain, 2 * self._n_shown, expected, kept)

    def worst(self) -> list[Kept]:
        """Return the sequences with most wrong labels; of equals those with the surest ones."""
        return [kept for _, kept in self._worst]

    def uncertain(self) -> list[Kept]:
        """Return those of which the model expects most labels to be wrong, without the worst."""
        worst = {kept.number for kept in self.worst()}
        others = [kept for _, kept in self._uncertain if kept.number not in worst]
        return others[: self._n_shown]


def _keep_foremost(
    ranked: list[tuple[Any, Kept]], n: int, key: Any, make: Callable[[], Kept]
) -> None:
    """Insert an item into the ``n`` of the largest keys; of equal keys the first ones stay."""
    if len(ranked) < n or (ranked and key > ranked[-1][0]):
        ranked.append((key, make()))
        ranked.sort(key=lambda entry: entry[0], reverse=True)  # stable, also when reversed
        del ranked[n:]


@dataclass(frozen=True)
class Shown:
    """The part of a sequence that the page shows, with explanations.

    ``rows`` are positions and gaps, see `_row` and `_gap`.
    """

    kept: Kept
    rows: list[dict[str, Any]]
    whys: list[tuple[str, Why]] = field(default_factory=list)
    method: str = ""
    problem: str = ""

    @property
    def length(self) -> int:
        """The number of positions."""
        return len(self.kept.judged.predicted)


def shown_sequence(model: Any, kept: Kept, written: WrittenLabels) -> Shown:
    """Return rows and explanations; if the model cannot explain, ``problem`` says why."""
    rows = _rows(kept, written.names)
    # Wrong positions come before others, the least certain first; shown in the order of the text.
    chosen = sorted(_telling(kept)[:MOST_WHY] or [int(kept.judged.probabilities.argmin())])
    try:
        explanation = model.explain(**kept.arguments, positions=chosen)
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
    """Return wrong positions, then uncertain ones, each by rising probability."""
    wrong, probabilities = kept.judged.wrong, kept.judged.probabilities
    order = np.lexsort((probabilities, ~wrong))
    return [int(at) for at in order if wrong[at] or probabilities[at] < SURE]


def _rival(explained: Any, true: Any, written: WrittenLabels) -> int | None:
    """Return the label to compare with: the true one if it was missed, else the most probable.

    Several labels of a model may be written alike: the most probable of them is taken.
    """
    names = written.as_written(explained.classes)
    chosen = names[explained.place]
    order: list[int] = np.argsort(-explained.marginal, kind="stable").tolist()
    if true is not None and true != chosen and true in names:
        return next(at for at in order if names[at] == true)
    return next((at for at in order if names[at] != chosen), None)


def _rows(kept: Kept, names: list[Any]) -> list[dict[str, Any]]:
    telling = _telling(kept)
    left_out = set(telling[MOST_TELLING:])
    rows: list[dict[str, Any]] = []
    near = {at + step for at in telling[:MOST_TELLING] for step in range(-CONTEXT, CONTEXT + 1)}
    for is_shown, run in groupby(range(len(kept.judged.predicted)), near.__contains__):
        positions = list(run)
        if is_shown or len(positions) < LEAST_GAP:
            rows += [_row(kept, at, names) for at in positions]
        else:
            rows.append(_gap(kept, positions, left_out))
    return rows


def _gap(kept: Kept, positions: list[int], left_out: set[int]) -> dict[str, Any]:
    """Return positions that are not shown; ``n_telling`` of them are wrong or uncertain."""
    return {
        "first": positions[0],
        "last": positions[-1],
        "tokens": " ".join(_token(kept, at) for at in positions[:MOST_WORDS]),
        "n_telling": len(left_out.intersection(positions)),
    }


def _row(kept: Kept, at: int, names: list[Any]) -> dict[str, Any]:
    """Return a position; ``state`` is right, wrong or open (no true label)."""
    judged = kept.judged
    true, label, p = judged.true[at], judged.predicted[at], judged.marginals[at]
    state = "open" if true is None else "right" if true == label else "wrong"
    order = np.argsort(-p, kind="stable")
    others = [(names[k], float(p[k])) for k in order if names[k] != label and p[k] >= LEAST_OTHER]
    return {
        "number": at,
        "token": _token(kept, at),
        "true": true,
        "predicted": label,
        "state": state,
        "probability": float(judged.probabilities[at]),
        "others": others[:MOST_OTHERS],
    }


def _token(kept: Kept, at: int) -> str:
    return str(at) if kept.tokens is None else kept.tokens[at]
