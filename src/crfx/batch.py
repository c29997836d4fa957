"""Batch: many instances stacked, never padded.

Rows are nodes (positions); instance ``i`` owns rows ``offsets[i]`` to ``offsets[i + 1]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.errors import BadInstance
from crfx.features.matrix import Matrix
from crfx.scores import IntArray


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """The first rows of instances, and the edges between their nodes.

    Parameters
    ----------
    offsets : (instances + 1,) int64
        Starts at 0 and never falls; equal neighbours are an empty instance, which is legal.
    parents : None or (rows,) int64
        In a forest: the parent's index within the instance, -1 at a root; any order, any number
        of roots.  Checked by ``Forest.check``: a batch does not know its structure.
    edge_types : None or (rows,) int32
        The type of the edge that ends at the row; ignored where none does.
    X : object
        Whatever potentials read; the batch does not use it.  Features that stay on disk (a
        `Matrix`) are read by `loaded`.
    allowed : None or (rows, K) bool
        The labels that a row may have; None: all.

    Notes
    -----
    Integer arrays of any width are accepted and normalised; floats, booleans and objects are not.
    O(instances), and O(rows) where ``parents`` or ``edge_types`` need conversion.
    """

    offsets: IntArray
    parents: IntArray | None = None
    edge_types: IntArray | None = None
    X: object = None
    allowed: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        offsets = _integers("offsets", self.offsets, np.int64)
        _check_offsets(offsets)
        object.__setattr__(self, "offsets", offsets)
        if self.parents is not None:
            object.__setattr__(self, "parents", self._per_row("parents", self.parents, np.int64))
        if self.edge_types is not None:
            types = self._per_row("edge_types", self.edge_types, np.int32)
            object.__setattr__(self, "edge_types", types)
        if self.allowed is not None and len(self.allowed) != self.n_rows:
            raise ValueError(f"allowed has {len(self.allowed)} rows, not {self.n_rows}")

    @classmethod
    def from_lengths(
        cls,
        lengths: npt.ArrayLike,
        *,
        parents: IntArray | None = None,
        edge_types: IntArray | None = None,
        X: object = None,
        allowed: npt.NDArray[np.bool_] | None = None,
    ) -> Batch:
        """Make a batch from the length of each instance."""
        counts = _integers("lengths", lengths, np.int64)
        negative = np.flatnonzero(counts < 0)
        if negative.size:
            first = int(negative[0])
            raise BadInstance(first, f"length {counts[first]} is negative")
        offsets = np.concatenate([[0], np.cumsum(counts)])
        if (offsets < 0).any():  # the sum went round
            raise ValueError("lengths add up to more than 64 bits hold")
        return cls(offsets, parents=parents, edge_types=edge_types, X=X, allowed=allowed)

    def parts(self, n_rows: int) -> list[Batch]:
        """Return the instances in batches of at most ``n_rows`` rows, or of one longer instance.

        Views of the rows of X where it is an array.
        """
        ends, first = self.offsets, 0
        batches: list[Batch] = []
        while first < self.n_instances or not batches:
            last = int(np.searchsorted(ends, ends[first] + n_rows, side="right")) - 1
            last = min(max(last, first + 1), self.n_instances)
            rows = slice(int(ends[first]), int(ends[last]))
            batches.append(self._between(first, last, _rows_of(self.X, rows)))
            first = last
        return batches

    def chunk_ends(self) -> IntArray:
        """Return (chunks + 1,) the first instance of every chunk of an X on disk, and the end.

        Chunks hold whole instances; an empty one between two chunks belongs to the second.
        """
        assert isinstance(self.X, Matrix)
        firsts = np.searchsorted(self.offsets, self.X.borders)
        firsts[0], firsts[-1] = 0, self.n_instances
        return firsts

    def loaded(self) -> Iterator[Batch]:
        """Yield batches whose X is in memory: this one, or its chunks, each read when needed."""
        if not isinstance(self.X, Matrix):
            yield self
            return
        ends = self.chunk_ends()
        for number in range(self.X.n_chunks):
            yield self._between(int(ends[number]), int(ends[number + 1]), self.X.chunk(number))

    def _between(self, first: int, last: int, X: object) -> Batch:
        """Return the instances ``first`` to ``last``, without the last."""
        rows = slice(int(self.offsets[first]), int(self.offsets[last]))
        return Batch.from_lengths(
            self.lengths[first:last],
            parents=None if self.parents is None else self.parents[rows],
            edge_types=None if self.edge_types is None else self.edge_types[rows],
            X=X,
            allowed=None if self.allowed is None else self.allowed[rows],
        )

    @property
    def n_instances(self) -> int:
        """Number of instances, empty ones included."""
        return len(self.offsets) - 1

    @property
    def n_rows(self) -> int:
        """Number of positions, over all instances."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> IntArray:
        """(instances,) number of rows of each instance."""
        return np.diff(self.offsets)

    @property
    def instance_of_row(self) -> IntArray:
        """(rows,) the instance that owns each row."""
        return np.repeat(np.arange(self.n_instances), self.lengths)

    @property
    def positions(self) -> IntArray:
        """(rows,) the position of each row within its instance."""
        return np.arange(self.n_rows) - np.repeat(self.offsets[:-1], self.lengths)

    def slice_of(self, instance: int) -> slice:
        """Return the rows of one instance."""
        if not 0 <= instance < self.n_instances:
            raise ValueError(f"instance {instance}: there are {self.n_instances} instances")
        return slice(int(self.offsets[instance]), int(self.offsets[instance + 1]))

    def locate(self, row: int) -> tuple[int, int]:
        """Return (instance, position) of a row, for messages.  O(log instances)."""
        if not 0 <= row < self.n_rows:
            raise ValueError(f"row {row}: there are {self.n_rows} rows")
        # side="right" steps over empty instances that start at the same row.
        instance = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return instance, int(row - self.offsets[instance])

    def place(self, row: int) -> str:
        """Return where a row is: its file, instance and position, in words."""
        return self.bad_row(row, "").place

    def bad_row(
        self, row: int | np.integer[Any], reason: str, unit: str = "instance"
    ) -> BadInstance:
        """Return the error that a row is wrong, with its instance, position and file."""
        instance, position = self.locate(int(row))
        file = self.X.name_of(int(row)) if isinstance(self.X, Matrix) else None
        return BadInstance(instance, reason, position, file, unit=unit)

    def check_labels(self, labels: npt.ArrayLike, n_labels: int) -> IntArray:
        """Return ``labels`` (rows,) as int64, or raise and name the first bad code.  O(rows)."""
        codes = self._per_row("labels", labels, np.int64)
        bad = np.flatnonzero((codes < 0) | (codes >= n_labels))
        if bad.size:
            raise self.bad_row(
                bad[0],
                f"label code {codes[bad[0]]} is out of range, there are {n_labels} labels "
                f"(0 to {n_labels - 1})",
            )
        return codes

    def _per_row(self, name: str, value: npt.ArrayLike, dtype: type[np.signedinteger]) -> IntArray:
        array = _integers(name, value, dtype)
        if len(array) != self.n_rows:
            raise ValueError(
                f"{name} has {len(array)} entries but the instances have {self.n_rows} rows in "
                "all: pass one entry per row"
            )
        return array


def _rows_of(X: Any, rows: slice) -> Any:
    if X is None:
        return None
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _integers(name: str, value: npt.ArrayLike, dtype: type[np.signedinteger]) -> IntArray:
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal lengths
        raise ValueError(f"{name} is no plain list: it must have one axis") from None
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: it must have one axis")
    # An empty list has dtype float64; it holds no float, so let it pass.
    if array.dtype.kind not in "iu" and array.size:
        raise ValueError(f"{name} has dtype {array.dtype}: pass integers")
    if array.size and not np.can_cast(array.dtype, dtype):
        low, high, limits = int(array.min()), int(array.max()), np.iinfo(dtype)
        if low < limits.min or high > limits.max:
            raise ValueError(f"{name} holds values beyond {limits.bits} bits: number from 0")
    return np.ascontiguousarray(array, dtype=dtype)


def _check_offsets(offsets: IntArray) -> None:
    if not len(offsets) or offsets[0] != 0:
        raise ValueError(
            "offsets must start at 0 and have one entry more than there are instances; "
            f"got {_start_of(offsets)}"
        )
    falls = np.flatnonzero(offsets[1:] < offsets[:-1])
    if falls.size:
        first = int(falls[0])
        raise BadInstance(
            first,
            f"offsets fall from {offsets[first]} to {offsets[first + 1]}; an instance cannot have "
            "a negative length",
        )


def _start_of(array: IntArray) -> str:
    shown = ", ".join(map(str, array[:3].tolist()))
    return f"[{shown}, ...]" if len(array) > 3 else f"[{shown}]"
