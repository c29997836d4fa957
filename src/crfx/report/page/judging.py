"""What a model makes of a file, sequence by sequence; only the telling ones are kept."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, TypeVar

import numpy as np

from crfx.calibration import Reliability
from crfx.report.written_labels import Judged, WrittenLabels
from crfx.tag_report import TagReport

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
        return int(is_wrong(self.judged).sum())

    @property
    def doubt(self) -> float:
        """How many labels the model itself expects to be wrong."""
        return float((1 - self.judged.probabilities).sum())


def is_wrong(judged: Judged) -> Any:
    """(length,) whether a known label was not found."""
    pairs = zip(judged.true, judged.found, strict=True)
    return np.array([true is not None and true != found for true, found in pairs], bool)


class Foremost(Generic[Item]):
    """The ``n`` items of the largest keys, in constant memory; the first of equals stay."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._heap: list[tuple[Any, int, Item]] = []
        self._order = count(0, -1)

    def offer(self, key: Any, make: Callable[[], Item]) -> None:
        """An item, which is made only if it is kept."""
        entry = (key, next(self._order))
        if len(self._heap) < self._n:
            heapq.heappush(self._heap, (*entry, make()))
        elif self._n and entry > self._heap[0][:2]:
            heapq.heapreplace(self._heap, (*entry, make()))

    def items(self) -> list[Item]:
        """Those of the largest keys first."""
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
        """Look at one sequence; ``instance`` makes it, if it is one to keep."""
        self.n_sequences += 1
        self.report.add(judged.true, judged.found)
        known = np.array([label is not None for label in judged.true], bool)
        wrong = is_wrong(judged)
        self.reliability.add(judged.probabilities[known], ~wrong[known])
        self.n_judged += bool(known.any())
        self.n_right += bool(known.any() and not wrong.any())
        kept = _Once(lambda: Kept(self.n_sequences, instance(), judged))
        if wrong.any():
            self._worst.offer((int(wrong.sum()), float(judged.probabilities[wrong].sum())), kept)
        if judged.found:  # there may be nothing in it
            self._uncertain.offer(float((1 - judged.probabilities).sum()), kept)

    def worst(self) -> list[Kept]:
        """Those with most labels wrong; among equals where the model was surest of them."""
        return self._worst.items()

    def uncertain(self) -> list[Kept]:
        """Those of which the model expects most labels to be wrong, without the worst."""
        shown = {kept.number for kept in self.worst()}
        found = [kept for kept in self._uncertain.items() if kept.number not in shown]
        return found[: self._n_shown]


class _Once:
    """Makes a thing when first asked for."""

    def __init__(self, make: Callable[[], Kept]) -> None:
        self._make = make
        self._made: Kept | None = None

    def __call__(self) -> Kept:
        if self._made is None:
            self._made = self._make()
        return self._made
