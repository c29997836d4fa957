"""Tables of scores that parts share: transitions, and the first and last label."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from crfx.scores import FloatArray, weighted_sum
from crfx.state import State, texts, to_number

Array32 = npt.NDArray[np.float32]


class Tables:
    """A few tables that are trained together, and what each round added to them.

    What rounds added is kept, so that a model can be cut back to fewer rounds, up to
    ``MOST_KEPT`` numbers; beyond that only the sum is.
    """

    MOST_KEPT = 50_000_000

    def __init__(self, tables: dict[str, FloatArray], l2: float) -> None:
        self.tables = {name: np.array(table, np.float32) for name, table in tables.items()}
        self.l2 = l2
        self._n_rounds = 0
        self._added: list[dict[str, Array32]] | None = [dict(self.tables)]
        """Where the tables started, then what each round added; None if it is not kept."""
        self._marked: tuple[int, dict[str, Array32]] | None = None

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
        """Read and check what `to_state` wrote; ``shapes`` are those that tables may have."""
        values = state.nested(state.values["tables"][name])
        names, by_round = texts(values.values["names"]), values.truth("by_round")
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
        l2 = float(to_number(values.values["l2"], "its l2"))
        return cls.from_rounds(arrays, l2) if by_round else cls.from_sum(arrays, l2, n_rounds)

    def propose(
        self, gradient: dict[str, FloatArray], curvature: dict[str, FloatArray]
    ) -> dict[str, Array32]:
        """Return Newton's step for tables with a penalty on their sum: -(G + l2 phi) / (H + l2).

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
        """Return l2 / 2 times the sum of squares, after ``step`` times ``delta``."""
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
        if self._added is not None:
            size = sum(change.size for change in added.values())
            self._added.append(added)
            if (len(self._added) - 1) * size > self.MOST_KEPT:
                self._added = None

    def at_round(self, n_rounds: int | None) -> dict[str, Array32]:
        """Return the tables after the first ``n_rounds`` rounds, by default all."""
        if n_rounds is None or n_rounds >= self._n_rounds:
            return self.tables
        if self._added is None:
            raise ValueError(
                "the tables of this model are too large to be kept for every round: "
                "use all rounds, or train anew with fewer"
            )
        tables = dict(self._added[0])
        for added in self._added[1 : n_rounds + 1]:
            tables = {name: table + added[name] for name, table in tables.items()}
        return tables

    def mark(self, n_rounds: int) -> None:
        """Remember the tables, so that ``keep(n_rounds)`` works if rounds are not kept by then."""
        self._marked = n_rounds, dict(self.tables)

    def keep(self, n_rounds: int) -> None:
        """Drop the rounds after the first ``n_rounds``."""
        if self._added is None and self._marked is not None and self._marked[0] == n_rounds:
            self.tables = self._marked[1]
        else:
            self.tables = self.at_round(n_rounds)
        if self._added is not None:
            del self._added[n_rounds + 1 :]
        self._marked = None
        self._n_rounds = min(self._n_rounds, n_rounds)

    def changed(self, change: Callable[[str, Array32], Array32]) -> Tables:
        """Return tables of which each, and what every round added to it, is changed alike.

        ``change`` (name, table) -> table.
        """

        def all_of(tables: dict[str, Array32]) -> dict[str, FloatArray]:
            return {name: change(name, table) for name, table in tables.items()}

        if self._added is None:
            return Tables.from_sum(all_of(self.tables), self.l2, self._n_rounds)
        return Tables._summed(map(all_of, self._added), self.l2)

    @property
    def by_round(self) -> bool:
        """Whether what every round added is kept."""
        return self._added is not None

    def rounds(self) -> dict[str, Array32] | None:
        """Return (1 + rounds, ...) by name: the first tables and what rounds added; or None."""
        if self._added is None:
            return None
        return {name: np.stack([added[name] for added in self._added]) for name in self.tables}

    def rounds_alone(self) -> Iterator[Tables]:
        """Yield what every round added, which must be kept, as tables of their own."""
        assert self._added is not None
        for added in self._added[1:]:
            yield Tables(dict(added), self.l2)

    @classmethod
    def from_sum(cls, tables: dict[str, FloatArray], l2: float, n_rounds: int) -> Tables:
        """Return tables from the sum of rounds that are not kept: where `rounds` is None."""
        tables_of_sum = cls(tables, l2)
        tables_of_sum._added, tables_of_sum._n_rounds = None, n_rounds
        return tables_of_sum

    @classmethod
    def from_rounds(cls, rounds: dict[str, Array32], l2: float) -> Tables:
        """Return tables from what `rounds` returned."""
        n_stacked = len(next(iter(rounds.values())))
        return cls._summed(
            ({name: stacked[k] for name, stacked in rounds.items()} for k in range(n_stacked)), l2
        )

    @classmethod
    def _summed(cls, added: Iterable[dict[str, FloatArray]], l2: float) -> Tables:
        first, *rounds = added
        tables = cls(first, l2)
        for change in rounds:
            tables.accept(change, 1.0)
        return tables
