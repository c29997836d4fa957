"""Feature matrices of every kind: one stacked array, CSR matrix or data frame; or chunks on disk.

Rows are positions.  For trees absent CSR entries and NaN are missing; for linear functions they
count as 0.  A zero in a dense array is a value.  A matrix in memory is never wrapped; `Matrix` is
one that stays on disk, and the functions here that say so take both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.errors import BadInstance

IntArray = npt.NDArray[np.integer[Any]]

_LARGEST = np.finfo(np.float32).max


class Matrix:
    """(rows, features) on disk, in chunks that follow each other; ``load(k)`` reads chunk k.

    It has a shape but no entries: read one chunk after the other, and release each before the next.
    ``no_rows`` is a plain matrix of the same kind and columns without rows; ``names`` are those of
    the chunks, for messages.
    """

    ndim = 2

    def __init__(
        self,
        lengths: Sequence[int],
        no_rows: Any,
        load: Callable[[int], Any],
        names: Sequence[str] = (),
    ) -> None:
        self.lengths = list(lengths)
        self.borders = np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])
        self.shape = int(self.borders[-1]), int(no_rows.shape[1])
        self.no_rows = no_rows
        self.names = list(names)
        self._load = load

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_chunks(self) -> int:
        """The number of chunks."""
        return len(self.lengths)

    def rows(self, number: int) -> slice:
        """Return the rows of a chunk."""
        return slice(int(self.borders[number]), int(self.borders[number + 1]))

    def name_of(self, row: int) -> str | None:
        """Return the name of the chunk of a row; None if chunks have no names."""
        if not self.names:
            return None
        return self.names[int(np.searchsorted(self.borders, row, side="right")) - 1]

    def chunk(self, number: int) -> Any:
        """Read a chunk: (its rows, features), an array, a CSR matrix or a data frame."""
        return self._load(number)

    def chunks(self) -> Iterator[tuple[slice, Any]]:
        """Yield the rows of each chunk and the chunk, in order."""
        for number in range(self.n_chunks):
            yield self.rows(number), self.chunk(number)

    def joined(self, numbers: Sequence[int]) -> Any:
        """Read some chunks that follow each other as one plain matrix."""
        parts = [self.chunk(number) for number in numbers]
        return parts[0] if len(parts) == 1 else joined(parts)

    def mapped(self, change: Callable[[Any], Any]) -> Matrix:
        """Return the matrix with ``change`` made to each chunk as it is read: not to its rows."""
        return Matrix(
            self.lengths, change(self.no_rows), lambda k: change(self._load(k)), self.names
        )

    def checked(self, check: Callable[[slice, Any], None]) -> Matrix:
        """Return the matrix with ``check`` called on each chunk when it is read first."""
        seen: set[int] = set()

        def load(number: int) -> Any:
            chunk = self._load(number)
            if number not in seen:
                check(self.rows(number), chunk)
            seen.add(number)
            return chunk

        return Matrix(self.lengths, self.no_rows, load, self.names)

    def take(self, rows: IntArray) -> Matrix:
        """Return some rows, which must rise; each chunk is cut when it is read."""
        if (np.diff(rows) <= 0).any():
            raise ValueError("rows of a matrix that stays on disk are taken in their order")
        cuts = np.searchsorted(rows, self.borders)
        kept = [rows[cuts[k] : cuts[k + 1]] - self.borders[k] for k in range(self.n_chunks)]

        def load(number: int) -> Any:
            if not len(kept[number]):
                return self.no_rows
            chunk = self._load(number)
            return chunk if len(kept[number]) == chunk.shape[0] else take_rows(chunk, kept[number])

        return Matrix([len(part) for part in kept], self.no_rows, load, self.names)


def is_on_disk(X: Any) -> TypeGuard[Matrix]:
    """Return whether X stays on disk, and so is read a chunk at a time."""
    return isinstance(X, Matrix)


def chunks(X: Any) -> Iterator[tuple[slice, Any]]:
    """Yield rows and plain matrices: X itself, or its chunks, each read when asked for."""
    return X.chunks() if isinstance(X, Matrix) else iter([(slice(0, X.shape[0]), X)])


def by_chunk(X: Any, work: Callable[[Any], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return (rows, ...) that ``work`` computes of plain matrices: of X, or of its chunks."""
    if isinstance(X, Matrix):
        return np.concatenate([work(chunk) for _, chunk in X.chunks()])
    return work(X)


def mapped(X: Any, change: Callable[[Any], Any]) -> Any:
    """Return X with a change that keeps its rows; a chunk on disk is changed when it is read."""
    return X.mapped(change) if isinstance(X, Matrix) else change(X)


def no_rows(X: Any) -> Any:
    """Return a plain matrix of the kind and columns of X without rows."""
    return X.no_rows if isinstance(X, Matrix) else take_rows(X, np.zeros(0, np.int64))


def whole(X: Any, why: str) -> Any:
    """Return X if it is in memory; raise ValueError with ``why`` if it stays on disk."""
    if isinstance(X, Matrix):
        raise ValueError(why)
    return X


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame (pandas); without importing it."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def unwrapped(X: Any) -> Any:
    """Return X as an array if it is something that NumPy knows how to read (``__array__``)."""
    if hasattr(X, "__dask_graph__"):
        raise ValueError(
            "X or y is held by Dask: call fit or predict within crfx.distributed.cluster(client), "
            "or pass what is computed, X.compute()"
        )
    is_known = hasattr(X, "shape") or isinstance(X, list | tuple)
    return np.asarray(X) if hasattr(X, "__array__") and not is_known else X


def stack(instances: Sequence[Any]) -> tuple[Any, list[int]]:
    """Stack the features of instances, (length, features) each; return them and the lengths."""
    if any(is_frame(X) for X in instances):
        return _stack_frames(instances)
    if any(sparse.issparse(X) for X in instances):
        parts = [_csr(X, instance) for instance, X in enumerate(instances)]
        _check_columns([part.shape for part in parts])
        return sparse.vstack(parts, format="csr"), [part.shape[0] for part in parts]
    arrays = [_array(X, instance) for instance, X in enumerate(instances)]
    _check_columns([array.shape for array in arrays])
    return np.concatenate(arrays), [len(array) for array in arrays]


def joined(chunks: Sequence[Any]) -> Any:
    """Join chunks of one matrix, which agree on what their columns hold.

    Of data frames a column may be whole numbers in one chunk and fractions in another, where some
    are missing: fractions then.
    """
    if not is_frame(chunks[0]):
        return stack(chunks)[0]
    import pandas

    return pandas.concat(chunks, ignore_index=True)


def stacked(X: Any) -> Any:
    """Normalise one stacked matrix."""
    if is_frame(X):
        _check_frame(X, None)
        return X
    return _csr(X, None) if sparse.issparse(X) else _array(X, None)


def is_sparse(X: Any) -> bool:
    """Return whether absent entries are missing, also of features that stay on disk."""
    return bool(sparse.issparse(X.no_rows if isinstance(X, Matrix) else X))


def take_rows(X: Any, rows: IntArray) -> Any:
    """Return some rows, in the order given; what stays on disk stays there."""
    if isinstance(X, Matrix):
        return X.take(rows)
    return X.iloc[rows] if is_frame(X) else X[rows]


def inputs_at(X: Any, row: int, columns: IntArray) -> list[Any]:
    """Return the values of some columns of a row, to be shown: None where one is missing."""
    if is_frame(X):
        values = X.iloc[[row], columns]
        pairs = zip(columns.tolist(), values.isna().to_numpy()[0], strict=True)
        return [None if is_missing else X.iat[row, column] for column, is_missing in pairs]
    if sparse.issparse(X):
        entries = single_entries(X[row])
        numbers = entries.data.astype(np.float64).tolist()
        stored = dict(zip(entries.indices.tolist(), numbers, strict=True))
        return [stored.get(column) for column in columns.tolist()]
    return [None if value != value else value for value in X[row, columns].astype(float).tolist()]


def is_categorical(column: Any) -> bool:
    """Return whether a column of a data frame holds categories."""
    return hasattr(column, "cat") and hasattr(column.cat, "categories")


def single_entries(X: Any) -> Any:
    """Return CSR with every entry once, added up in float32 where it is there twice."""
    if X.has_canonical_format:
        return X
    # Not X.astype: it adds doubles up first, and they may be of int8.
    arrays = (X.data.astype(np.float32), X.indices.copy(), X.indptr.copy())
    single = sparse.csr_matrix(arrays, shape=X.shape)
    single.sum_duplicates()
    return single


def first_infinite(X: Any) -> tuple[int, int] | None:
    """Return (row, column) of the first number that is infinite, or too large for float32; or None.

    Of a dense array, CSR matrix or data frame; what stays on disk is checked when it is read.
    """
    if is_on_disk(X):
        return None
    if is_frame(X):
        firsts = []
        for column, dtype in enumerate(X.dtypes):
            if getattr(dtype, "kind", "O") == "f":  # integers and categories are finite
                values = X.iloc[:, column].to_numpy(dtype=np.float64, na_value=np.nan)
                rows = np.flatnonzero(np.abs(values) > _LARGEST)
                firsts += [(int(row), column) for row in rows[:1]]
        return min(firsts, default=None)
    values = X.data if sparse.issparse(X) else X
    # The extremes are NaN where an entry is: two passes without a temporary array.
    if values.dtype.kind != "f" or not values.size:
        return None
    if values.min() >= -_LARGEST and values.max() <= _LARGEST:
        return None
    if sparse.issparse(X):
        at = np.flatnonzero(np.abs(values) > _LARGEST)
        rows, columns = X.tocoo().coords
        return None if not len(at) else (int(rows[at[0]]), int(columns[at[0]]))
    for begin in range(0, len(X), 65536):
        bad = np.argwhere(np.abs(X[begin : begin + 65536]) > _LARGEST)
        if len(bad):
            return begin + int(bad[0, 0]), int(bad[0, 1])
    return None


def infinite_feature(column: int) -> str:
    """Say what is wrong with a number that float32 does not have."""
    return f"feature {column} is infinite, or too large for float32; NaN marks a missing value"


def _bad_features(instance: int | None, reason: str) -> ValueError:
    """Return the error that X, or the X of one instance, ``reason``, such as "has no rows"."""
    reason = f"X{reason}" if reason.startswith(":") else f"X {reason}"
    return ValueError(reason) if instance is None else BadInstance(instance, reason)


def _csr(X: Any, instance: int | None) -> Any:
    """Return CSR of two axes and of numbers."""
    if not sparse.issparse(X):
        _array(X, instance)
        raise _bad_features(
            instance, "is dense, but others are sparse, where zeros are missing: use one kind"
        )
    if X.ndim != 2:
        raise _bad_features(instance, f"has shape {X.shape}: it must be (positions, features)")
    if X.dtype.kind not in "fiub":
        raise _bad_features(instance, f"has dtype {X.dtype}: pass real numbers")
    try:
        matrix = sparse.csr_matrix(X)
        matrix.check_format(full_check=True)  # wrong column numbers would be read from anywhere
    except ValueError as error:
        raise _bad_features(instance, f"is no valid sparse matrix: {error}") from None
    return matrix


def _array(X: Any, instance: int | None) -> Any:
    """Return an array of two axes and of numbers."""
    if isinstance(X, str | dict):
        raise _bad_features(
            instance,
            f"is one {type(X).__name__}: an instance is a list of positions (a sentence: its "
            "words, text.split()); wrap a single instance in a list, [X]",
        )
    if isinstance(X, np.ma.MaskedArray):
        raise _bad_features(instance, "is a masked array: put NaN where a value is missing")
    try:
        array = np.asarray(X)
    except ValueError:
        raise _bad_features(instance, "has rows of unequal lengths") from None
    if array.ndim != 2:
        remedy = ""
        if array.ndim == 1:
            remedy = (
                ". Reshape your data: x.reshape(-1, 1) where it is one feature of many positions; "
                "if X is a list of rows, it is one matrix, np.array(X)"
            )
        reason = f"has shape {array.shape}: it must be (positions, features){remedy}"
        raise _bad_features(instance, reason)
    if array.dtype.kind not in "fiub":
        remedy = "pass numbers, or a data frame with categorical columns"
        if array.dtype.kind == "c":
            remedy = "Complex data not supported"
        raise _bad_features(instance, f"has dtype {array.dtype}: {remedy}")
    return array if array.dtype.kind == "f" else array.astype(np.float32)


def _stack_frames(instances: Sequence[Any]) -> tuple[Any, list[int]]:
    import pandas

    first = instances[0]
    for instance, frame in enumerate(instances):
        if not is_frame(frame):
            raise BadInstance(instance, "X is no data frame, but others are")
        if instance == 0:
            _check_frame(frame, 0)
        if list(frame.columns) != list(first.columns):
            raise BadInstance(instance, "its columns differ from those of {other}")
        if not frame.dtypes.equals(first.dtypes):
            raise BadInstance(
                instance,
                "its column types (or categories) differ from those of {other}: convert the whole "
                "data frame before you split it",
            )
    return pandas.concat(instances, ignore_index=True), [len(frame) for frame in instances]


def _check_frame(X: Any, instance: int | None) -> None:
    """Raise ValueError unless names occur once and columns hold numbers, truths or categories."""
    names = [str(name) for name in X.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise _bad_features(instance, f"has two columns {twice!r}")
    for name, dtype, column in zip(names, X.dtypes, X.columns, strict=True):
        if getattr(dtype, "kind", "O") in "fiub" or is_categorical(X[column]):
            continue
        raise _bad_features(
            instance,
            f": column {name!r} has dtype {dtype}: make it a category, for the whole data frame "
            f"and before you split it: frame.astype({{{name!r}: 'category'}})",
        )


def _check_columns(shapes: Sequence[tuple[int, ...]]) -> None:
    for instance, shape in enumerate(shapes):
        if shape[1] != shapes[0][1]:
            raise BadInstance(instance, f"X has {shape[1]} features, {{other}} has {shapes[0][1]}")
