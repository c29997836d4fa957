"""Places at which the values of a feature are cut into bins, between which trees split.

The same rows give the same bins, bit by bit, in memory or on disk, with one worker or with several
that have one part after the other: so they give the same trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.features.matrix import (
    chunks,
    is_categorical,
    is_frame,
    is_on_disk,
    is_sparse,
    no_rows,
    single_entries,
)
from crfx.features.tree_rows import as_numbers
from crfx.workers import ALONE, Workers, place

Array32 = npt.NDArray[np.float32]
Array64 = npt.NDArray[np.int64]

MOST_ROWS = 2**17
"""Rows of dense features, and entries of a sparse one, that are sampled at equal distances: some
500 for each of 256 bins, whose sizes then differ by some 5 %."""
MOST_VALUES, FEWEST_ROWS = 2**25, 2**14
"""Values of dense features that are sampled, 128 MiB, unless so few rows have more: no more is
copied of wide matrices."""
MOST_ENTRIES = 2**23
"""Entries of all sparse features that are sampled, unless `FEWEST_ROWS` of each are more: with
their counts 128 MiB, and four times that while they are sorted."""
_VALUES_AT_ONCE = 2**22
"""Values of dense features that are sorted, and sent to other workers, at a time: 16 MiB."""
_ROWS_AT_ONCE = 2**16


def quantile_points(X: Any, max_bin: int, workers: Workers = ALONE) -> Any:
    """Return (up to ``max_bin``, features) CSR: where the bins of each column begin, top to bottom.

    These are all values of a column that has at most ``max_bin``; otherwise values at equal
    distances in rank (once frequent values have bins of their own), the smallest and the largest
    among them.  Missing values do not count.  Of categories they are all codes, however many.

    Every worker must make this call, even without rows; all get the same result.  It reads X once
    (sparse features twice, if there are many rows) and sorts up to `MOST_ROWS` values of a column,
    fewer if there are more than 256 dense columns or more than `MOST_ENTRIES` of sparse ones.
    """
    if is_sparse(X):
        return _table(*_sparse_points(X, max_bin, workers))
    points = [
        np.arange(n_categories, dtype=np.float32) if n_categories else values
        for values, n_categories in zip(
            _dense_points(X, max_bin, workers), category_counts(X), strict=True
        )
    ]
    return _table(np.concatenate(points), np.array([len(values) for values in points]))


def category_counts(X: Any) -> list[int]:
    """Return the number of categories of each column; 0 for numbers."""
    empty = no_rows(X)
    if not is_frame(empty):
        return [0] * X.shape[1]
    columns = (empty[name] for name in empty.columns)
    return [len(column.cat.categories) if is_categorical(column) else 0 for column in columns]


def _table(values: Array32, lengths: Array64) -> Any:
    """Return CSR from the values of one column after the other, from top to bottom."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    places = np.arange(len(values)) - np.repeat(starts[:-1], lengths)
    shape = int(lengths.max(initial=0)), len(lengths)
    return sparse.csc_matrix((values, places, starts), shape=shape).tocsr()


def _spread(counts: Array64, most: int) -> Array64:
    """Return the places of at most ``most`` of different, rising values with these ``counts``.

    A frequent value counts as often as fills a bin, which leaves the other bins to the others.
    """
    if len(counts) <= most:
        return np.arange(len(counts))
    while counts.max() > (share := -(-int(counts.sum()) // most)):
        counts = np.minimum(counts, share)
    ends = np.cumsum(counts)
    ranks = np.arange(most) * (ends[-1] - 1) // (most - 1)
    return np.unique(np.searchsorted(ends, ranks, side="right"))


def _starts(rising: npt.NDArray[Any]) -> Array64:
    """Return where each value comes first."""
    is_first = np.ones(len(rising), bool)
    np.not_equal(rising[1:], rising[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


# Dense features: a sample of the rows, the same ones however rows are shared out.


def _dense_points(X: Any, max_bin: int, workers: Workers) -> list[Array32]:
    rows = _some_rows(X, workers)
    at_once = _VALUES_AT_ONCE // MOST_ROWS
    points: list[Array32] = []
    for first in range(0, X.shape[1], at_once):
        block = np.ascontiguousarray(rows[:, first : first + at_once].T)
        values = np.concatenate(workers.gather(block), axis=1)
        values += 0.0  # -0 is 0
        values.sort(axis=1)
        for column in values:
            present = column[: np.searchsorted(column, np.nan)]  # NaN comes last
            starts = _starts(present)
            counts = np.diff(starts, append=len(present))
            points.append(present[starts[_spread(counts, max_bin)]])
    return points


def _some_rows(X: Any, workers: Workers) -> Array32:
    """Return (some, features) rows at equal distances among those of all workers.

    If these are not all rows, the first worker adds the smallest and the largest value of each
    column: a rare value must not be lost.
    """
    n_rows, before = place(workers, X.shape[0])
    most = min(MOST_ROWS, max(FEWEST_ROWS, MOST_VALUES // X.shape[1]))
    stride = -(-n_rows // most) or 1
    first = -before % stride
    n_sampled = len(range(first, X.shape[0], stride))
    sample = np.empty((n_sampled + 2, X.shape[1]), np.float32)
    extremes, end = np.full((2, X.shape[1]), np.nan, np.float32), 0
    for rows in _blocks(X):
        taken = rows[first::stride]
        sample[end : end + len(taken)] = taken
        end, first = end + len(taken), (first - len(rows)) % stride
        if stride > 1:
            extremes = _extremes([extremes, _extremes([rows])])
    if stride == 1:
        return sample[:-2]
    sample[-2:] = _extremes(workers.gather(extremes))
    return sample if workers.rank == 0 else sample[:-2]


def _blocks(X: Any) -> Iterator[Array32]:
    """Yield (some, features) rows as numbers, categories by their codes."""
    for _, chunk in chunks(X):
        for begin in range(0, chunk.shape[0], _ROWS_AT_ONCE):
            rows = slice(begin, begin + _ROWS_AT_ONCE)
            yield as_numbers(chunk.iloc[rows] if is_frame(chunk) else chunk[rows])[0]


def _extremes(parts: list[Array32]) -> Array32:
    """Return (2, features) the smallest and the largest values, NaN if there are none."""
    rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.stack([np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)])


# Sparse features: all entries, since a column may have few; of very many a sample.


def _sparse_points(X: Any, max_bin: int, workers: Workers) -> tuple[Array32, Array64]:
    """Return the points of one column after the other, and how many each has."""
    keys, counts = _counted_keys(X, workers)
    ends = np.searchsorted(keys >> 32, np.arange(X.shape[1] + 1))
    is_kept = np.ones(len(keys), bool)
    for column in np.flatnonzero(np.diff(ends) > max_bin):
        begin, end = ends[column : column + 2]
        is_kept[begin:end] = False
        is_kept[begin + _spread(counts[begin:end], max_bin)] = True
    kept = keys[is_kept]
    return _values(kept), np.bincount(kept >> 32, minlength=X.shape[1])


def _counted_keys(X: Any, workers: Workers) -> tuple[Array64, Array64]:
    """Return the different entries of all workers as rising keys, and how often they occur."""
    strides, before = _entry_strides(X, workers)
    parts = [_merged([])]
    for _, chunk in chunks(X):
        entries = single_entries(chunk).tocsc()
        keys = np.sort(_keys(entries, strides, before), kind="stable")  # indicators are sorted
        starts = _starts(keys)
        parts.append((keys[starts], np.diff(starts, append=len(keys))))
        before = before + np.diff(entries.indptr)
        # Not every time: the keys of earlier chunks would be sorted again and again.
        if sum(len(keys) for keys, _ in parts[1:]) > len(parts[0][0]):
            parts = [_merged(parts)]
    return _merged(workers.gather(_merged(parts)))


def _merged(parts: list[tuple[Array64, Array64]]) -> tuple[Array64, Array64]:
    """Return different keys, rising, and how often they occur in all parts."""
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(parts) == 1:
        return parts[0]
    keys, counts = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    starts = _starts(keys[order])
    return keys[order[starts]], np.add.reduceat(counts[order], starts)


def _entry_strides(X: Any, workers: Workers) -> tuple[Array64, Array64]:
    """Return (features,) distances between sampled entries, and entries of the workers before."""
    counts = np.zeros(X.shape[1], np.int64)
    most = X.shape[0] * X.shape[1] if is_on_disk(X) else X.nnz
    n_rows, n_entries = place(workers, np.array([X.shape[0], most]))[0]
    if n_rows <= (MOST_ROWS if n_entries <= MOST_ENTRIES else min(MOST_ROWS, FEWEST_ROWS)):
        return counts + 1, counts  # no column has more entries than are sampled in any case
    for _, chunk in chunks(X):
        counts += np.bincount(single_entries(chunk).indices, minlength=X.shape[1])
    counts, before = place(workers, counts)
    return np.maximum(-(-counts // _most_of_each(counts)), 1), before


def _most_of_each(counts: Array64) -> int:
    """Return how many entries of a column are sampled, if it has so many.

    Columns with fewer entries leave the rest of `MOST_ENTRIES` to the others.
    """
    rising = np.sort(counts)
    left = MOST_ENTRIES - (np.cumsum(rising) - rising)
    shares = left // np.arange(len(counts), 0, -1)
    too_many = np.flatnonzero(rising > shares)
    most = int(shares[too_many[0]]) if len(too_many) else MOST_ROWS
    return min(MOST_ROWS, max(FEWEST_ROWS, most))


def _keys(entries: Any, strides: Array64, before: Array64) -> Array64:
    """Return keys that sort as (column, value), of the sampled entries of a CSC matrix."""
    lengths = np.diff(entries.indptr)
    values = entries.data.astype(np.float32) + np.float32(0)  # -0 is 0
    taken = values == values
    if strides.max(initial=1) > 1:
        numbers = np.arange(len(values)) - np.repeat(entries.indptr[:-1] - before, lengths)
        taken &= numbers % np.repeat(strides, lengths) == 0
    bits = values.view(np.int32)
    # The bits of floats sort as whole numbers do, but of negative ones the wrong way round.
    low = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64) + 2**31
    low += np.repeat(np.arange(len(lengths)) << 32, lengths)
    keys: Array64 = low[taken]
    return keys


def _values(keys: Array64) -> Array32:
    """Return the values that keys stand for."""
    bits = ((keys & 0xFFFFFFFF) - 2**31).astype(np.int32)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).view(np.float32)
