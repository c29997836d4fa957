"""Tables of scores that parts share: transitions, and the first and last label."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from crfx.scores import FloatArray, weighted_sum
from crfx.state import State, texts, to_number

Array32 = npt.NDArray[np.float32]


class Tables:
    """A few tables that are moved together, and what each round added to them.

    What rounds added is kept, so that a model can be cut back to fewer rounds, up to
    ``MOST_KEPT`` numbers; beyond that only the sum is.
    """

    MOST_KEPT = 50_000_000

    def __init__(self, tables: dict[str, FloatArray], l2: float) -> None:
        self.tables = {name: np.array(table, np.float32) for name, table in tables.items()}
        self.l2 = l2
        self._first = dict(self.tables)
        self._marked: tuple[int, dict[str, Array32]] | None = None
        self._rounds: list[dict[str, Array32]] | None = []
        self._n_rounds = 0
        self._kept = 0

    def to_state(self, state: State, name: str) -> None:
        """Write the tables of every round; their sum where the rounds were not kept."""
        rounds = self.rounds()
        state.values["tables"][name] = {
            "l2": self.l2,
            "names": list(self.tables),
            "by_round": rounds is not None,
        }
        for table, array in (self.tables if rounds is None else rounds).items():
            state.put(f"{name}.{table}", array)

    @classmethod
    def from_state(
        cls, state: State, name: str, shapes: Mapping[str, tuple[int, ...]], n_rounds: int
    ) -> Tables:
        """Read and check them; ``shapes`` are those of the tables that there may be."""
        own = state.nested(state.values["tables"][name])
        names, by_round = texts(own.values["names"]), own.truth("by_round")
        if not names:
            raise ValueError("it has tables without names")
        if names != [table for table in shapes if table in names]:
            raise ValueError(f"it has the tables {', '.join(names)}, which do not belong together")
        arrays = {table: state.array(f"{name}.{table}", np.float32) for table in names}
        front = (n_rounds + 1,) if by_round else ()
        for table, array in arrays.items():
            expected = (*front, *shapes[table])
            if array.shape != expected:
                raise ValueError(f"the table {table} has shape {array.shape}, not {expected}")
        l2 = float(to_number(own.values["l2"], "its l2"))
        return cls.from_rounds(arrays, l2) if by_round else cls.from_sum(arrays, l2, n_rounds)

    def propose(
        self, gradient: dict[str, FloatArray], curvature: dict[str, FloatArray]
    ) -> dict[str, Array32]:
        """Newton's step for what is regularised as a whole: -(G + l2 phi) / (H + l2).

        Entries without curvature (their event never occurs) move by their penalty alone.
        """
        step = {}
        for name, table in self.tables.items():
            total = curvature[name] + self.l2
            slope = gradient[name] + self.l2 * table
            safe = np.where(total > 0, total, 1.0)
            step[name] = np.where(total > 0, -slope / safe, 0.0).astype(np.float32)
        return step

    def penalty(self, delta: dict[str, Array32] | None = None, step: float = 0.0) -> float:
        """l2 / 2 times the sum of squares, after ``step`` times ``delta``."""
        if not self.l2:
            return 0.0
        total = 0.0
        for name, table in self.tables.items():
            moved = table.astype(np.float64)
            if delta is not None:
                moved += step * delta[name]
            total += float(weighted_sum(moved.reshape(-1), moved.reshape(-1)))
        return 0.5 * self.l2 * total

    def accept(self, delta: dict[str, Array32], step: float) -> None:
        """Add ``step`` times ``delta``."""
        added = {name: np.float32(step) * change for name, change in delta.items()}
        for name, change in added.items():
            self.tables[name] = self.tables[name] + change
        self._n_rounds += 1
        self._kept += sum(change.size for change in added.values())
        if self._kept > self.MOST_KEPT:
            self._rounds = None
        if self._rounds is not None:
            self._rounds.append(added)

    def at_round(self, n_rounds: int | None) -> dict[str, Array32]:
        """The tables after the first ``n_rounds`` rounds; by default all."""
        if n_rounds is None or n_rounds >= self._n_rounds:
            return self.tables
        if self._rounds is None:
            raise ValueError(
                "the tables of this model are too large to be kept for every round: "
                "use all rounds, or train anew with fewer"
            )
        tables = dict(self._first)
        for added in self._rounds[:n_rounds]:
            tables = {name: table + added[name] for name, table in tables.items()}
        return tables

    def mark(self, n_rounds: int) -> None:
        """Note that ``keep(n_rounds)`` may come; by then the rounds may be kept no more."""
        self._marked = n_rounds, dict(self.tables)

    def keep(self, n_rounds: int) -> None:
        """Drop the rounds after the first ``n_rounds``."""
        if self._rounds is None and self._marked is not None and self._marked[0] == n_rounds:
            self.tables = self._marked[1]
        else:
            self.tables = self.at_round(n_rounds)
        if self._rounds is not None:
            del self._rounds[n_rounds:]
            self._kept = len(self._rounds) * sum(table.size for table in self._first.values())
        self._marked = None
        self._n_rounds = min(self._n_rounds, n_rounds)

    def changed(self, change: Callable[[str, Array32], Array32]) -> Tables:
        """Tables of which each, and what every round added to it, is changed in the same way.

        ``change`` (name, table) -> table.
        """

        def all_of(tables: dict[str, Array32]) -> dict[str, FloatArray]:
            return {name: change(name, table) for name, table in tables.items()}

        if self._rounds is None:
            return Tables.from_sum(all_of(self.tables), self.l2, self._n_rounds)
        found = Tables(all_of(self._first), self.l2)
        for added in self._rounds:
            found.accept(all_of(added), 1.0)
        return found

    @property
    def by_round(self) -> bool:
        """Whether what every round added is kept."""
        return self._rounds is not None

    def rounds(self) -> dict[str, Array32] | None:
        """(1 + rounds, ...) by name: where the tables started and what was added; None if lost."""
        if self._rounds is None:
            return None
        return {
            name: np.stack([first, *(added[name] for added in self._rounds)])
            for name, first in self._first.items()
        }

    def rounds_alone(self) -> Iterator[Tables]:
        """What every round added, as tables of their own; they must have been kept."""
        assert self._rounds is not None
        for added in self._rounds:
            yield Tables(dict(added), self.l2)

    @classmethod
    def from_sum(cls, tables: dict[str, FloatArray], l2: float, n_rounds: int) -> Tables:
        """Build from the sum of rounds that were not kept: where `rounds` gave None."""
        found = cls(tables, l2)
        found._rounds, found._n_rounds = None, n_rounds
        return found

    @classmethod
    def from_rounds(cls, rounds: dict[str, Array32], l2: float) -> Tables:
        """Build from what `rounds` gave."""
        found = cls({name: stacked[0] for name, stacked in rounds.items()}, l2)
        n_rounds = len(next(iter(rounds.values()))) - 1
        for number in range(n_rounds):
            found.accept({name: stacked[number + 1] for name, stacked in rounds.items()}, 1.0)
        return found
