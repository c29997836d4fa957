"""X of any kind as one matrix, with the lengths of its instances and the columns that it has.

`agreed_rows` does so for workers that train together: all of them get the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.features.columns import Columns, united
from crfx.features.matrix import (
    first_infinite,
    infinite_feature,
    is_frame,
    is_on_disk,
    is_sparse,
    mapped,
    no_rows,
    stack,
    stacked,
    unwrapped,
)
from crfx.features.words import Numbering, Total, encodes_itself, peek
from crfx.io.shards import ShardFeatures, is_sharded
from crfx.messages import shown, warn
from crfx.workers import agreed, current

LEAST_ROWS = 2
"""Rows at the end of an instance that look like padding; a single one may have been measured."""
SWAPPED = "are X and y swapped?"


@dataclass(frozen=True, eq=False)
class Rows:
    """A stacked matrix, the lengths of its instances, its columns, and whether X was a list.

    X of shards also has a batch, and perhaps weights of instances.  Documents in one matrix have no
    lengths: ``group`` has them.
    """

    matrix: Any
    lengths: Any
    columns: Columns
    as_list: bool
    batch: Batch | None = None
    weights: npt.NDArray[Any] | None = None

    def split(self, values: npt.NDArray[Any]) -> Any:
        """Return (rows,) as a list per instance if X was a list, otherwise as it is."""
        return np.split(values, np.cumsum(self.lengths)[:-1]) if self.as_list else values

    def frequent(
        self, min_count: int, known: Columns | None, total: Total = lambda counts: counts
    ) -> Rows:
        """Leave out names of rare features that were learned now; keep those of ``known`` columns.

        ``total`` as in `Vocabulary.frequent`.
        """
        vocabulary = self.columns.vocabulary
        if vocabulary is None or self.columns is known:
            return self
        n_known = 0 if known is None else known.n
        matrix, kept = vocabulary.frequent(self.matrix, min_count, n_known, total)
        if kept is vocabulary:
            return self
        return replace(self, matrix=matrix, columns=Columns.of_words(kept))

    def with_columns(self, columns: Columns) -> Rows:
        """Renumber names and categories as ``columns`` of all workers have them."""
        if self.columns is columns:
            return self
        if self.columns.vocabulary is None:
            matrix = mapped(self.matrix, columns.matched)
        else:
            assert columns.vocabulary is not None
            matrix = self.columns.vocabulary.renumbered(self.matrix, columns.vocabulary)
        return replace(self, matrix=matrix, columns=columns)


def read_rows(
    X: Any,
    lengths: Any = None,
    columns: Columns | None = None,
    *,
    training: bool = False,
    grows: bool = False,
    numbering: Numbering | None = None,
) -> Rows:
    """Stack X if it is a list of instances.

    ``columns`` are those of a fitted model, which X must have too.  If they are names of features
    and ``grows``, new names, rare ones included, are added to a copy of them; see `Rows.frequent`.
    """
    if is_sharded(X):
        rows = sharded_rows(X, {"lengths": lengths}, columns, training)
    else:
        rows = _rows_in_memory(X, lengths, columns, training, grows, numbering or Numbering())
    if numbering is not None:
        numbering.check(rows.columns.vocabulary)
    return rows


def _rows_in_memory(
    X: Any,
    lengths: Any,
    columns: Columns | None,
    training: bool,
    grows: bool,
    numbering: Numbering,
) -> Rows:
    X = unwrapped(X)
    instances = _instances(X)
    if instances is not None:
        if lengths is not None:
            raise ValueError(_beside_lengths(X))
        matrix, lengths, columns = _stacked(instances, columns, grows, numbering)
    else:
        if len(getattr(X, "shape", ())) != 2:
            raise ValueError(_wrong_shape(X))
        if lengths is None:
            raise ValueError(_without_lengths(X))
        if columns is not None:
            columns.check_numbers()
        matrix = stacked(X)
    if columns is None:
        columns = Columns.of(matrix)
    elif matrix.shape[0]:
        matrix = columns.matched(matrix, training=training)
    return Rows(matrix, lengths, columns, instances is not None)


def _stacked(
    instances: Iterable[Any], columns: Columns | None, grows: bool, numbering: Numbering
) -> tuple[Any, list[int], Columns | None]:
    """Return instances as one matrix, their lengths, and the columns if X has names of features."""
    is_text, instances = peek(instances)
    if is_text:
        return _stacked_words(instances, columns, grows, numbering)
    listed = list(instances)
    of_words = columns is not None and columns.vocabulary is not None
    if of_words and not any(hasattr(instance, "shape") for instance in listed):
        return _stacked_words(listed, columns, grows, numbering)  # positions without any feature
    if listed:
        if columns is not None:
            columns.check_numbers()
        return *stack(listed), columns
    if columns is None:
        raise ValueError("X has no instances")
    return np.zeros((0, columns.n), np.float32), [], columns


def _stacked_words(
    instances: Iterable[Any], columns: Columns | None, grows: bool, numbering: Numbering
) -> tuple[Any, list[int], Columns]:
    """Do the same for dicts or texts; leave out names that a fitted model has not seen."""
    known = numbering.empty() if columns is None else columns.vocabulary
    if known is None:
        raise ValueError("X holds dicts or texts, but the model was fitted on numbers")
    if columns is None or grows:
        matrix, lengths, vocabulary = known.learned(instances)
        return matrix, lengths, Columns.of_words(vocabulary)
    if numbering.min_count > 1:
        raise ValueError(
            f"min_count is {numbering.min_count}, but the model underneath, init_model, has its "
            "features already: they stay"
        )
    return *known.compact(instances), columns


def _instances(X: Any) -> Iterable[Any] | None:
    """Return X as instances if it is a collection of them; None if it is one stacked matrix."""
    if isinstance(X, list | tuple):
        return X
    if isinstance(X, np.ndarray) and (X.ndim == 3 or (X.ndim == 1 and X.dtype == object)):
        return list(X)
    if hasattr(X, "shape") and len(X.shape) != 1:
        return None
    is_series = hasattr(X, "iloc") and not is_frame(X)
    if is_series or (hasattr(X, "__iter__") and not hasattr(X, "shape")):
        instances: Iterable[Any] = X
        return instances
    return None


def has_entries(value: Any) -> bool:
    """Return whether a value is a list of anything; text and an array without axes are none."""
    is_text = isinstance(value, str | bytes)
    return hasattr(value, "__len__") and not is_text and getattr(value, "ndim", 1) > 0


def _without_lengths(X: Any) -> str:
    """Say what to do about X that is one stacked matrix, or data frame, without ``lengths``."""
    kind = "data frame" if is_frame(X) else "matrix"
    cut = ("X.iloc[:5]", "X.iloc[5:]") if is_frame(X) else ("X[:5]", "X[5:]")
    return (
        f"X is one {kind} of shape {X.shape}, which does not tell where instances end: pass "
        "lengths=, the number of rows of each, as in fit(X, y, lengths=[5, 3]), or a list with one "
        f"{kind} per instance, as in fit([{', '.join(cut)}], [y[:5], y[5:]]), [X] for a single "
        "one; cross-validation needs the list"
    )


def _wrong_shape(X: Any) -> str:
    """Say what to do about X that is neither a list of instances nor one stacked matrix."""
    what = f"has shape {X.shape}" if hasattr(X, "shape") else f"is {shown(X)}"
    remedy = ""
    if len(getattr(X, "shape", ())) == 1:
        remedy = (
            ". Reshape your data: X.reshape(-1, 1) where it is one feature of many positions, "
            "X.reshape(1, -1) where it is one position"
        )
    return (
        f"X {what}: pass a list with one matrix per instance, or one stacked matrix with lengths="
        f"{remedy}"
    )


def _beside_lengths(X: Any) -> str:
    """Say what to do about a list of instances that is passed with ``lengths``."""
    if getattr(X, "ndim", 0) == 3:
        return (
            f"lengths are given, but X has three axes, {X.shape}: if it is padded, cut it, "
            "[x[:n] for x, n in zip(X, lengths)], and y likewise; nothing is padded here"
        )
    first = X[0] if isinstance(X, list | tuple) and X else []
    if not hasattr(first, "__len__"):
        return f"lengths are given, but X is a list of {shown(first)} and the like: {SWAPPED}"
    if isinstance(first, str):
        return f"lengths are given, but X is a list of texts, {shown(first)} first: {SWAPPED}"
    return "lengths are given, but X is a list: a list has its own lengths"


# Features on disk, and numbers that are not finite ------------------------------------------------


def sharded_rows(
    X: ShardFeatures, beside: dict[str, Any], columns: Columns | None, training: bool
) -> Rows:
    """Return the rows of shards, which stay on disk; ``columns`` are those of a fitted model.

    ``beside`` are arguments that shards have themselves, by name: each must be None.
    """
    check_not_beside_shards(beside)
    batch = X.batch()
    if columns is None:
        columns = Columns.of(no_rows(batch.X))
    else:
        columns.check_numbers()
        batch = replace(batch, X=mapped(batch.X, partial(columns.matched, training=training)))
    return Rows(batch.X, batch.lengths, columns, False, batch, X.weights())


def check_finite(batch: Batch, unit: str = "instance") -> None:
    """Raise BadInstance at the first infinite number; those on disk are checked when read."""
    if (at := first_infinite(batch.X)) is not None:
        raise batch.bad_row(at[0], infinite_feature(at[1]), unit)


def check_not_beside_shards(arguments: dict[str, Any]) -> None:
    """Raise ValueError if an argument, by name, is passed that shards have themselves."""
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"{name} is given beside shards, which have their own: leave it out")


def check_in_memory(X: Any, why: str) -> None:
    """Raise ValueError if features stay on disk, for what needs them all at once."""
    if is_on_disk(X) or is_sharded(X):
        raise ValueError(f"{why} in memory, and these are shards: pass what shards.load() gives")


# Padding ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Padding:
    """What looks like padding in one array of instances.

    ``n_padded`` of its instances end in rows of one value throughout; ``values`` and ``labels`` are
    those of these rows.
    """

    shape: tuple[int, ...]
    n_padded: int
    values: set[str]
    labels: set[Any]


def padding_of(X: Any, labels: Sequence[Any]) -> Padding | None:
    """Return what looks like padding if X is one array of three axes; None if X is no such array.

    ``labels`` are those of all rows, one instance after another.
    """
    if getattr(X, "ndim", 0) != 3 or X.shape[2] < 2:  # one feature is one value in any row
        return None
    values, padded_labels, n_padded = set[str](), set[Any](), 0
    for instance, x in enumerate(X):
        if (n_rows := _rows_of_one_value(x)) >= LEAST_ROWS:
            end = (instance + 1) * X.shape[1]
            values.add(str(x[-1, 0]))
            padded_labels.update(labels[end - n_rows : end])
            n_padded += 1
    return Padding(X.shape, n_padded, values, padded_labels)


def warn_of_padding(parts: Sequence[Padding]) -> None:
    """Warn if the instances of an array end in rows that all have one value and one label.

    Training would learn from them.  ``parts`` are those of the array, one per worker.
    """
    values = set[str]().union(*(part.values for part in parts))
    labels = set[Any]().union(*(part.labels for part in parts))
    if len(values) == len(labels) == 1 and labels != {None}:
        n_instances = sum(part.shape[0] for part in parts)
        n_padded = sum(part.n_padded for part in parts)
        shape = (n_instances, *parts[0].shape[1:])
        warn(
            f"X is one array of shape {shape}, and {n_padded} of its {n_instances} instances "
            f"end in rows that are all {values.pop()}, with the label {shown(labels.pop())}: if "
            "that is padding, cut it, [x[:n] for x, n in zip(X, lengths)], and y likewise, or it "
            "is learned from"
        )


def _rows_of_one_value(x: Any) -> int:
    """Return how many rows at the end of (length, features) hold the last row's first value."""
    if not len(x):
        return 0
    value = x[-1, 0]
    is_other = ~((x == value) | ((x != x) & (value != value))).all(axis=1)  # NaN is one value
    return int(np.argmax(is_other[::-1])) if is_other.any() else len(x)


# Workers ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sample:
    """The description of a worker's X: its kind, its columns, and such a matrix without rows."""

    kind: str
    columns: Columns
    no_rows: Any

    @classmethod
    def of(cls, rows: Rows) -> Sample:
        """Describe rows, in memory or on disk."""
        empty = no_rows(rows.matrix)
        kind = "dense arrays"
        if rows.columns.vocabulary is not None:
            kind = "dicts or texts"
        elif is_frame(empty):
            kind = "data frames"
        elif is_sparse(empty):
            kind = "sparse matrices"
        return cls(kind, rows.columns, empty)


def with_common_columns(
    read: Callable[[], Rows],
    columns: Columns | None,
    *,
    is_nothing: bool,
    n_instances: int,
    without_rows: Callable[[Sample], Rows],
) -> Rows | None:
    """Read rows with the columns of all workers; None if no worker has any.

    Of several workers, ``is_nothing`` says that the X of this one, of ``n_instances``, does not
    show what features there are; ``without_rows`` then makes its rows from what the others have.
    ``columns`` are those of a fitted model that stay; None: those of the workers are united.
    """
    if current().size == 1:
        return read()
    rows, answers = agreed(
        lambda: None if is_nothing else read(),
        lambda rows: (
            (n_instances, None) if rows is None else (np.size(rows.lengths), Sample.of(rows))
        ),
    )
    samples = {
        f"worker {rank}": sample for rank, sample in enumerate(answers) if sample is not None
    }
    if not samples:
        return None
    (first, sample), *others = samples.items()
    for name, other in others:
        if other.kind != sample.kind:
            raise ValueError(f"X holds {sample.kind} at {first} and {other.kind} at {name}")
    common = replace(sample, columns=_united(samples) if columns is None else columns)
    return agreed(
        lambda: without_rows(common) if rows is None else rows.with_columns(common.columns),
        lambda _: (0, None),
    )[0]


def _united(samples: dict[str, Sample]) -> Columns:
    columns = {name: sample.columns for name, sample in samples.items()}
    vocabularies = [each.vocabulary for each in columns.values() if each.vocabulary is not None]
    if vocabularies:
        return Columns.of_words(vocabularies[0].united(vocabularies[1:]))
    return united(columns)


def agreed_rows(
    X: Any,
    lengths: Any,
    columns: Columns | None,
    *,
    grows: bool = False,
    numbering: Numbering | None = None,
) -> Rows:
    """Read X of ``fit`` as one matrix with the columns of all workers; see `read_rows`.

    Names of features are numbered as if one worker had read all rows, and counted over all.
    """
    workers = current()
    if workers.size > 1 and not (hasattr(X, "__len__") or is_sharded(X)):
        X = X if encodes_itself(X) else list(X)

    def read() -> Rows:
        return read_rows(X, lengths, columns, training=True, grows=grows, numbering=numbering)

    stays = columns is not None and (columns.vocabulary is None or not grows)
    is_nothing = workers.size > 1 and lengths is None and _has_no_features(X)
    rows = with_common_columns(
        read,
        columns if stays else None,
        is_nothing=is_nothing,
        n_instances=len(X) if is_nothing else 0,
        without_rows=lambda sample: _of_nothing(X, sample),
    )
    rows = read() if rows is None else rows  # raises the same error on all workers
    return rows.frequent(1 if numbering is None else numbering.min_count, columns, workers.sum)


def _has_no_features(X: Any) -> bool:
    """Return whether X is a list that does not say what features there are.

    Such a list has no matrix, and no position with a feature.
    """
    empty = (list, tuple, set, frozenset)
    return isinstance(X, list | tuple | np.ndarray) and all(
        isinstance(instance, list | tuple)
        and all(isinstance(position, empty) and not position for position in instance)
        for instance in X
    )


def _of_nothing(X: Any, sample: Sample) -> Rows:
    """Return the rows of a worker whose X does not say what features there are."""
    columns = sample.columns
    if columns.vocabulary is not None or any(len(instance) for instance in X):
        return read_rows(X, None, columns)
    return Rows(columns.matched(sample.no_rows), [0] * len(X), columns, as_list=True)
