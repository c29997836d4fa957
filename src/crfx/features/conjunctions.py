"""Conjunctions of columns: products of some columns of a sparse matrix, as columns of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.features.matrix import single_entries

Ints = npt.NDArray[np.int64]

MOST_PAIRS = 5_000_000
"""Pairs of entries that are searched for pairs of columns: some 200 MB."""

MOST_AT_ONCE = 200_000
"""Entries of the rarest columns that are multiplied at once, so that they stay in the cache."""


@dataclass(frozen=True, eq=False)
class Conjunctions:
    """Sets of columns; the value of a conjunction is the product of the values of its columns.

    Set k is ``columns[starts[k]:starts[k + 1]]``, rising.
    """

    starts: Ints
    columns: Ints

    @classmethod
    def of(cls, sets: Iterable[Iterable[int]]) -> Conjunctions:
        """Return the conjunctions of sets of column numbers."""
        ordered = [sorted(set(columns)) for columns in sets]
        starts = np.cumsum([0, *map(len, ordered)]).astype(np.int64)
        return cls(starts, np.array(list(chain.from_iterable(ordered)), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def sets(self) -> list[tuple[int, ...]]:
        """Return the column numbers of every conjunction."""
        columns = self.columns.tolist()
        return [tuple(columns[begin:end]) for begin, end in pairwise(self.starts.tolist())]

    def joined(self, more: Conjunctions) -> Conjunctions:
        """Return these conjunctions, then ``more``."""
        starts = np.concatenate([self.starts, self.starts[-1] + more.starts[1:]])
        return Conjunctions(starts, np.concatenate([self.columns, more.columns]))

    def take(self, chosen: npt.NDArray[np.integer[Any]]) -> Conjunctions:
        """Return some of them, in the order of ``chosen``."""
        sets = self.sets()
        return Conjunctions.of(sets[k] for k in chosen.tolist())

    def of_matrix(self, X: Any) -> Any:
        """Return (rows, conjunctions) CSR of float32, without zeros.

        The other columns are looked up where the rarest column of each conjunction has entries:
        O(sum over conjunctions of size times the count of the rarest column).
        """
        X = canonical(X)
        columns, by_column = self._rarest_first(X), X.tocsc()
        counts = np.diff(by_column.indptr).astype(np.int64)[columns[self.starts[:-1]]]
        groups = (np.cumsum(counts) - counts) // MOST_AT_ONCE
        borders = np.flatnonzero(np.diff(groups)) + 1
        parts = [
            self._entries(numbers, columns, X, by_column)
            for numbers in np.split(np.arange(len(self)), borders)
        ]
        which, rows, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        return sparse.csr_matrix((values, (rows, which)), shape=(X.shape[0], len(self)))

    def _entries(
        self, numbers: Ints, columns: Ints, X: Any, by_column: Any
    ) -> tuple[Any, Any, Any]:
        """Return numbers, rows and values of the entries of some conjunctions; X as CSR and CSC."""
        sizes = np.diff(self.starts)
        chosen, at = _ranges(by_column.indptr.astype(np.int64), columns[self.starts[numbers]])
        which = numbers[chosen]
        rows, values = by_column.indices[at].astype(np.int64), by_column.data[at]
        for place in range(1, int(sizes[numbers].max(initial=1))):
            longer = np.flatnonzero(sizes[which] > place)
            others = columns[self.starts[which[longer]] + place]
            factors = np.ones(len(which), np.float32)
            if len(longer):
                factors[longer] = np.asarray(X[rows[longer], others]).reshape(-1)
            values = values * factors
            kept = np.flatnonzero(values)
            which, rows, values = which[kept], rows[kept], values[kept]
        return which, rows, values

    def _rarest_first(self, X: Any) -> Ints:
        """Return the columns, those of each set ordered by how often they occur."""
        counts = np.bincount(X.indices, minlength=X.shape[1])
        owner = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return self.columns[np.lexsort((counts[self.columns], owner))]

    def widened(self, X: Any) -> Any:
        """Return X, CSR, with the conjunctions after its columns."""
        return sparse.hstack([X, self.of_matrix(X)], format="csr", dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of columns that occur together, and (entries,) which pair, row and value."""

    left: Ints
    right: Ints
    which: Ints
    rows: Ints
    values: npt.NDArray[np.float32]


def pairs_in(X: Any, rows: Ints, most: int = MOST_PAIRS) -> Pairs:
    """Return all pairs of columns that are not 0 together at some rows of a canonical CSR matrix.

    Whole rows are searched until there are ``most`` pairs of entries; a row that has more by itself
    is left out.  O(pairs of entries) in time, up to a logarithm, and in memory.
    """
    counts = np.diff(X.indptr).astype(np.int64)[rows]
    entries = counts * (counts - 1) // 2
    small = entries <= most
    rows, counts, entries = rows[small], counts[small], entries[small]
    rows = rows[np.concatenate([[0], np.cumsum(entries)])[:-1] < most]
    counts = counts[: len(rows)]
    codes, owners, values = [], [], []
    for size in np.unique(counts[counts > 1]):
        sized = rows[counts == size]
        at = X.indptr[sized].astype(np.int64)[:, None] + np.arange(size)
        first, second = np.triu_indices(size, 1)
        columns, numbers = X.indices[at].astype(np.int64), X.data[at].astype(np.float32)
        codes.append((columns[:, first] * X.shape[1] + columns[:, second]).reshape(-1))
        values.append((numbers[:, first] * numbers[:, second]).reshape(-1))
        owners.append(np.repeat(sized, len(first)))
    if not codes:
        none = np.zeros(0, np.int64)
        return Pairs(none, none, none, none, np.zeros(0, np.float32))
    distinct, which = np.unique(np.concatenate(codes), return_inverse=True)
    left, right = np.divmod(distinct, X.shape[1])
    return Pairs(left, right, which, np.concatenate(owners), np.concatenate(values))


def canonical(X: Any) -> Any:
    """Return CSR whose rows are sorted, without doubles and zeros; X itself does not change."""
    single = single_entries(X)
    if single.data.all():
        return single
    single = sparse.csr_matrix(single, dtype=np.float32, copy=True)
    single.eliminate_zeros()
    return single


def column_keys(X: Any) -> npt.NDArray[np.uint64]:
    """Return (columns,) hashes of the columns of a canonical X."""
    random = np.random.default_rng(0)  # any numbers do, but always the same
    marks = random.integers(1, 2**63, size=X.shape[0], dtype=np.uint64)
    columns = X.tocsc()
    bits = columns.data.astype(np.float32).view(np.uint32).astype(np.uint64)
    odd = 2 * bits + 1  # the bits of 1.0 end in zeros, which would erase most of a mark
    total = np.concatenate([[np.uint64(0)], np.cumsum(marks[columns.indices] * odd)])
    keys: npt.NDArray[np.uint64] = total[columns.indptr[1:]] - total[columns.indptr[:-1]]
    return keys


def readable(sets: Sequence[tuple[int, ...]], names: Sequence[str] | None) -> list[tuple[Any, ...]]:
    """Return sets of column numbers as sets of names, if there are names."""
    if names is None:
        return list(sets)
    return [tuple(names[column] for column in columns) for columns in sets]


def _ranges(starts: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """Return (entries,) which chosen range starts[c] to starts[c + 1], and the place in it."""
    sizes = starts[chosen + 1] - starts[chosen]
    which = np.repeat(np.arange(len(chosen)), sizes)
    begins = np.cumsum(sizes) - sizes
    return which, np.arange(len(which)) + (starts[chosen] - begins)[which]
